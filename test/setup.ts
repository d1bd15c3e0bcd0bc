import fc from 'fast-check';

/**
 * Properties look at the same examples for everybody, so that a red run can be repeated and a green one means the
 * same everywhere. `FAST_CHECK_SEED=<number>` looks at others; `FAST_CHECK_SEED=random` at new ones each time.
 */
const given = process.env['FAST_CHECK_SEED'];
const seed = given === undefined ? 20_261_130 : Number.parseInt(given, 10);
if (given !== 'random' && Number.isFinite(seed)) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
