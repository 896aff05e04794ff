import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { ApprovalRecord, ToolPart } from '#client';
import { ApprovalQuestion } from './approval-question.tsx';
import { CopyButton } from './copy-button.tsx';
import { Icon } from './icons.tsx';
import { useStore } from './store-context.ts';
import { argumentSummary, duration } from './wording.ts';

const OUTPUT_SHOWN = 6_000;
// Colours and cursor moves of a terminal; here they are noise.
const TERMINAL_CODES = /\u001b\[[0-9;?]*[ -/]*[@-~]/g;

const WORDS: Readonly<Record<ToolPart['status'], string>> = {
  writing: 'Preparing',
  running: 'Running',
  ok: 'Done',
  failed: 'Failed',
  denied: 'Denied',
  aborted: 'Stopped',
};

/** One tool call: folded to a line; open it for arguments and output. A question about it is asked in place. */
export function ToolCard({ part }: { readonly part: ToolPart }): JSX.Element {
  const store = useStore();
  const approval = store.approvals.value.find((record) => asksAbout(record, part));
  const status = approval ? 'asking' : part.status;
  const took = part.startedAt !== undefined && part.endedAt !== undefined ? part.endedAt - part.startedAt : undefined;
  return (
    <div class={`tool-card ${status}`}>
      <details>
        <summary>
          <span class="tool-state" aria-hidden="true">
            {status === 'running' ? (
              <span class="spinner" />
            ) : (
              <Icon name={status === 'ok' ? 'check' : iconOf(status)} />
            )}
          </span>
          <span class="tool-name">{part.name}</span>
          <code class="tool-summary">{argumentSummary(part.arguments)}</code>
          <span class="tool-status">
            {approval ? 'Waiting for you' : WORDS[part.status]}
            {took === undefined ? null : <span class="tool-took">{duration(took)}</span>}
          </span>
          <Icon name="chevron" />
        </summary>
        <div class="tool-body">
          <ToolText label="Arguments" text={JSON.stringify(part.arguments, null, 2)} />
          {part.output === '' ? null : (
            <ToolText label={outputLabel(part)} text={part.output.replace(TERMINAL_CODES, '')} />
          )}
        </div>
      </details>
      {approval ? <ApprovalQuestion approval={approval} /> : null}
    </div>
  );
}

const iconOf = (status: string) =>
  status === 'asking' || status === 'denied' ? 'shield' : status === 'failed' ? 'warning' : 'stop';

function outputLabel(part: ToolPart): string {
  if (part.status === 'failed') return 'Error';
  return part.status === 'denied' ? 'Why not' : 'Output';
}

export const asksAbout = ({ request }: ApprovalRecord, part: ToolPart): boolean =>
  part.status === 'running' &&
  (request.toolCallId === undefined
    ? part.arguments['command'] === request.command
    : request.toolCallId === part.callId);

function ToolText({ label, text }: { readonly label: string; readonly text: string }): JSX.Element {
  const whole = useSignal(false);
  const cut = !whole.value && text.length > OUTPUT_SHOWN;
  return (
    <section class="tool-text">
      <header>
        <h4>{label}</h4>
        <CopyButton text={() => text} label={`Copy ${label.toLowerCase()}`} />
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long output scrolls, and the keyboard must reach it */}
      <pre tabIndex={0}>{cut ? text.slice(0, OUTPUT_SHOWN) : text}</pre>
      {cut ? (
        <button type="button" class="link" onClick={() => (whole.value = true)}>
          Show all {text.length.toLocaleString()} characters
        </button>
      ) : null}
    </section>
  );
}
