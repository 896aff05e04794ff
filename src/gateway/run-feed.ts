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
  seq: number;
};

/** Follows every run: what it has said so far, and who listens to which. One subscription to the dispatcher serves all. */
export class RunFeed {
  readonly #live = new Map<string, LiveRun>();
  readonly #followers = new Map<string, Set<(notice: RunNotice) => void>>();

  /** Takes in a notice, then hands it to those who follow its run. */
  take(notice: RunNotice): LiveRun | undefined {
    const live = this.#update(notice);
    for (const follower of this.#followers.get(placeOf(notice.sessionKey, notice.runId)) ?? []) follower(notice);
    return live;
  }

  /** Before the message is submitted, so that nothing is missed. */
  follow(key: SessionKey, runId: string, follower: (notice: RunNotice) => void): () => void {
    const place = placeOf(key, runId);
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

  ofSession(key: SessionKey): LiveRun | undefined {
    for (const live of this.#live.values()) if (live.sessionKey === key) return live;
    return undefined;
  }

  #update({ runId, sessionKey, seq, event }: RunNotice): LiveRun | undefined {
    const place = placeOf(sessionKey, runId);
    if (event.type === 'run-start') {
      const live: LiveRun = {
        runId,
        sessionKey,
        startedAt: event.at,
        text: '',
        thinking: '',
        runText: '',
        turnStart: 0,
        seq,
      };
      this.#live.set(place, live);
      return live;
    }
    const live = this.#live.get(place);
    if (!live) return undefined;
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
    } else if (event.type === 'message' && event.message.role === 'assistant') {
      live.text = '';
      live.thinking = '';
    } else if (event.type === 'run-end') this.#live.delete(place);
    return live;
  }
}

const placeOf = (key: SessionKey, runId: string): string => `${key}\n${runId}`;
