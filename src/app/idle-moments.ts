import type { Clock } from '#base';
import type { Dispatch } from '#dispatch';

const RUNS_BEFORE = 20;
const IDLE_MS = 1_000;

/** Calls `action` when nothing has run for a moment after a good many runs. @returns how to stop watching */
export function onIdleMoments(dispatch: Dispatch, clock: Clock, action: () => void): () => void {
  let runs = 0;
  let cancel: (() => void) | undefined;
  const leave = dispatch.subscribe(({ event }) => {
    if (event.type === 'run-start') {
      cancel?.();
      cancel = undefined;
    }
    if (event.type !== 'run-end') return;
    runs++;
    cancel?.();
    cancel = clock.after(IDLE_MS, () => {
      if (runs < RUNS_BEFORE || dispatch.load().running > 0) return;
      runs = 0;
      action();
    });
  });
  return () => {
    cancel?.();
    leave();
  };
}
