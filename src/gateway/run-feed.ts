import type { Clock } from '#base';
import type { RunNotice, SessionKey } from '#domain';

/** What is known of a run under way, for a client that was not there from its start. */
export type LiveRun = {
  readonly runId: string;
  readonly sessionKey: SessionKey;
  readonly startedAt: number;
  /** The text of the assistant message that is being written; earlier ones are in the transcript. */
  text: string;
  thinking: string;
  /** All text of the run, messages joined. */
  runText: string;
  /** How long `runText` was when the turn began, to take back what a broken answer had said. */
  turnStart: number;
  /** How many of its messages are stored. */
  messages: number;
  seq: number;
};

/** Follows every run: what it has said so far, and who listens to which. One subscription to the dispatcher serves all. */
export class RunFeed {
  readonly #live = new Map<string, LiveRun>();
  readonly #followers = new Map<string, Set<(notice: RunNotice) => void>>();
  readonly #clock: Clock;
  #beforeJoin: (live: LiveRun) => void = () => undefined;

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
  }

  /** Takes in a notice, then hands it to those who follow its run. */
  take(notice: RunNotice): LiveRun | undefined {
    const live = this.#update(notice);
    for (const follower of this.#followers.get(placeOf(notice)) ?? []) follower(notice);
    return live;
  }

  /** Before the message is submitted, so that nothing is missed. */
  follow(key: SessionKey, runId: string, follower: (notice: RunNotice) => void): () => void {
    const place = placeOf({ sessionKey: key, runId });
    let followers = this.#followers.get(place);
    if (!followers) {
      followers = new Set();
      this.#followers.set(place, followers);
    }
    followers.add(follower);
    return () => {
      followers.delete(follower);
      if (followers.size === 0) this.#followers.delete(place);
    };
  }

  /** What a client that joins now starts from; those that were there before are told as much first. */
  ofSession(key: SessionKey): LiveRun | undefined {
    const live = this.#find(key);
    if (live) this.#beforeJoin(live);
    return live;
  }

  /** @param prepare called before a run's state is handed to one who joins: what was held back of it is to be told */
  onJoin(prepare: (live: LiveRun) => void): void {
    this.#beforeJoin = prepare;
  }

  #find(key: SessionKey): LiveRun | undefined {
    for (const live of this.#live.values()) if (live.sessionKey === key) return live;
    return undefined;
  }

  /** Moves whenever a message of the session's run under way is stored, or a run of it begins or ends. */
  stored(key: SessionKey): string {
    const live = this.#find(key);
    return live ? `${live.runId} ${live.messages}` : '';
  }

  #update(notice: RunNotice): LiveRun | undefined {
    const { event, seq } = notice;
    const place = placeOf(notice);
    if (event.type === 'run-end') {
      const ended = this.#live.get(place);
      this.#live.delete(place);
      if (ended) ended.seq = seq;
      return ended;
    }
    let live = this.#live.get(place);
    if (!live) {
      // A run that goes on after a restart began before anybody listened here.
      live = newLive(notice, event.type === 'run-start' ? event.at : this.#clock.now());
      this.#live.set(place, live);
    }
    live.seq = seq;
    if (event.type === 'turn-start') {
      live.text = '';
      live.thinking = '';
      live.turnStart = live.runText.length;
    } else if (event.type === 'text-delta') {
      live.text += event.text;
      live.runText += event.text;
    } else if (event.type === 'thinking-delta') live.thinking += event.text;
    else if (event.type === 'turn-retry') {
      live.text = '';
      live.thinking = '';
      live.runText = live.runText.slice(0, live.turnStart);
    } else if (event.type === 'message') {
      live.messages++;
      if (event.message.role === 'assistant') {
        live.text = '';
        live.thinking = '';
      }
    }
    return live;
  }
}

const newLive = ({ runId, sessionKey, seq }: RunNotice, startedAt: number): LiveRun => ({
  runId,
  sessionKey,
  startedAt,
  text: '',
  thinking: '',
  runText: '',
  turnStart: 0,
  messages: 0,
  seq,
});

/** Run ids are the callers' keys: they are unique within a session only. */
export const placeOf = ({ sessionKey, runId }: Pick<RunNotice, 'sessionKey' | 'runId'>): string =>
  `${sessionKey}\n${runId}`;
