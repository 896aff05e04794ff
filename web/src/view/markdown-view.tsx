import type { ComponentChildren, JSX, VNode } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { type Blocks, NO_BLOCKS, nextBlocks, wholeBlocks } from '../markdown/blocks.ts';
import { renderBlock } from '../markdown/render.ts';
import { CopyButton } from './copy-button.tsx';

const PARTS = {
  codeBlock: (facts: { readonly code: string; readonly language: string }): VNode => <CodeBlock {...facts} />,
};

type Rendered = { readonly blocks: Blocks; readonly children: readonly ComponentChildren[] };

/**
 * Markdown that may still grow. While it streams, only the last block is split and drawn again: finished blocks keep their very
 * vnodes, which Preact then skips.
 */
export function MarkdownView({ text, streaming }: { readonly text: string; readonly streaming: boolean }): JSX.Element {
  const before = useRef<Rendered>({ blocks: NO_BLOCKS, children: [] });
  const children = useMemo(() => {
    const blocks = streaming ? nextBlocks(before.current.blocks, text) : wholeBlocks(text);
    const kept = before.current.children.slice(0, blocks.kept);
    const drawn = blocks.tokens.slice(blocks.kept).map((token) => renderBlock(token, PARTS));
    before.current = { blocks, children: [...kept, ...drawn] };
    return before.current.children;
  }, [text, streaming]);
  return <div class={streaming ? 'markdown streaming' : 'markdown'}>{children}</div>;
}

function CodeBlock({ code, language }: { readonly code: string; readonly language: string }): JSX.Element {
  return (
    <figure class="code-block">
      <figcaption>
        <span>{language || 'text'}</span>
        <CopyButton text={() => code} label="Copy code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: wide code scrolls, and the keyboard must reach it */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}
