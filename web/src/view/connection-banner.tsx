import type { JSX } from 'preact';
import { Icon } from './icons.tsx';
import { useNow } from './now.ts';
import { useStore } from './store-context.ts';

/** Says that there is no connection and when the next attempt is; nothing while all is well. */
export function ConnectionBanner(): JSX.Element {
  const store = useStore();
  const state = store.connection.value;
  const lost = store.wasConnected.value;
  return (
    <div role="status" aria-label="Connection">
      {state.status === 'reconnecting' ? <Reconnecting retryAt={state.retryAt} reason={state.reason} /> : null}
      {state.status === 'connecting' && lost ? <Reconnecting retryAt={0} reason="" /> : null}
      {state.status === 'refused' ? (
        <p class="banner refused">
          <Icon name="warning" />
          <span>
            {state.error.message}. {state.error.next}
          </span>
        </p>
      ) : null}
    </div>
  );
}

function Reconnecting({ retryAt, reason }: { readonly retryAt: number; readonly reason: string }): JSX.Element {
  const store = useStore();
  const seconds = Math.max(0, Math.ceil((retryAt - useNow()) / 1000));
  const what = store.wasConnected.value ? 'Connection lost.' : `Not connected: ${reason}.`;
  return (
    <p class="banner">
      <span class="spinner" />
      <span title={reason}>
        {what} {seconds > 0 ? `Trying again in ${seconds} s` : 'Trying again…'}
        <span class="banner-comfort"> — what you send now is kept and goes out then.</span>
      </span>
      <button type="button" class="button small" onClick={() => store.retryNow()}>
        Retry now
      </button>
    </p>
  );
}
