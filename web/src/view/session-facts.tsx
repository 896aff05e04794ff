import type { JSX } from 'preact';
import { useStore } from './store-context.ts';
import { dollars, tokens } from './wording.ts';

/** Model, context use and cost of the shown session. */
export function SessionFacts(): JSX.Element | null {
  const row = useStore().activeSession.value;
  if (!row?.model) return null;
  const { totalTokens = 0, contextTokens = 0, estimatedCostUsd = 0, modelProvider } = row;
  const share = contextTokens > 0 ? Math.min(100, Math.round((100 * totalTokens) / contextTokens)) : 0;
  return (
    <span class="session-facts">
      <span title={modelProvider ? `Model ${modelProvider}/${row.model}` : `Model ${row.model}`}>{row.model}</span>
      {totalTokens > 0 ? (
        <span
          title={`The last prompt had ${totalTokens} tokens${contextTokens ? ` of ${contextTokens} that fit` : ''}`}
        >
          {tokens(totalTokens)}
          {contextTokens > 0 ? ` of ${tokens(contextTokens)} (${share} %)` : ' tokens'}
        </span>
      ) : null}
      {estimatedCostUsd > 0 ? <span title="Cost of the last run">{dollars(estimatedCostUsd)}</span> : null}
    </span>
  );
}
