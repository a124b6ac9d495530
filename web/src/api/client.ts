// Requests to the admin API. Every failure is an ApiError with the server's own words, or says that there was no answer.
import { token } from '../lib/settings';

export class ApiError extends Error {
  constructor(
    readonly status: number, // 0: no answer.
    readonly code: string,
    message: string,
    readonly fix = '',
  ) {
    super(message);
  }
}

const TIMEOUT_MS = 40_000; // The controller is waited for up to 30 s.

export const apiUrl = (path: string): string => new URL(`api/v1${path}`, document.baseURI).href;

async function request<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(apiUrl(path), {
      method,
      headers: { Accept: 'application/json', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
      cache: 'no-store',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (error) {
    throw new ApiError(0, 'no_answer', error instanceof Error ? error.message : String(error));
  }
  const text = await response.text();
  let answer: unknown;
  try {
    answer = text === '' ? null : JSON.parse(text);
  } catch {
    answer = null;
  }
  if (response.ok) return answer as T;
  const said = (answer as { error?: { code?: string; message?: string; fix?: string } } | null)?.error;
  throw new ApiError(response.status, said?.code ?? 'internal', said?.message ?? `HTTP ${response.status}: ${text.slice(0, 200)}`,
                     said?.fix ?? '');
}

export const get = <T>(path: string): Promise<T> => request<T>('GET', path);
// A question with a body; changes nothing and needs no token.
export const ask = <T>(path: string, body: unknown): Promise<T> => request<T>('POST', path, body);
// An action. REQUIRES: a token is kept; see ui/actions.tsx, which asks for it.
export const act = <T>(path: string, body: unknown = {}): Promise<T> =>
  request<T>('POST', path, body, { Authorization: `Bearer ${token.get() ?? ''}` });
export const getWithToken = <T>(path: string, candidate: string): Promise<T> =>
  request<T>('GET', path, undefined, { Authorization: `Bearer ${candidate}` });
