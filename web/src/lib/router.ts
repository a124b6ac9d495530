// Which page the address names: `#/members?sort=share`. The hash, so that any server and any prefix will do.
export const PAGES = ['overview', 'ring', 'members', 'resize', 'topologies', 'hotkeys', 'registry'] as const;
export type Page = (typeof PAGES)[number];

export interface Place {
  page: Page;
  query: URLSearchParams;
}

export function parseHash(hash: string): Place {
  const text = hash.replace(/^#\/?/, '');
  const [path = '', query = ''] = text.split('?', 2);
  const page = PAGES.find((one) => one === path) ?? 'overview';
  return { page, query: new URLSearchParams(query) };
}

export function hrefOf(page: Page, query: Record<string, string> = {}): string {
  const words = new URLSearchParams(query).toString();
  return `#/${page}${words ? `?${words}` : ''}`;
}
