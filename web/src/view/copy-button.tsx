import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { Icon } from './icons.tsx';

const SHOWN_MS = 1_600;

/** Copies `text()`; says so for a moment, also to a screen reader. */
export function CopyButton({ text, label }: { readonly text: () => string; readonly label: string }): JSX.Element {
  const outcome = useSignal<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (outcome.value === 'idle') return;
    const timer = setTimeout(() => {
      outcome.value = 'idle';
    }, SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome.value]);
  const copy = async () => {
    outcome.value = (await copied(text())) ? 'copied' : 'failed';
  };
  const words = { idle: label, copied: 'Copied', failed: 'Copying is not allowed here' }[outcome.value];
  return (
    <button
      type="button"
      class="quiet copy"
      onClick={copy}
      aria-label={words}
      title={words}
      data-outcome={outcome.value}
    >
      <Icon name={outcome.value === 'copied' ? 'check' : 'copy'} />
      <span aria-live="polite">{outcome.value === 'idle' ? '' : words}</span>
    </button>
  );
}

/** The clipboard needs a secure context; over plain HTTP to another machine the old command still works. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (refused) {
    console.debug('clipboard refused', refused);
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'off-screen';
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}
