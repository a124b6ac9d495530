// The last minutes of the cluster as curves, with the phases of a resize marked; shared by Overview and Resize.
import { useMemo } from 'preact/hooks';
import { model } from '../api/live';
import type { SeriesMark } from '../api/types';
import { useWords } from '../i18n';
import { useValue } from '../lib/value';
import { Chart } from './chart';

type Column = readonly (number | null)[];

export interface Columns {
  times: readonly number[];
  qps: Column;
  hitRate: Column;
  p99: Column;
  origin: Column;
  errors: Column;
  moved: Column;
  marks: readonly SeriesMark[];
}

export function useColumns(): Columns | null {
  const series = useValue(model, (now) => now.series);
  return useMemo(() => {
    if (!series) return null;
    const column = (name: string): Column => series.columns[name] ?? [];
    return {
      times: column('at_ms').map((at) => (at ?? 0) / 1000),
      qps: column('qps'),
      hitRate: column('hit_rate'),
      p99: column('p99_ms'),
      origin: column('origin_qps'),
      errors: column('errors_per_second'),
      moved: column('keys_per_second'),
      marks: series.marks,
    };
  }, [series]);
}

export function SeriesCharts({ resize = false }: { resize?: boolean }) {
  const { t, format } = useWords();
  const columns = useColumns();
  if (!columns) return <p class="empty">{t('chart.empty')}</p>;
  const { times, marks } = columns;
  return (
    <div class="charts">
      <Chart title={t('tile.hitRate')} times={times} values={columns.hitRate} marks={marks} show={(v) => format.percent(v)} colour="--good" floor={1} ceiling={1} />
      <Chart title={t('tile.origin')} times={times} values={columns.origin} marks={marks} show={format.rate} colour="--critical" />
      <Chart title={t('tile.p99')} times={times} values={columns.p99} marks={marks} show={format.milliseconds} colour="--violet" />
      {resize ? <Chart title={t('chart.moved')} times={times} values={columns.moved} marks={marks} show={format.rate} colour="--accent" />
              : <Chart title={t('tile.qps')} times={times} values={columns.qps} marks={marks} show={format.rate} colour="--accent" />}
    </div>
  );
}
