// How long to wait before connecting again: a time drawn evenly up to a bound that doubles (full jitter), so that many
// pages that lost the same server do not come back at once.
export const FIRST_MS = 1000;
export const MOST_MS = 15_000;

export function waitBefore(attempt: number, random: () => number = Math.random): number {
  const bound = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  return 250 + random() * bound;
}
