import { useSignal } from '@preact/signals';
import type { JSX, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { type ConversationItem, ConversationView } from '#client';
import { Answer, FailureBox, Working } from './answer.tsx';
import { ApprovalQuestion } from './approval-question.tsx';
import { EmptyState } from './empty-state.tsx';
import { Icon } from './icons.tsx';
import { MarkdownView } from './markdown-view.tsx';
import { PersonMessage } from './person-message.tsx';
import { useStore } from './store-context.ts';
import { asksAbout } from './tool-card.tsx';

/** Closer to the end than this counts as at the end: new words then keep the view there. */
const AT_END_PX = 60;

export function Transcript(): JSX.Element {
  const store = useStore();
  const conversation = store.conversation.value;
  const view = useRef(new ConversationView());
  const items = view.current.items(conversation);
  const drawn = useDrawnItems(items);
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const away = useSignal(false);
  const key = conversation.sessionKey;
  const asked = store.approvals.value.filter(({ request }) => request.sessionKey === key);
  const unplaced = asked.filter((approval) => !items.some((item) => holdsCall(item, approval)));
  const ownLast = conversation.sent.at(-1)?.runId;

  const toEnd = () => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  const scrolled = () => {
    const element = scroller.current;
    if (!element) return;
    follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < AT_END_PX;
    away.value = !follows.current;
  };
  useLayoutEffect(() => {
    follows.current = true;
    away.value = false;
  }, [key, ownLast]);
  useLayoutEffect(() => {
    if (follows.current) toEnd();
  });
  // A card that opens, a font that arrives, the keyboard of a phone: the height changes without a new item.
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (follows.current) toEnd();
    });
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    return () => observer.disconnect();
  }, []);

  const failure = store.historyFailure.value;
  return (
    <div class="transcript-frame">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the transcript */}
      <div class="transcript" ref={scroller} onScroll={scrolled} tabIndex={0} role="log" aria-label="Transcript">
        <div class="column">
          {items.length === 0 && conversation.loaded ? <EmptyState /> : null}
          {!conversation.loaded && !failure ? <Loading /> : null}
          {drawn}
          {unplaced.map((approval) => (
            <div key={approval.id} class="tool-card asking alone">
              <ApprovalQuestion approval={approval} />
            </div>
          ))}
          {awaitsFirstWord(items) ? <Working /> : null}
          {failure ? (
            <div class="history-failure">
              <FailureBox failure={{ ...failure, message: `The transcript could not be read: ${failure.message}` }} />
              <button type="button" class="button" onClick={() => store.sync(key)}>
                Try again
              </button>
            </div>
          ) : null}
        </div>
      </div>
      {away.value ? (
        <button
          type="button"
          class="to-end"
          onClick={() => {
            follows.current = true;
            toEnd();
          }}
        >
          <Icon name="down" /> Jump to latest
        </button>
      ) : null}
    </div>
  );
}

/** An item that is the same object as before keeps its vnode, which Preact then skips. */
function useDrawnItems(items: readonly ConversationItem[]): readonly VNode[] {
  const before = useRef<ReadonlyMap<string, { readonly item: ConversationItem; readonly drawn: VNode }>>(new Map());
  const now = new Map<string, { readonly item: ConversationItem; readonly drawn: VNode }>();
  for (const item of items) {
    const known = before.current.get(item.key);
    now.set(item.key, known?.item === item ? known : { item, drawn: <Item key={item.key} item={item} /> });
  }
  before.current = now;
  return [...now.values()].map(({ drawn }) => drawn);
}

const holdsCall = (item: ConversationItem, approval: Parameters<typeof asksAbout>[0]): boolean =>
  item.kind === 'answer' && item.parts.some((part) => part.kind === 'tool' && asksAbout(approval, part));

/** The gateway has the message, the model has not begun. */
const awaitsFirstWord = (items: readonly ConversationItem[]): boolean => {
  const last = items.at(-1);
  return last?.kind === 'person' && last.status === 'sent' && Date.now() - last.at < 10 * 60_000;
};

function Item({ item }: { readonly item: ConversationItem }): JSX.Element {
  if (item.kind === 'person') return <PersonMessage item={item} />;
  if (item.kind === 'answer') return <Answer item={item} />;
  return (
    <aside class="notice" aria-label="From the gateway">
      <Icon name="info" />
      <MarkdownView text={item.text} streaming={false} />
    </aside>
  );
}

function Loading(): JSX.Element {
  return (
    <div class="loading" role="status" aria-label="Loading the transcript">
      <span />
      <span />
      <span />
    </div>
  );
}
