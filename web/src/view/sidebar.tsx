import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { SessionSummary } from '#client';
import { Icon, Mark } from './icons.tsx';
import { useNow } from './now.ts';
import { useStore } from './store-context.ts';
import { relativeTime, sessionTitle } from './wording.ts';

const SEARCH_DELAY_MS = 200;

export function Sidebar({
  onClose,
  onSignOut,
}: {
  readonly onClose: () => void;
  readonly onSignOut: () => void;
}): JSX.Element {
  const store = useStore();
  const search = useSignal('');
  const rows = store.sessions.value;
  const active = store.activeKey.value;
  const shown = rows.filter((row) => matches(row, search.value));
  const fresh = !rows.some((row) => row.key === active) && search.value === '' && active !== '';
  useEffect(() => {
    if (store.connection.peek().status !== 'connected') return;
    // What is loaded is filtered at once; older sessions come from the gateway.
    const timer = setTimeout(() => void store.listSessions(search.value.trim()), SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [search.value]);
  const choose = (key: string) => {
    store.select(key);
    onClose();
  };
  return (
    <nav class="sidebar" aria-label="Sessions">
      <header>
        <Mark />
        <strong class="wordmark">Reins</strong>
        <button type="button" class="quiet drawer-only" aria-label="Close the session list" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <button
        type="button"
        class="button new-session"
        onClick={() => {
          store.newSession();
          onClose();
        }}
      >
        <Icon name="plus" /> New session
      </button>
      <label class="search">
        <Icon name="search" />
        <input
          type="search"
          placeholder="Search sessions"
          aria-label="Search sessions"
          value={search.value}
          onInput={(event) => {
            search.value = event.currentTarget.value;
          }}
        />
      </label>
      <ul class="session-list">
        {fresh ? <Row title={sessionTitle(undefined, active)} active onChoose={() => choose(active)} /> : null}
        {shown.map((row) => (
          <Row
            key={row.key}
            row={row}
            title={sessionTitle(row, row.key)}
            active={row.key === active}
            onChoose={() => choose(row.key)}
          />
        ))}
      </ul>
      {shown.length === 0 && search.value !== '' ? <p class="nothing">No session matches “{search.value}”.</p> : null}
      <footer>
        <button type="button" class="quiet" onClick={onSignOut}>
          <Icon name="leave" /> Sign out
        </button>
      </footer>
    </nav>
  );
}

type RowFacts = {
  readonly title: string;
  readonly row?: SessionSummary;
  readonly active: boolean;
  readonly onChoose: () => void;
};

function Row({ title, row, active, onChoose }: RowFacts): JSX.Element {
  const now = useNow();
  const asked = useStore().approvals.value.some(({ request }) => request.sessionKey === row?.key);
  const running = row?.hasActiveRun === true || row?.status === 'running';
  return (
    <li>
      <button
        type="button"
        class="session-row"
        aria-current={active ? 'true' : undefined}
        onClick={onChoose}
        title={row?.key}
      >
        <span class="session-title">{title}</span>
        <span class="session-when">{row?.updatedAt ? relativeTime(row.updatedAt, now) : ''}</span>
        <span class="session-preview">{row?.lastMessagePreview ?? row?.channel ?? ''}</span>
        {asked ? <span class="dot asking" role="img" aria-label="waits for your approval" /> : null}
        {running && !asked ? <span class="dot" role="img" aria-label="running" /> : null}
      </button>
    </li>
  );
}

function matches(row: SessionSummary, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  const texts = [row.key, row.label, row.derivedTitle, row.displayName, row.lastMessagePreview];
  return wanted === '' || texts.some((text) => text?.toLowerCase().includes(wanted));
}
