/** The smallest program that Bun compiles: what any command costs at least. */
process.stdout.write('hello\n');
