import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { theme, toggleTheme } from '../state/theme.ts';
import { Composer } from './composer.tsx';
import { ConnectionBanner } from './connection-banner.tsx';
import { Icon } from './icons.tsx';
import { Sidebar } from './sidebar.tsx';
import { useStore } from './store-context.ts';
import { Transcript } from './transcript.tsx';
import { sessionTitle } from './wording.ts';

export function ChatPage({ onSignOut }: { readonly onSignOut: () => void }): JSX.Element {
  const drawerOpen = useSignal(false);
  const close = () => {
    drawerOpen.value = false;
  };
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key === 'Escape') close();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
  return (
    <div class="page" data-drawer={drawerOpen.value ? 'open' : 'closed'}>
      <button type="button" class="skip" onClick={focusMessage}>
        Skip to the message field
      </button>
      <Sidebar onClose={close} onSignOut={onSignOut} />
      <button type="button" class="shade" aria-label="Close the session list" tabIndex={-1} onClick={close} />
      <main class="chat">
        <TopBar
          onMenu={() => {
            drawerOpen.value = true;
          }}
        />
        <ConnectionBanner />
        <Transcript />
        <Composer />
      </main>
    </div>
  );
}

function focusMessage(): void {
  document.querySelector<HTMLElement>('.composer textarea')?.focus();
}

function TopBar({ onMenu }: { readonly onMenu: () => void }): JSX.Element {
  const store = useStore();
  const key = store.activeKey.value;
  const title = sessionTitle(store.activeSession.value, key);
  useEffect(() => {
    document.title = store.running.value ? `● ${title} — Reins` : `${title} — Reins`;
  }, [title, store.running.value]);
  const label =
    theme.value === 'system' ? 'Switch between dark and light (now as the system)' : 'Switch between dark and light';
  return (
    <header class="top-bar">
      <button type="button" class="quiet drawer-only" aria-label="Open the session list" onClick={onMenu}>
        <Icon name="menu" />
      </button>
      <h1 title={key}>{title}</h1>
      <button type="button" class="quiet drawer-only" aria-label="New session" onClick={() => store.newSession()}>
        <Icon name="plus" />
      </button>
      <button type="button" class="quiet theme-toggle" aria-label={label} title={label} onClick={toggleTheme}>
        <Icon name="sun" />
        <Icon name="moon" />
      </button>
    </header>
  );
}
