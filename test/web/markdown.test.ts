// Markdown of a model as a tree of vnodes, written here as `tag[attributes](children)`. No browser: what is asserted is that no
// vnode exists which could run, load or hide anything.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ComponentChildren, h, type VNode } from 'preact';
import { type Blocks, NO_BLOCKS, nextBlocks, wholeBlocks } from '../../web/src/markdown/blocks.ts';
import { decodeEntities } from '../../web/src/markdown/entities.ts';
import { linkTarget } from '../../web/src/markdown/link-target.ts';
import { renderBlock } from '../../web/src/markdown/render.ts';

const PARTS = {
  codeBlock: ({ code, language }: { readonly code: string; readonly language: string }): VNode =>
    h('pre', null, `${language}:${code}`),
};

type Node = { readonly type: string; readonly props: Record<string, unknown> };

function write(children: ComponentChildren): string {
  if (children === null || children === undefined || typeof children === 'boolean') return '';
  if (Array.isArray(children)) return children.map(write).join('');
  if (typeof children !== 'object') return String(children);
  const { type, props } = children as unknown as Node;
  const { children: inner, ...attributes } = props;
  const kept = Object.entries(attributes).filter(([, value]) => value !== undefined);
  const list = kept.length > 0 ? `[${kept.map(([name, value]) => `${name}=${value}`).join(' ')}]` : '';
  return `${type}${list}(${write(inner as ComponentChildren)})`;
}

const draw = (blocks: Blocks): string => blocks.tokens.map((token) => write(renderBlock(token, PARTS))).join('');
const markdown = (text: string): string => draw(wholeBlocks(text));

function nodes(children: ComponentChildren): Node[] {
  if (Array.isArray(children)) return children.flatMap(nodes);
  if (children === null || typeof children !== 'object') return [];
  const node = children as unknown as Node;
  return [node, ...nodes(node.props['children'] as ComponentChildren)];
}
const allNodes = (text: string): Node[] =>
  wholeBlocks(text).tokens.flatMap((token) => nodes(renderBlock(token, PARTS) as ComponentChildren));

const LINK = 'target=_blank rel=noopener noreferrer';
const cases: { name: string; text: string; expect: string }[] = [
  { name: 'emphasis', text: '*a* **b** ~~c~~ `d<`', expect: 'p(em(a) strong(b) del(c) code(d<))' },
  { name: 'a heading starts at the page’s third level', text: '# One', expect: 'h3[class=level-1](One)' },
  { name: 'a fence with its language', text: '```ts\nlet a;\n```', expect: 'pre(ts:let a;)' },
  { name: 'a fence that is still open', text: '```ts\nlet a;', expect: 'pre(ts:let a;)' },
  { name: 'a language is a word, not markup', text: '```"><img\nx\n```', expect: 'pre(:x)' },
  { name: 'a list that starts elsewhere', text: '3. a\n4. b', expect: 'ol[start=3](li(a)li(b))' },
  {
    name: 'a task list',
    text: '- [x] a\n- [ ] b',
    expect:
      'ul(li[class=task](input[type=checkbox checked=true disabled=true aria-label=done]()div(a))' +
      'li[class=task](input[type=checkbox checked=false disabled=true aria-label=to do]()div(b)))',
  },
  {
    name: 'a table',
    text: '| a | b |\n|---|--:|\n| 1 | **2** |',
    expect:
      'div[class=table-scroll tabIndex=0 role=region aria-label=Table](table(thead(tr(th(a)th[class=align-right](b)))' +
      'tbody(tr(td(1)td[class=align-right](strong(2))))))',
  },
  { name: 'a quote', text: '> a', expect: 'blockquote(p(a))' },
  {
    name: 'a link opens elsewhere and tells nothing',
    text: '[a](https://x.test/b)',
    expect: `p(a[href=https://x.test/b title=https://x.test/b ${LINK}](a))`,
  },
  {
    name: 'a mail address',
    text: '<mailto:a@x.test>',
    expect: `p(a[href=mailto:a@x.test title=mailto:a@x.test ${LINK}](mailto:a@x.test))`,
  },
  {
    name: 'an image is not loaded but linked',
    text: '![cat](https://x.test/c.png)',
    expect: `p(a[href=https://x.test/c.png title=https://x.test/c.png ${LINK}](Image: cat))`,
  },
  { name: 'character references', text: 'a &amp; b &lt;i&gt; &#65;', expect: 'p(a & b <i> A)' },
  { name: 'an escape', text: '1\\*2', expect: 'p(1*2)' },
  { name: 'a line break', text: 'a  \nb', expect: 'p(abr()b)' },
];
for (const { name, text, expect } of cases) test(`markdown: ${name}`, () => assert.equal(markdown(text), expect));

const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '<script>alert(1)</script>',
  '<svg/onload=alert(1)>',
  '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
  'text <b onclick=alert(1)>b</b> text',
  '<!-- --!><script>alert(1)</script>',
  '<a href="javascript:alert(1)">x</a>',
  '<style>*{display:none}</style>',
  '<form action=https://evil.test><input name=q></form>',
];
for (const text of HOSTILE) {
  test(`M-01: raw HTML is shown as it was written: ${text}`, () => {
    assert.match(write(wholeBlocks(text).tokens.map((token) => renderBlock(token, PARTS))), /</);
    for (const node of allNodes(text)) assert.match(node.type, /^(p|pre)$/);
    assert.ok(markdown(text).includes(text.slice(0, 12)));
  });
}

const TARGETS: [string, string | undefined][] = [
  ['https://a.test/', 'https://a.test/'],
  ['HTTP://a.test', 'http://a.test/'],
  ['mailto:a@b.test', 'mailto:a@b.test'],
  ['javascript:alert(1)', undefined],
  ['JaVaScRiPt:alert(1)', undefined],
  ['java\tscript:alert(1)', undefined],
  ['\u0001javascript:alert(1)', undefined],
  [' javascript:alert(1)', undefined],
  ['data:text/html,<script>alert(1)</script>', undefined],
  ['vbscript:x', undefined],
  ['file:///etc/passwd', undefined],
  ['blob:https://a.test/x', undefined],
  ['//evil.test', undefined],
  ['/settings', undefined],
  ['#token=x', undefined],
  ['?gatewayUrl=ws://evil.test', undefined],
  ['', undefined],
];
for (const [href, expect] of TARGETS) {
  test(`T18: link target ${JSON.stringify(href)}`, () => assert.equal(linkTarget(href), expect));
}

const BAD_LINKS = [
  '[a](javascript:alert(1))',
  '[a](java&#115;cript:alert(1))',
  '[a](&#106;avascript:alert(1))',
  '[a](<javascript:alert(1)>)',
  '<javascript:alert(1)>',
  '![a](javascript:alert(1))',
  '![a](data:image/svg+xml;base64,PHN2Zz4=)',
  '[a]: javascript:alert(1)\n\n[a]',
  '[a](/relative)',
];
for (const text of BAD_LINKS) {
  test(`T18: no link at all: ${text}`, () => {
    for (const node of allNodes(text)) assert.notEqual(node.type, 'a');
  });
}

const TAGS = new Set(
  'p h3 h4 h5 h6 ul ol li div input table thead tbody tr th td blockquote pre hr br strong em del code a'.split(' '),
);
const PROPS = new Set(
  'children class href title target rel start type checked disabled aria-label tabIndex role key ref'.split(' '),
);
const pieces = fc.array(
  fc.oneof(
    fc.constantFrom(
      ...HOSTILE,
      ...BAD_LINKS,
      '\n',
      '\n\n',
      '- ',
      '> ',
      '```',
      '|',
      '---',
      '**',
      '`',
      '[',
      '](',
      ')',
      '&#x',
      ';',
    ),
    fc.string({ maxLength: 12 }),
  ),
  { maxLength: 30 },
);

test('T18: whatever is written, only known elements with known attributes come out', () => {
  fc.assert(
    fc.property(pieces, (list) => {
      for (const { type, props } of allNodes(list.join(''))) {
        assert.ok(TAGS.has(type), type);
        for (const name of Object.keys(props)) assert.ok(PROPS.has(name), name);
        if (type === 'a') assert.match(String(props['href']), /^(https?|mailto):/);
      }
    }),
    { numRuns: 300 },
  );
});

test('deep nesting neither overflows nor hides the text', () => {
  assert.match(markdown(`${'>'.repeat(5_000)} deep`), /deep/);
  assert.match(markdown(`${'- '.repeat(500)}deep`), /deep/);
});

test('character references: a name that is unknown, a code that is none', () => {
  assert.equal(decodeEntities('&nosuch; &#0; &#xd800; &#x1f600; &lt;'), '&nosuch; \ufffd \ufffd 😀 <');
});

const STREAMS = [
  'One.\n\nTwo with **bold**.\n\n- a\n\n  more of a\n- b\n\nEnd.',
  'Text\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter',
  'Title\n===\n\n```ts\nlet a = 1;\n\nlet b = 2;\n```\n\nafter **it**\r\n\r\nlast',
  '1. x\n2. y\n   - z\n\n> quote\n> more\n\n<b>\n\n**open',
];
for (const [index, text] of STREAMS.entries()) {
  test(`a stream ends as the whole text does, whatever its parts (${index + 1})`, () => {
    for (const step of [1, 2, 7]) {
      let blocks = NO_BLOCKS;
      for (let end = step; end < text.length + step; end += step) blocks = nextBlocks(blocks, text.slice(0, end));
      assert.equal(draw(blocks), markdown(text));
    }
  });
}

test('finished blocks of a stream stay the very same objects', () => {
  const before = nextBlocks(NO_BLOCKS, 'One.\n\nTwo.\n\nThr');
  const after = nextBlocks(before, 'One.\n\nTwo.\n\nThree and more');
  assert.equal(after.kept, 4);
  for (let index = 0; index < 4; index++) assert.equal(after.tokens[index], before.tokens[index]);
});

test('a text that does not continue the one before is read from its start', () => {
  const before = nextBlocks(NO_BLOCKS, 'One.\n\nTwo.');
  assert.equal(draw(nextBlocks(before, 'Other.')), 'p(Other.)');
});
