// The keys that are asked for most, over all routers.
import { model } from '../api/live';
import type { HotKeys } from '../api/types';
import { useWords } from '../i18n';
import { useValue } from '../lib/value';
import { useIndexes } from '../ui/colours';
import { Dot, Loading, Meter } from '../ui/parts';
import { Table, type Column } from '../ui/table';

export function HotKeysPage() {
  const { t, format } = useWords();
  const hot = useValue(model, (now) => now.hotKeys);
  const indexOf = useIndexes();
  if (!hot) return <Loading />;
  const most = hot.keys.reduce((now, one) => Math.max(now, one.requests_per_second), 0);
  const columns: Column<HotKeys['keys'][number]>[] = [
    { name: 'key', title: t('column.key'), sort: (row) => row.key, show: (row) => <code class="key" title={row.key}>{row.key}</code> },
    { name: 'rate', title: t('column.rate'), numeric: true, sort: (row) => row.requests_per_second, show: (row) => (
      <span class="with-meter">{format.rate(row.requests_per_second)} <Meter share={most > 0 ? row.requests_per_second / most : 0} /></span>) },
    { name: 'share', title: t('hotkeys.share'), numeric: true, sort: (row) => row.share, show: (row) => format.percent(row.share, 2) },
    { name: 'member', title: t('column.member'), sort: (row) => row.member, show: (row) => <><Dot index={indexOf(row.member)} /> {row.member}</> },
    { name: 'slice', title: t('key.slice'), numeric: true, sort: (row) => row.slice, show: (row) => format.count(row.slice) },
    { name: 'routers', title: t('hotkeys.routers'), numeric: true, sort: (row) => row.routers, show: (row) => format.count(row.routers) },
  ];
  return (
    <>
      <p class="note">{t('hotkeys.about')}</p>
      <Table caption={t('nav.hotkeys')} columns={columns} rows={hot.keys} keyOf={(row) => row.key_base64} empty={t('hotkeys.none')}
             order={{ column: 'rate', descending: true }} />
    </>
  );
}
