// The stream of events: keeps `model` as the cluster is now, and `connection` as it stands with the server. Nothing is
// polled. A stream that ends, or is silent for too long, is opened again after a wait with jitter; meanwhile the page
// shows what it had, and how old that is.
import { value } from '../lib/value';
import { waitBefore } from '../lib/backoff';
import { apiUrl } from './client';
import { apply, EVENTS, nothing, type Model } from './model';

export const SILENCE_MS = 20_000; // The series comes once a second, a comment after 15 s of silence.

export interface Connection {
  state: 'connecting' | 'live' | 'lost';
  heardMs: number; // When the last event came; 0: never.
  retryMs: number; // When it is tried again; 0: it is being tried.
}

export const model = value<Model>(nothing);
export const connection = value<Connection>({ state: 'connecting', heardMs: 0, retryMs: 0 });

let source: EventSource | null = null;
let attempt = 0;
let timer = 0;

function lost(): void {
  source?.close();
  source = null;
  clearTimeout(timer);
  const wait = waitBefore(attempt);
  attempt += 1;
  connection.update((now) => ({ state: 'lost', heardMs: now.heardMs, retryMs: Date.now() + wait }));
  timer = window.setTimeout(open, wait);
}

function heard(): void {
  clearTimeout(timer);
  timer = window.setTimeout(lost, SILENCE_MS);
  attempt = 0;
  const now = Date.now();
  const last = connection.get();
  // Once a second is enough for an age in seconds.
  if (last.state !== 'live' || now - last.heardMs >= 1000) connection.set({ state: 'live', heardMs: now, retryMs: 0 });
}

function open(): void {
  clearTimeout(timer);
  timer = window.setTimeout(lost, SILENCE_MS);
  connection.update((now) => ({ ...now, retryMs: 0 }));
  const stream = new EventSource(apiUrl('/events'));
  source = stream;
  stream.onerror = () => {
    if (stream === source) lost();
  };
  for (const name of EVENTS) {
    stream.addEventListener(name, (event) => {
      if (stream !== source) return;
      heard();
      model.set(apply(model.get(), name, JSON.parse((event as MessageEvent<string>).data)));
    });
  }
}

export function reconnectNow(): void {
  source?.close();
  source = null;
  open();
}

export function connect(): void {
  open();
  window.addEventListener('online', () => {
    if (connection.get().state !== 'live') reconnectNow();
  });
}
