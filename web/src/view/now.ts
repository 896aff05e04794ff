import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

const now = signal(Date.now());
let readers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** The time, to the second, while something on the page shows it. */
export function useNow(): number {
  useEffect(() => {
    if (readers++ === 0) {
      now.value = Date.now();
      timer = setInterval(() => {
        now.value = Date.now();
      }, 1_000);
    }
    return () => {
      if (--readers === 0) clearInterval(timer);
    };
  }, []);
  return now.value;
}
