export type Backoff = {
  readonly firstMs: number;
  readonly factor: number;
  readonly maxMs: number;
  /** 0 to 1: the share of the delay that is random, so that many waiters do not come back at once. */
  readonly jitter: number;
};

/** The wait before attempt number `attempt` (1 = the first retry). `random` is for tests. */
export function backoffMs(policy: Backoff, attempt: number, random: () => number = Math.random): number {
  const whole = Math.min(policy.maxMs, policy.firstMs * policy.factor ** Math.max(0, attempt - 1));
  return Math.round(whole * (1 - policy.jitter * random()));
}
