/**
 * Every rule of the sessions service (S-nnn) and every case of it (C-nnn), as they are numbered in their texts; the gaps are
 * cases that were withdrawn. A test accounts for one by citing it; the table below does for those that none cites.
 */

const numbers = (letter: string, text: string): readonly string[] =>
  text.split(' ').map((number) => `${letter}-${number}`);

export const RULES = numbers(
  'S',
  '001 002 003 004 005 006 007 008 009 010 011 012 013 101 102 103 104 105 106 107 108 109 110 111 112 ' +
    '113 114 115 116 117 118 119 120 121 122 123 124 201 202 203 204 205 206 207 208 209 301 302 303 304 ' +
    '305 306 307 308 309 310 311 312 313 314 315 316 317 318 319 320 321 322 323 324 325 326 327 330 331 ' +
    '332 333 334 335 336 337 338 339 340 341 342 343 401 402 403 404 405 406 407 410 411 412 413 414 415 ' +
    '420 421 501 502 503 504 505 506 507 508 509 510 520 521 522 523 524 525 526 527 528 529 530 531 601 ' +
    '602 603 604 605 620 621 622 623 624 625 626 627 628 629 640 641 642 643 644 645 646 647 648 660 661 ' +
    '662 663 664 701 702 703 704 705 706 710 711 712 713 714 715 716 720 721 722 723 740 741 742 750 751 ' +
    '752 760 761 762 763 764 765 766 801 802 803 804 805 806 810 811 812 813 814 820 821 822 823 824 825 ' +
    '830 840 841 842 843 844 850 851 852 853 854 855 901 902 903 904 905 906 907 930 931 932 933 934 935 ' +
    '936 937 938',
);

export const CASES = numbers(
  'C',
  '001 002 004 005 006 007 009 010 011 012 014 015 020 021 023 024 025 026 028 029 030 031 033 034 035 ' +
    '036 038 039 040 045 047 048 049 050 052 053 054 055 057 060 061 062 064 065 066 067 069 070 071 075 ' +
    '077 078 079 080 082 083 084 085 087 088 090 091 093 094 095 096 098 099 100 101 111 112 113 114 116 ' +
    '117 118 119 121 122 123 124 126 127 128 129 131 132 133 134 141 142 143 144 146 147 148 149 151 152 ' +
    '153 154 160 161 162 163 165 166 170 171 173 174 175 176 178 179 180 181 183 184 185 186 188 189 190 ' +
    '191 193 194 195 196 201 202 203 204 211 212 213 214 216 217 218 219 221 230 231 232 234 235 236 237 ' +
    '239 240 241 242 250 251 252 253 255 256 257 258 260 261 262 263 265 266 267 268 270 271 272 273 275 ' +
    '276 277 278 281 282 283 284 290 291 292 293 295 296 297 298 301 302 303 304 306 307 308 309 311 320 ' +
    '321 322 324 325 326 327 331 340 341 342 344 345 350 351 353 354 355 356 358 359 360 361 363 370 371 ' +
    '372 374 375 376 377 379 380 381 382 384 385 386 387 389 390 391 392 394 395 396 397 399 400 401 402',
);

/** A test below `test/` by a piece of its name, or a sentence why there is none. */
export type Elsewhere = { readonly test: string; readonly name: string } | { readonly not: string };

const at = (test: string, name: string): Elsewhere => ({ test, name });
const not = (sentence: string): Elsewhere => ({ not: sentence });

const HOOK = 'commands/hook.test.ts';
const COMPANION =
  'The VS Code companion is a program of its own that is not part of this project; its operations are tested from the wire.';
const NAMES =
  'Those command names are not offered: reading commands have names of their own and work without a daemon (R-31).';

/** Accounted for without a citation; a test that cites one wins over its line here. */
export const ELSEWHERE: Readonly<Record<string, Elsewhere>> = {
  'S-003': at('runtime/daemon/sessions/engine.property.test.ts', 'C-371'),
  'S-004': at('runtime/daemon/sessions/engine.property.test.ts', 'C-371'),
  'S-403': at(HOOK, 'C-147'),
  'S-406': at('runtime/daemon/sink/mapping.test.ts', 'R-03'),
  'S-407': at(HOOK, 'one journal line and one report with the same stamp'),
  'S-421': not('States limits of Codex’s own hooks, which are to be known and not to be changed.'),
  'S-529': at('runtime/daemon/journal/watcher.test.ts', 'S-343'),
  'S-660': not(COMPANION),
  'S-661': not(COMPANION),
  'S-662': not(COMPANION),
  'S-663': not(COMPANION),
  'S-664': not(COMPANION),
  'S-850': not(NAMES),
  'S-851': at('runtime/session/text.property.test.ts', 'whatever comes in, one printable line comes out'),
  'S-852': not(NAMES),
  'S-853': not(NAMES),
  'S-904': at('runtime/daemon/daemon.test.ts', 'C-358'),
  'S-905': not(
    'Says of each feed that its user puts it in place or that it only reads; the tests of each feed hold that.',
  ),
  'S-934': at('runtime/daemon/sessions/windows.test.ts', 'C-101'),
  'S-936': at(HOOK, 'C-402'),
  'S-937': at('runtime/daemon/journal/watcher.test.ts', 'no row, deleted'),
  'C-350': at('runtime/session/text.property.test.ts', 'whatever comes in, one printable line comes out'),
  'C-351': not(
    'Prints the payload of the socket as it is: that is the connector’s own document here (R-31).',
  ),
  'C-377': not(
    'Those places are void (R-30): everything lies in the connector home, whose own tests name it.',
  ),
  'C-390': not(COMPANION),
  'C-391': not(COMPANION),
  'C-394': at('adapters/claude-code/wrap/diagnostics.test.ts', 'C-276'),
  'C-395': at('adapters/codex/wrap', 'S-761: the server comes before'),
  'C-397': not(NAMES),
};
