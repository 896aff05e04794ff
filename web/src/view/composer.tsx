import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Command } from '#client';
import { keepDraft, keptDraft } from '../state/kept.ts';
import { Icon } from './icons.tsx';
import { SessionFacts } from './session-facts.tsx';
import { useStore } from './store-context.ts';

const MESSAGE_LENGTH_MAX = 200_000;

export function Composer(): JSX.Element {
  const store = useStore();
  const key = store.activeKey.value;
  const draft = useSignal('');
  const chosen = useSignal(0);
  const menuClosed = useSignal(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const running = store.running.value;
  const { status } = store.connection.value;
  const blocked = blockedBecause(status);
  const tooLong = draft.value.length > MESSAGE_LENGTH_MAX;
  const canSend = blocked === undefined && draft.value.trim() !== '' && !tooLong;
  const offered = menuClosed.value ? [] : matching(store.commands.value, draft.value);
  const picked = Math.min(chosen.value, offered.length - 1);

  useEffect(() => {
    draft.value = keptDraft(key);
    // On a phone the keyboard would cover the transcript that was just opened.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus();
  }, [key]);
  useLayoutEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = 'auto';
    element.style.height = `${element.scrollHeight}px`;
  }, [draft.value]);

  const change = (text: string) => {
    draft.value = text;
    chosen.value = 0;
    menuClosed.value = false;
    keepDraft(key, text);
  };
  const send = () => {
    if (!canSend) return;
    store.send(draft.value.trim());
    change('');
  };
  const complete = (command: Command | undefined) => {
    if (!command) return;
    change(`/${command.name}`);
    menuClosed.value = true;
    field.current?.focus();
  };
  const keyPressed = (event: KeyboardEvent) => {
    // Enter also confirms a word of an input method; that one is not ours.
    if (event.isComposing) return;
    if (offered.length > 0 && menuKey(event)) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === 'Escape' && running) void store.stop();
  };
  const menuKey = (event: KeyboardEvent): boolean => {
    const exact = offered[picked] !== undefined && `/${offered[picked].name}` === draft.value.trim();
    if (event.key === 'ArrowDown') chosen.value = (picked + 1) % offered.length;
    else if (event.key === 'ArrowUp') chosen.value = (picked + offered.length - 1) % offered.length;
    else if (event.key === 'Escape') menuClosed.value = true;
    else if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey && !exact)) complete(offered[picked]);
    else return false;
    event.preventDefault();
    return true;
  };

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="column">
        {offered.length > 0 ? (
          <div class="command-menu" id="command-menu" role="listbox" aria-label="Commands">
            {offered.map((command, index) => (
              <div
                key={command.name}
                id={`command-${command.name}`}
                role="option"
                tabIndex={-1}
                aria-selected={index === picked}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => complete(command)}
                onKeyDown={() => undefined}
              >
                <code>/{command.name}</code>
                <span>{command.description}</span>
              </div>
            ))}
          </div>
        ) : null}
        <div class="composer-box">
          <textarea
            ref={field}
            rows={1}
            value={draft.value}
            placeholder={running ? 'Add to the run under way…' : 'Ask or tell your agent something…'}
            aria-label="Message"
            aria-describedby="composer-hint"
            aria-controls={offered.length > 0 ? 'command-menu' : undefined}
            aria-activedescendant={offered[picked] ? `command-${offered[picked].name}` : undefined}
            enterkeyhint="send"
            onInput={(event) => change(event.currentTarget.value)}
            onKeyDown={keyPressed}
          />
          {running ? (
            <button type="button" class="round stop" onClick={() => store.stop()} aria-label="Stop" title="Stop (Esc)">
              <Icon name="stop" />
            </button>
          ) : null}
          <button
            type="submit"
            class="round send"
            disabled={!canSend}
            aria-label="Send"
            title={blocked ?? 'Send (Enter)'}
          >
            <Icon name="send" />
          </button>
        </div>
        <div class="composer-line">
          <span id="composer-hint" class={blocked || tooLong ? 'blocked' : ''}>
            {hint(blocked, tooLong, running)}
          </span>
          <SessionFacts />
        </div>
      </div>
    </form>
  );
}

function hint(blocked: string | undefined, tooLong: boolean, running: boolean): string {
  if (tooLong) return `Too long: at most ${MESSAGE_LENGTH_MAX.toLocaleString()} characters`;
  if (blocked) return blocked;
  return running ? 'Enter adds to the run · Esc stops it' : 'Enter sends · Shift+Enter for a new line · / for commands';
}

function blockedBecause(status: string): string | undefined {
  if (status === 'connected' || status === 'reconnecting') return undefined;
  return status === 'refused' ? 'The gateway refused this page' : 'Connecting to the gateway…';
}

function matching(commands: readonly Command[], draft: string): readonly Command[] {
  const word = /^\/([\w-]*)$/.exec(draft)?.[1]?.toLowerCase();
  return word === undefined ? [] : commands.filter(({ name }) => name.startsWith(word)).slice(0, 8);
}
