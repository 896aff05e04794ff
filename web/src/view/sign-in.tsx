import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { Icon, Mark } from './icons.tsx';

type Facts = {
  /** Why the last attempt did not work. */
  readonly problem?: { readonly message: string; readonly next?: string };
  readonly onToken: (token: string) => void;
};

export function SignIn({ problem, onToken }: Facts): JSX.Element {
  const token = useSignal('');
  const submit = (event: Event) => {
    event.preventDefault();
    const given = token.value.trim();
    if (given !== '') onToken(given);
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <Mark />
        <h1>Open your gateway</h1>
        <p>
          Reins runs on your own machine and lets in only people who hold its token. On that machine, run{' '}
          <code>reins start</code>: it prints a link that opens this page signed in.
        </p>
        {problem ? (
          <div class="failure" role="alert">
            <Icon name="warning" />
            <div>
              <p>{problem.message}</p>
              {problem.next ? <p class="next-step">{problem.next}</p> : null}
            </div>
          </div>
        ) : null}
        <label for="token">Gateway token or password</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          spellcheck={false}
          placeholder="paste it here"
          value={token.value}
          onInput={(event) => {
            token.value = event.currentTarget.value;
          }}
        />
        <button type="submit" class="button primary" disabled={token.value.trim() === ''}>
          Connect
        </button>
        <p class="small-print">
          The token stays in this tab and is sent to {location.host} only. Closing the tab forgets it.
        </p>
      </form>
    </main>
  );
}
