import type { JSX } from 'preact';
import type { AnswerItem, AnswerPart, Failure } from '#client';
import { CopyButton } from './copy-button.tsx';
import { Icon, Mark } from './icons.tsx';
import { MarkdownView } from './markdown-view.tsx';
import { ToolCard } from './tool-card.tsx';
import { clockTime, dollars, tokens } from './wording.ts';

export function Answer({ item }: { readonly item: AnswerItem }): JSX.Element {
  const text = item.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n');
  const running = item.outcome === 'running';
  return (
    <article class="answer" aria-label="Answer" aria-busy={running}>
      <Mark />
      <div class="answer-body">
        {item.parts.map((part, index) => (
          <Part key={part.kind === 'tool' ? part.callId : index} part={part} />
        ))}
        {running && !isWriting(item.parts) ? <Working /> : null}
        {item.outcome === 'aborted' ? <p class="stopped">Stopped.</p> : null}
        {item.failure ? <FailureBox failure={item.failure} /> : null}
        {running ? null : (
          <footer class="answer-facts">
            {text === '' ? null : <CopyButton text={() => text} label="Copy answer" />}
            <time dateTime={new Date(item.at).toISOString()}>{clockTime(item.at)}</time>
            {item.model ? <span>{item.model}</span> : null}
            {item.usage && item.usage.totalTokens > 0 ? <UsageFacts usage={item.usage} /> : null}
          </footer>
        )}
      </div>
    </article>
  );
}

function UsageFacts({ usage }: { readonly usage: NonNullable<AnswerItem['usage']> }): JSX.Element {
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const whole = `${prompt} tokens in (${usage.cacheRead} from cache), ${usage.output} tokens out, $${usage.cost.total.toFixed(6)}`;
  return (
    <span title={whole}>
      {tokens(prompt)} in · {tokens(usage.output)} out{usage.cost.total > 0 ? ` · ${dollars(usage.cost.total)}` : ''}
    </span>
  );
}

const isWriting = (parts: readonly AnswerPart[]): boolean => {
  const last = parts.at(-1);
  return last !== undefined && (last.kind === 'tool' ? last.status === 'running' : last.streaming);
};

function Part({ part }: { readonly part: AnswerPart }): JSX.Element {
  if (part.kind === 'tool') return <ToolCard part={part} />;
  if (part.kind === 'text') return <MarkdownView text={part.text} streaming={part.streaming} />;
  return (
    // Open while it is being written; a part that is done starts folded.
    <details class="thinking" key={String(part.streaming)} open={part.streaming}>
      <summary>
        <Icon name="thought" /> {part.streaming ? 'Thinking…' : 'Thought'}
        <Icon name="chevron" />
      </summary>
      <div class="thinking-text">
        <MarkdownView text={part.text} streaming={part.streaming} />
      </div>
    </details>
  );
}

export function Working(): JSX.Element {
  return (
    <p class="working" role="status" aria-label="Working">
      <span />
      <span />
      <span />
    </p>
  );
}

export function FailureBox({ failure }: { readonly failure: Failure }): JSX.Element {
  return (
    <div class="failure" role="alert">
      <Icon name="warning" />
      <div>
        <p>{failure.message}</p>
        {failure.next ? <p class="next-step">{failure.next}</p> : null}
        {failure.code ? <p class="failure-code">{failure.code}</p> : null}
      </div>
    </div>
  );
}
