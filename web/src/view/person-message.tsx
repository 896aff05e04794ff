import type { JSX } from 'preact';
import type { PersonItem } from '#client';
import { FailureBox } from './answer.tsx';
import { CopyButton } from './copy-button.tsx';
import { useStore } from './store-context.ts';
import { clockTime } from './wording.ts';

export function PersonMessage({ item }: { readonly item: PersonItem }): JSX.Element {
  const store = useStore();
  const runId = item.key.slice('person:'.length);
  return (
    <article class={`person ${item.status}`} aria-label="Your message">
      <div class="bubble">
        {item.text}
        {item.images > 0 ? (
          <span class="attachments">{item.images === 1 ? '1 image' : `${item.images} images`}</span>
        ) : null}
      </div>
      <footer class="person-facts">
        {item.status === 'sending' ? <span role="status">Sending…</span> : null}
        {item.status === 'waiting' ? (
          <span role="status" title="A run is under way: your message is put into it, or answered right after it">
            Queued for the run under way
          </span>
        ) : null}
        {item.status === 'sent' ? <time dateTime={new Date(item.at).toISOString()}>{clockTime(item.at)}</time> : null}
        <CopyButton text={() => item.text} label="Copy message" />
      </footer>
      {item.status === 'failed' && item.failure ? (
        <div class="not-sent">
          <FailureBox failure={{ ...item.failure, message: `Not sent: ${item.failure.message}` }} />
          <button type="button" class="button" onClick={() => store.sendAgain(runId)}>
            Send again
          </button>
          <button type="button" class="button" onClick={() => store.discard(runId)}>
            Discard
          </button>
        </div>
      ) : null}
    </article>
  );
}
