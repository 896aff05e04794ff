import type { ModelProfile, TokenCounts } from '#contract';
import type { Usage } from '#domain';

const PER_MILLION = 1_000_000;

/** Counts and what they cost at the model's prices. */
export function usageOf(counts: TokenCounts, profile: ModelProfile): Usage {
  const price = (tokens: number, perMillion: number) => (tokens * perMillion) / PER_MILLION;
  const cost = {
    input: price(counts.input, profile.cost.input),
    output: price(counts.output, profile.cost.output),
    cacheRead: price(counts.cacheRead, profile.cost.cacheRead),
    cacheWrite: price(counts.cacheWrite, profile.cost.cacheWrite),
  };
  return {
    ...counts,
    totalTokens: counts.input + counts.output + counts.cacheRead + counts.cacheWrite,
    cost: { ...cost, total: cost.input + cost.output + cost.cacheRead + cost.cacheWrite },
  };
}
