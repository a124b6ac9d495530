// A member's colour by its index. The first eight are told apart with the common colour blindnesses, too; beyond them,
// hues are spread by the golden angle. No colour stands alone: a name or a number is always beside it.
const FIRST = ['#2f6fde', '#d9822b', '#1d8f80', '#b5459b', '#7a8b1c', '#8a5cd0', '#c8443f', '#4aa0c9'];

export function colourOf(index: number): string {
  const named = FIRST[index];
  if (named !== undefined) return named;
  return `hsl(${Math.round((index * 137.508) % 360)} 55% ${44 + (index % 3) * 9}%)`;
}
