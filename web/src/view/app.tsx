import { type Signal, useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { readAddress } from '../state/address.ts';
import { ChatStore } from '../state/chat-store.ts';
import { keepToken, keptToken } from '../state/kept.ts';
import { ChatPage } from './chat-page.tsx';
import { Icon } from './icons.tsx';
import { SignIn } from './sign-in.tsx';
import { StoreContext } from './store-context.ts';

type Problem = { readonly message: string; readonly next?: string };

/** Signed out: the form. Signed in: the chat, with a store that lives as long as the token. */
export function App({ notices }: { readonly notices: Signal<readonly string[]> }): JSX.Element {
  const store = useSignal<ChatStore | undefined>(undefined);
  const problem = useSignal<Problem | undefined>(undefined);

  const signIn = (token: string) => {
    store.peek()?.close();
    problem.value = undefined;
    keepToken(token);
    store.value = new ChatStore(token);
    store.value.start();
  };
  const signOut = (why?: Problem) => {
    store.peek()?.close();
    keepToken(undefined);
    problem.value = why;
    store.value = undefined;
  };
  useEffect(() => {
    const token = keptToken();
    if (token !== undefined) signIn(token);
    // A link that is pasted into an open tab changes only the fragment, and the page is not loaded again.
    const followed = () => {
      const facts = readAddress(location.href);
      history.replaceState(null, '', facts.cleaned);
      if (facts.token !== undefined) signIn(facts.token);
    };
    addEventListener('hashchange', followed);
    return () => removeEventListener('hashchange', followed);
  }, []);
  useSignalEffect(() => {
    const state = store.value?.connection.value;
    if (state?.status !== 'refused') return;
    const { code, message, next } = state.error;
    if (code !== 'UNAUTHORIZED') return;
    signOut({ message, next: next ?? 'Open the link that “reins start” prints, or paste its token here.' });
  });

  return (
    <>
      <Notices notices={notices} />
      {store.value ? (
        <StoreContext.Provider value={store.value}>
          <ChatPage onSignOut={() => signOut()} />
        </StoreContext.Provider>
      ) : (
        <SignIn {...(problem.value ? { problem: problem.value } : {})} onToken={signIn} />
      )}
    </>
  );
}

function Notices({ notices }: { readonly notices: Signal<readonly string[]> }): JSX.Element | null {
  if (notices.value.length === 0) return null;
  return (
    <div class="page-notices">
      {notices.value.map((text) => (
        <div key={text} role="alert">
          <Icon name="shield" />
          <p>{text}</p>
          <button
            type="button"
            class="quiet"
            aria-label="Close this notice"
            onClick={() => {
              notices.value = notices.value.filter((other) => other !== text);
            }}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
