import type { JSX } from 'preact';
import { Mark } from './icons.tsx';
import { useStore } from './store-context.ts';

const EXAMPLES: readonly { readonly prompt: string; readonly about: string }[] = [
  { prompt: 'What time is it?', about: 'a quick question' },
  { prompt: 'List the files here', about: 'look into the workspace' },
  { prompt: 'Write hello to notes.txt', about: 'change a file' },
  { prompt: 'Remember that I like short answers', about: 'keep a note for later' },
];

export function EmptyState(): JSX.Element {
  const store = useStore();
  const ready = store.connection.value.status === 'connected';
  return (
    <section class="empty" aria-labelledby="empty-title">
      <Mark />
      <h2 id="empty-title">What shall we do?</h2>
      <p>Your agent works on this machine, with the tools you allow. Ask it something, or start with one of these.</p>
      <ul class="examples">
        {EXAMPLES.map(({ prompt, about }) => (
          <li key={prompt}>
            <button type="button" disabled={!ready} onClick={() => store.send(prompt)}>
              <span>{prompt}</span>
              <small>{about}</small>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
