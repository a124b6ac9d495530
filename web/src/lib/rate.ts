// The rate slider's scale: logarithmic, since what matters of a rate is its size. Positions are 0..1000.
export const RATE_MIN = 10;
export const RATE_MAX = 1_000_000;
const DECADES = Math.log10(RATE_MAX / RATE_MIN);

export function rateAt(position: number): number {
  const exact = RATE_MIN * 10 ** ((Math.min(1000, Math.max(0, position)) / 1000) * DECADES);
  const step = 10 ** (Math.floor(Math.log10(exact)) - 1); // Two digits that count.
  return Math.round(exact / step) * step;
}

export function positionOf(rate: number): number {
  const bounded = Math.min(RATE_MAX, Math.max(RATE_MIN, rate));
  return Math.round((Math.log10(bounded / RATE_MIN) / DECADES) * 1000);
}
