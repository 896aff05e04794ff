import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Column, tableLines, textWidth } from './table.ts';

const COLUMNS: readonly Column[] = [
  { title: 'SESSION', shrinks: 'yes' },
  { title: 'TITLE', shrinks: 'yes' },
  { title: 'TOKENS', align: 'right' },
];
const ROWS = [
  ['agent:main:main', 'What the weather does to the harvest', '12'],
  ['agent:main:notes', '', '123456'],
];

const cases: readonly {
  name: string;
  rows?: readonly (readonly string[])[];
  width?: number;
  expect: readonly string[];
}[] = [
  {
    name: 'without a terminal nothing is cut',
    expect: [
      'SESSION           TITLE                                 TOKENS',
      'agent:main:main   What the weather does to the harvest      12',
      'agent:main:notes                                        123456',
    ],
  },
  {
    name: 'on a narrow terminal the widest column gives way first',
    width: 48,
    expect: [
      'SESSION           TITLE                   TOKENS',
      'agent:main:main   What the weather does…      12',
      'agent:main:notes                          123456',
    ],
  },
  {
    name: 'where nothing fits, a row becomes a block',
    width: 20,
    expect: [
      'SESSION: agent:main…',
      'TITLE: What the wea…',
      'TOKENS: 12',
      '',
      'SESSION: agent:main…',
      'TITLE: ',
      'TOKENS: 123456',
    ],
  },
  {
    name: 'wide characters count double, and a cut never splits one',
    rows: [['agent:main:会议记录', '天気予報の話をする', '1']],
    width: 40,
    expect: ['SESSION          TITLE            TOKENS', 'agent:main:会…   天気予報の話を…       1'],
  },
  {
    name: 'text from outside cannot steer the terminal',
    rows: [['a\u001b[2Jb', 'two\nlines', '1']],
    expect: ['SESSION      TITLE          TOKENS', 'a\\u{1b}[2Jb  two\\u{a}lines       1'],
  },
];

for (const { name, rows = ROWS, width, expect } of cases) {
  test(`tables: ${name}`, () => {
    const lines = tableLines(COLUMNS, rows, width);
    assert.deepEqual(lines, expect);
    for (const line of lines) assert.ok(textWidth(line) <= (width ?? Number.POSITIVE_INFINITY), line);
  });
}
