import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { messageOf, printable } from '#base';
import type { ApprovalRecord } from '#client';
import type { ApprovalDecision } from '#domain';
import { Icon } from './icons.tsx';
import { useNow } from './now.ts';
import { useStore } from './store-context.ts';

const WORDS: Readonly<Record<ApprovalDecision, string>> = {
  'allow-once': 'Allow once',
  'allow-always': 'Always allow',
  deny: 'Deny',
};
const ALL: readonly ApprovalDecision[] = ['allow-once', 'allow-always', 'deny'];
const LONG_LINES = 12;

/** Asks the person about one command. What is shown is the whole of what will run, invisible characters spelled out. */
export function ApprovalQuestion({ approval }: { readonly approval: ApprovalRecord }): JSX.Element {
  const store = useStore();
  const now = useNow();
  const deciding = useSignal<ApprovalDecision | undefined>(undefined);
  const failure = useSignal('');
  const { command, cwd, warningText, allowedDecisions = ALL } = approval.request;
  const shown = printable(command);
  const lines = shown.split('\n').length;
  const secondsLeft = Math.max(0, Math.ceil((approval.expiresAtMs - now) / 1000));
  const decide = async (decision: ApprovalDecision) => {
    deciding.value = decision;
    failure.value = '';
    try {
      await store.resolve(approval.id, decision);
    } catch (error) {
      failure.value = messageOf(error);
      deciding.value = undefined;
    }
  };
  const titleId = `approval-${approval.id}`;
  return (
    <section class="approval" aria-labelledby={titleId} aria-live="polite">
      <h4 id={titleId}>
        <Icon name="shield" /> Run this command?
      </h4>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long command scrolls, and the keyboard must reach it */}
      <pre class="approval-command" tabIndex={0}>
        {shown}
      </pre>
      {lines > LONG_LINES ? <p class="approval-facts">{lines} lines: scroll to read all of them.</p> : null}
      <p class="approval-facts">
        {cwd === undefined ? null : (
          <>
            in <code>{printable(cwd)}</code>
          </>
        )}
        {warningText === undefined ? null : <span class="approval-reason">{printable(warningText)}</span>}
      </p>
      <div class="approval-choices">
        {ALL.filter((decision) => allowedDecisions.includes(decision)).map((decision) => (
          <button
            key={decision}
            type="button"
            class={`button choice ${decision === 'allow-once' ? 'primary' : decision}`}
            disabled={deciding.value !== undefined || secondsLeft === 0}
            onClick={() => decide(decision)}
          >
            {WORDS[decision]}
          </button>
        ))}
        <span class="approval-time">{secondsLeft === 0 ? 'No longer waiting' : `waits ${waitWords(secondsLeft)}`}</span>
      </div>
      {failure.value === '' ? null : <p class="failure-line">That did not work: {failure.value}. Try again.</p>}
    </section>
  );
}

const waitWords = (seconds: number): string => (seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`);
