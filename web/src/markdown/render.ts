// Markdown tokens as vnodes. Text of a model reaches the page as text nodes only: no HTML string is ever made, raw HTML shows as
// it was written, nothing is loaded from an address that a model chose (security model T18).
import type { Token, Tokens } from 'marked';
import { type ComponentChildren, h, type VNode } from 'preact';
import { decodeEntities } from './entities.ts';
import { linkTarget } from './link-target.ts';

/** What the caller draws itself: a fence with its language and copy button. */
export type RenderParts = {
  readonly codeBlock: (facts: { readonly code: string; readonly language: string }) => VNode;
};

/** Lists and quotes in each other deeper than this are shown as their source: a page must not hang on `>>>>>…`. */
const DEPTH_MAX = 24;

export function renderBlock(token: Token, parts: RenderParts, depth = 0): ComponentChildren {
  if (depth > DEPTH_MAX) return token.raw;
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading': {
      // An answer sits below the page's own headings, so its first level is the page's third.
      const level = Math.min(6, (token as Tokens.Heading).depth + 2);
      return h(`h${level}`, { class: `level-${(token as Tokens.Heading).depth}` }, renderInline(token.tokens, depth));
    }
    case 'paragraph':
      return h('p', null, renderInline(token.tokens, depth));
    case 'text':
      return renderInlineToken(token, depth);
    case 'code':
      return parts.codeBlock({ code: (token as Tokens.Code).text, language: languageOf(token as Tokens.Code) });
    case 'blockquote':
      return h('blockquote', null, ...renderBlocks(token.tokens, parts, depth));
    case 'list':
      return renderList(token as Tokens.List, parts, depth);
    case 'table':
      return renderTable(token as Tokens.Table, depth);
    case 'hr':
      return h('hr', null);
    case 'html':
      return h('pre', { class: 'raw-html' }, token.raw.trimEnd());
    default:
      return h('p', null, token.raw);
  }
}

function renderBlocks(tokens: readonly Token[] | undefined, parts: RenderParts, depth: number): ComponentChildren[] {
  return (tokens ?? []).map((token) => renderBlock(token, parts, depth + 1));
}

function renderList(list: Tokens.List, parts: RenderParts, depth: number): ComponentChildren {
  const items = list.items.map((item) => {
    const body = renderBlocks(
      item.tokens.filter((token) => token.type !== 'checkbox'),
      parts,
      depth,
    );
    if (!item.task) return h('li', null, ...body);
    const box = h('input', {
      type: 'checkbox',
      checked: item.checked === true,
      disabled: true,
      'aria-label': item.checked === true ? 'done' : 'to do',
    });
    return h('li', { class: 'task' }, box, h('div', null, ...body));
  });
  if (!list.ordered) return h('ul', null, ...items);
  const start = typeof list.start === 'number' && list.start !== 1 ? list.start : undefined;
  return h('ol', { start }, ...items);
}

function renderTable(table: Tokens.Table, depth: number): VNode {
  const cell = (tag: 'th' | 'td', facts: Tokens.TableCell, column: number) =>
    h(
      tag,
      { class: table.align[column] ? `align-${table.align[column]}` : undefined },
      renderInline(facts.tokens, depth),
    );
  const head = h('tr', null, ...table.header.map((facts, column) => cell('th', facts, column)));
  const rows = table.rows.map((row) => h('tr', null, ...row.map((facts, column) => cell('td', facts, column))));
  // A wide table scrolls by itself; focusable, so that the keyboard can scroll it too.
  return h(
    'div',
    { class: 'table-scroll', tabIndex: 0, role: 'region', 'aria-label': 'Table' },
    h('table', null, h('thead', null, head), h('tbody', null, ...rows)),
  );
}

function renderInline(tokens: readonly Token[] | undefined, depth: number): ComponentChildren[] {
  return (tokens ?? []).map((token) => renderInlineToken(token, depth + 1));
}

function renderInlineToken(token: Token, depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return token.raw;
  switch (token.type) {
    case 'text':
      return token.tokens ? renderInline(token.tokens, depth) : decodeEntities((token as Tokens.Text).text);
    case 'escape':
      return (token as Tokens.Escape).text;
    case 'strong':
      return h('strong', null, renderInline(token.tokens, depth));
    case 'em':
      return h('em', null, renderInline(token.tokens, depth));
    case 'del':
      return h('del', null, renderInline(token.tokens, depth));
    case 'codespan':
      return h('code', null, (token as Tokens.Codespan).text);
    case 'br':
      return h('br', null);
    case 'link':
      return renderLink(token as Tokens.Link, depth);
    case 'image': {
      // A picture's address can carry what was said to another server, so it is only offered as a link.
      const { href, text } = token as Tokens.Image;
      return anchor(href, [`Image: ${decodeEntities(text) || href}`], `![${text}](${href})`);
    }
    default:
      return token.raw;
  }
}

function renderLink(link: Tokens.Link, depth: number): ComponentChildren {
  return anchor(link.href, renderInline(link.tokens, depth), link.raw);
}

function anchor(href: string, children: ComponentChildren[], source: string): ComponentChildren {
  const target = linkTarget(decodeEntities(href));
  if (target === undefined) return source;
  return h('a', { href: target, title: target, target: '_blank', rel: 'noopener noreferrer' }, ...children);
}

function languageOf(code: Tokens.Code): string {
  return /^[\w+#.-]{1,24}/.exec(code.lang ?? '')?.[0] ?? '';
}
