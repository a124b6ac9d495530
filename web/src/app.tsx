// The frame of every page: who and how well, where to, what the server's stream is doing, and the page itself.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ComponentType } from 'preact';
import { connection, model, reconnectNow } from './api/live';
import { useWords, type Language } from './i18n';
import { hrefOf, PAGES, parseHash, type Page, type Place } from './lib/router';
import { chooseLanguage, chooseTheme, keepToken, language, theme, token, type Theme } from './lib/settings';
import { useValue } from './lib/value';
import { askForToken, notice } from './ui/actions';
import { DialogHost } from './ui/dialog';
import { Chip, Loading, type Tone } from './ui/parts';
import { Overview } from './pages/overview';
import { RingPage } from './pages/ring';
import { MembersPage } from './pages/members';
import { ResizePage } from './pages/resize';
import { TopologiesPage } from './pages/topologies';
import { HotKeysPage } from './pages/hotkeys';
import { RegistryPage } from './pages/registry';

const COMPONENTS: Record<Page, ComponentType<{ place: Place }>> = {
  overview: Overview, ring: RingPage, members: MembersPage, resize: ResizePage, topologies: TopologiesPage,
  hotkeys: HotKeysPage, registry: RegistryPage,
};

const NOTICE_MS = 12_000;
export const HEALTH_TONES: Record<'ok' | 'warning' | 'critical', Tone> = { ok: 'good', warning: 'warning', critical: 'critical' };

function usePlace(): Place {
  const [place, setPlace] = useState(() => parseHash(location.hash));
  useEffect(() => {
    const look = (): void => setPlace(parseHash(location.hash));
    addEventListener('hashchange', look);
    return () => removeEventListener('hashchange', look);
  }, []);
  return place;
}

// The time, once a second while it matters.
function useNow(running: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!running) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return now;
}

// Said once, when it changes (role=status); the seconds that count on are not read out again and again.
function ConnectionBar() {
  const { t, format } = useWords();
  const state = useValue(connection);
  const lost = state.state === 'lost' || (state.state === 'connecting' && state.heardMs > 0);
  const now = useNow(lost);
  return (
    <div role="status">
      {lost && (
        <div class="bar warning">
          <strong>{t('connection.lost')}</strong>{' '}
          <span aria-live="off">
            {state.heardMs > 0
              ? t('connection.age', { age: format.duration(Math.max(0, Math.round((now - state.heardMs) / 1000))) })
              : t('connection.never')}{' '}
            {state.retryMs > now
              ? t('connection.retry', { wait: format.duration(Math.ceil((state.retryMs - now) / 1000)) })
              : t('connection.trying')}
          </span>
          <button type="button" onClick={reconnectNow}>{t('connection.now')}</button>
        </div>
      )}
    </div>
  );
}

function NoticeBar() {
  const { t, language: lang } = useWords();
  const shown = useValue(notice);
  useEffect(() => {
    if (!shown || shown.tone === 'critical') return undefined; // A fault stays until it is put away.
    const timer = setTimeout(() => notice.set(null), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [shown]);
  return (
    <div role={shown?.tone === 'critical' ? 'alert' : 'status'}>
      {shown && (
        <div class={`bar ${shown.tone}`}>
          <span lang={shown.english && lang !== 'en' ? 'en' : undefined}>{shown.text}</span>
          <button type="button" class="quiet" aria-label={t('dialog.close')} onClick={() => notice.set(null)}>✕</button>
        </div>
      )}
    </div>
  );
}

function Settings() {
  const { t } = useWords();
  const lang = useValue(language);
  const chosen = useValue(theme);
  const kept = useValue(token);
  return (
    <div class="settings">
      <select aria-label={t('settings.language')} value={lang} onChange={(event) => chooseLanguage(event.currentTarget.value as Language)}>
        <option value="en" lang="en">English</option>
        <option value="zh" lang="zh-CN">简体中文</option>
      </select>
      <select aria-label={t('settings.theme')} value={chosen} onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}>
        <option value="system">{t('theme.system')}</option>
        <option value="light">{t('theme.light')}</option>
        <option value="dark">{t('theme.dark')}</option>
      </select>
      {kept ? (
        <button type="button" title={t('token.keptHint')} onClick={() => keepToken(null)}>{t('token.forget')}</button>
      ) : (
        <button type="button" title={t('token.noneHint')} onClick={() => void askForToken()}>{t('token.give')}</button>
      )}
    </div>
  );
}

function Header() {
  const { t } = useWords();
  const overview = useValue(model, (now) => now.overview);
  const state = useValue(connection, (now) => now.state);
  return (
    <header class="top">
      <a class="brand" href={hrefOf('overview')}>
        <img src="./favicon.svg" alt="" width="26" height="26" />
        <span>Ringshift</span>
      </a>
      {overview && (
        <span class="cluster">
          <span class="cluster-name" title={t('cluster.name')}>{overview.cluster}</span>
          {state === 'live' ? <Chip tone={HEALTH_TONES[overview.health]}>{t(`health.${overview.health}`)}</Chip>
                            : <Chip tone="quiet">{t('connection.stale')}</Chip>}
        </span>
      )}
      <Settings />
    </header>
  );
}

function Nav({ page }: { page: Page }) {
  const { t } = useWords();
  const resize = useValue(model, (now) => now.resize?.state);
  const busy = resize !== undefined && resize !== 'idle' && resize !== 'finished' && resize !== 'failed';
  const alerts = useValue(model, (now) => now.overview?.alerts.length ?? 0);
  return (
    <nav aria-label={t('nav.label')}>
      <ul>
        {PAGES.map((one) => (
          <li key={one}>
            <a href={hrefOf(one)} aria-current={one === page ? 'page' : undefined}>
              {t(`nav.${one}`)}
              {one === 'resize' && busy && <span class="live-dot" title={t('nav.running')}><span class="unseen">{t('nav.running')}</span></span>}
              {one === 'overview' && alerts > 0 && <span class="badge" title={t('overview.alerts')}>{alerts}</span>}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

export function App() {
  const { t } = useWords();
  const place = usePlace();
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  const lost = useValue(connection, (now) => now.state === 'lost');
  const begun = useValue(model, (now) => now.overview !== null);
  const cluster = useValue(model, (now) => now.overview?.cluster ?? '');
  const title = t(`nav.${place.page}`);
  useEffect(() => {
    // A new page begins at its heading, for keyboards and screen readers as for eyes; not the first one.
    if (first.current) first.current = false;
    else {
      heading.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
  }, [place.page]);
  useEffect(() => {
    document.title = [title, cluster, 'Ringshift'].filter((part) => part !== '').join(' · ');
  }, [title, cluster]);
  const Content = COMPONENTS[place.page];
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault(); // The hash says which page it is.
        heading.current?.focus();
      }}>{t('skip')}</a>
      <Header />
      <div class="frame">
        <Nav page={place.page} />
        <main id="main">
          <ConnectionBar />
          <NoticeBar />
          <h1 ref={heading} tabIndex={-1}>{title}</h1>
          {begun ? <Content place={place} />
                 : lost ? <p class="empty">{t('connection.nothing')}</p> : <Loading />}
        </main>
      </div>
      <DialogHost />
    </>
  );
}
