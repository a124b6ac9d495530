// A member's colour: the same on every page and after every change of its neighbours, so it is made from the id alone.
// Eight hues that people with the common colour blindnesses tell apart come first, in the order of the ids; beyond eight
// members hues are spread by the golden angle. Names beside colours say the same: no colour stands alone.
const FIRST = ['#2f6fde', '#d9822b', '#1d8f80', '#b5459b', '#7a8b1c', '#8a5cd0', '#c8443f', '#4aa0c9'];

export function colourOf(index: number): string {
  const named = FIRST[index];
  if (named !== undefined) return named;
  const hue = Math.round((index * 137.508) % 360);
  const light = 44 + (index % 3) * 9;
  return `hsl(${hue} 55% ${light}%)`;
}

// Colours by id; ids in any order give the same map.
export function coloursOf(ids: readonly string[]): Map<string, string> {
  const sorted = [...new Set(ids)].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  return new Map(sorted.map((id, index) => [id, colourOf(index)]));
}
