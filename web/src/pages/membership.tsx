// The policy that makes members of instances: what its source says, who could join and why he does not, who is gone and
// when he leaves. Nothing is shown where there is no policy.
import { model } from '../api/live';
import type { Candidate, Membership } from '../api/types';
import { useWords, wordsOf } from '../i18n';
import { language } from '../lib/settings';
import { useValue } from '../lib/value';
import { Chip, Facts, Said, Section, type Tone } from '../ui/parts';
import { propose } from '../ui/propose';
import { Table, type Column } from '../ui/table';

const SOURCES: Record<Membership['source']['state'], Tone> = { ok: 'good', trouble: 'critical', held: 'warning', unknown: 'quiet' };
const INSTANCES: Record<Candidate['state'], Tone> = { ready: 'good', unhealthy: 'critical', draining: 'warning' };

// Why something is not done: the server's sentence, and before it, in another language, what it is about.
function Why({ code, text }: { code: string; text: string }) {
  const { language: lang, given } = useWords();
  if (text === '') return <>–</>;
  return <span class="wrap">{lang !== 'en' && code !== '' && <strong>{given('why', code)} </strong>}<Said>{text}</Said></span>;
}

function admit({ id, address, weight, zone, host }: Candidate): void {
  const { t } = wordsOf(language.get());
  void propose({
    title: t('admit.title', { id }),
    intro: t('admit.intro', { id, address }),
    change: { edit: { add: [{ id, address, weight, ...(zone ? { zone } : {}), ...(host ? { host } : {}) }], retire: false } },
    path: `/membership/${encodeURIComponent(id)}/admit`,
    body: {},
    confirm: t('admit.confirm'),
  });
}

function SourceCard({ membership }: { membership: Membership }) {
  const { t, n, format } = useWords();
  const led = useValue(model, (now) => now.overview?.controller != null);
  const { source, rules, last_change: last } = membership;
  return (
    <div class="card">
      <p role="status">
        <Chip tone={SOURCES[source.state]}>{t(`source.${source.state}`)}</Chip>{' '}
        {source.since_ms !== null && t('membership.since', { time: format.time(source.since_ms / 1000) })}{' '}
        {source.error !== '' && <Said>{source.error}</Said>}
      </p>
      {(source.state === 'held' || source.state === 'trouble') && <p class="note">{t(`membership.${source.state}`)}</p>}
      {!membership.reported && <p class="note">{t('membership.notReported')}</p>}
      {membership.reported && !led && <p class="note">{t('membership.old')}</p>}
      <Facts facts={[
        [t('membership.source'), source.name || rules?.source || '–'],
        rules ? [t('membership.admission'), t(`admission.${rules.admit}`)] : null,
        rules ? [t('membership.leaving'), rules.remove_after_seconds === null ? t('membership.never')
          : `${t('membership.after', { time: format.duration(rules.remove_after_seconds), most: rules.at_most })} ${n('membership.floor', rules.floor)}`] : null,
        membership.cooldown_until_ms !== null ? [t('membership.cooldown'), format.time(membership.cooldown_until_ms / 1000)] : null,
        last ? [t('membership.lastChange'), (
          <>
            {t(last.joins ? 'membership.joined' : 'membership.left', { id: last.member, time: format.time(last.at_ms / 1000) })}{' '}
            {last.error !== '' && <><Chip tone="critical">{t('audit.refused')}</Chip> <span class="wrap"><Said>{last.error}</Said></span></>}
          </>)] : null,
      ]} />
    </div>
  );
}

export function MembershipSections() {
  const { t, n, format } = useWords();
  const membership = useValue(model, (now) => now.membership);
  if (!membership?.active) return null;
  const candidates: Column<Candidate>[] = [
    { name: 'id', title: t('membership.instance'), sort: (row) => row.id, show: (row) => <code>{row.id}</code> },
    { name: 'state', title: t('column.state'), sort: (row) => row.state, show: (row) => <Chip tone={INSTANCES[row.state]}>{t(`instanceState.${row.state}`)}</Chip> },
    { name: 'why', title: t('membership.why'), sort: (row) => row.code, show: (row) => (
      <>{row.why_not !== '' && <><Chip tone="warning">{t('membership.cannot')}</Chip>{' '}</>}<Why code={row.code} text={row.waits_for} /></>) },
    { name: 'action', title: t('column.action'), show: (row) => (row.admissible
      ? <button type="button" aria-label={t('admit.open', { id: row.id })} onClick={() => admit(row)}>{t('admit.action')}</button> : '–') },
    { name: 'address', title: t('column.address'), sort: (row) => row.address, show: (row) => <code>{row.address}</code> },
    { name: 'weight', title: t('fact.weight'), numeric: true, sort: (row) => row.weight, show: (row) => format.decimal(row.weight) },
    { name: 'zone', title: t('fact.zone'), sort: (row) => row.zone, show: (row) => row.zone || '–' },
  ];
  const gone: Column<Membership['gone'][number]>[] = [
    { name: 'id', title: t('column.member'), sort: (row) => row.id, show: (row) => <code>{row.id}</code> },
    { name: 'since', title: t('membership.goneSince'), sort: (row) => row.since_ms, show: (row) => (row.since_ms === null ? '–' : format.time(row.since_ms / 1000)) },
    { name: 'keys', title: t('membership.itsKeys'), sort: (row) => Number(row.ejected),
      show: (row) => (row.ejected ? t('membership.ejected') : t('membership.keeps')) },
    { name: 'leaves', title: t('membership.leavesAt'), hint: t('membership.leavesHint'), sort: (row) => row.leaves_at_ms,
      show: (row) => (row.leaves_at_ms === null ? t('membership.notByItself') : format.time(row.leaves_at_ms / 1000)) },
    { name: 'why', title: t('membership.waits'), sort: (row) => row.code, show: (row) => <Why code={row.code} text={row.waits_for} /> },
  ];
  const elsewhere: Column<Membership['elsewhere'][number]>[] = [
    { name: 'id', title: t('column.member'), sort: (row) => row.id, show: (row) => <code>{row.id}</code> },
    { name: 'member', title: t('membership.memberAt'), show: (row) => <code>{row.member_address}</code> },
    { name: 'instance', title: t('membership.instanceAt'), show: (row) => <code>{row.instance_address}</code> },
  ];
  return (
    <>
      <Section title={t('membership.title')}><SourceCard membership={membership} /></Section>
      {membership.gone.length > 0 && (
        <Section title={t('membership.gone')}>
          <Table caption={t('membership.gone')} columns={gone} rows={membership.gone} keyOf={(row) => row.id} empty="" />
        </Section>
      )}
      {membership.elsewhere.length > 0 && (
        <Section title={t('membership.elsewhere')}>
          <p class="note">{t('membership.elsewhereNote')}</p>
          <Table caption={t('membership.elsewhere')} columns={elsewhere} rows={membership.elsewhere} keyOf={(row) => row.id} empty="" />
        </Section>
      )}
      <Section title={t('membership.candidates')}>
        <Table caption={t('membership.candidates')} columns={candidates} rows={membership.candidates} keyOf={(row) => row.id}
               order={{ column: 'id', descending: false }} empty={t('membership.none')} />
        {membership.candidates_more > 0 && <p class="note">{n('membership.more', membership.candidates_more)}</p>}
      </Section>
    </>
  );
}
