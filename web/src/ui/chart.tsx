// A time series as a figure: a heading with the value now, the curve (uPlot), the phases of a resize as marks, and the
// same in words for who does not see it. With no points it says so instead of drawing an empty frame.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import type { SeriesMark } from '../api/types';
import { useWords } from '../i18n';
import { theme } from '../lib/settings';
import { useValue } from '../lib/value';

type Numbers = readonly (number | null)[];

interface Props {
  title: string;
  times: readonly number[]; // Unix seconds.
  values: Numbers;
  show: (value: number | null) => string;
  marks: readonly SeriesMark[];
  floor?: number; // The scale begins here at the latest; 0 unless given.
  ceiling?: number; // The scale ends here at most.
  colour?: string; // Name of a CSS variable.
  height?: number;
}

const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function extremes(values: Numbers): { low: number; high: number } | null {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? { low, high } : null;
}

export function lastOf(values: Numbers): number | null {
  for (let i = values.length - 1; i >= 0; i -= 1) {
    const value = values[i];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

const MARK_COLOURS: Record<SeriesMark['event'], string> = {
  begin: '--accent', phase: '--muted', pause: '--warning', resume: '--accent', rollback: '--critical', finished: '--good',
  failed: '--critical',
};

export function Chart(props: Props) {
  const { t, format, language } = useWords();
  const chosenTheme = useValue(theme);
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const range = extremes(props.values);
  const drawn = range !== null && props.times.length > 1;
  const height = props.height ?? 150;

  useEffect(() => {
    const element = host.current;
    if (!drawn || !element) return undefined;
    const colour = props.colour ?? '--accent';
    const axis = (): string => css('--muted');
    const grid = { stroke: () => css('--grid'), width: 1 };
    const options: uPlot.Options = {
      width: element.clientWidth || 300,
      height,
      padding: [18, 8, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, sync: { key: 'ringshift' }, y: false },
      scales: {
        x: { time: true },
        y: {
          range: (_plot, low, high) => {
            const { floor = 0, ceiling } = latest.current;
            const from = Math.min(floor, Number.isFinite(low) ? low : floor);
            const to = Number.isFinite(high) && high > from ? high + (high - from) * 0.08 : from + 1;
            return [from, ceiling === undefined ? to : Math.min(to, ceiling)];
          },
        },
      },
      axes: [
        {
          stroke: axis, grid: { show: false }, ticks: { show: false }, size: 24, space: 90, font: '11px system-ui, sans-serif',
          // With seconds where a minute has more than one mark.
          values: (_plot, splits) => splits.map((at) =>
            format.clock(at).slice(0, (splits[1] ?? 0) - (splits[0] ?? 0) < 60 ? undefined : 5)),
        },
        {
          stroke: axis, grid, ticks: { show: false }, size: 64, space: 34, font: '11px system-ui, sans-serif',
          values: (_plot, splits) => splits.map((value) => latest.current.show(value)),
        },
      ],
      series: [{}, { stroke: () => css(colour), width: 1.6, fill: () => `${css(colour)}22`, points: { show: false }, spanGaps: false }],
      hooks: {
        draw: [
          (chart) => {
            const { ctx, bbox } = chart;
            ctx.save();
            ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
            ctx.textBaseline = 'bottom';
            ctx.textAlign = 'left';
            let free = -Infinity; // Labels that would overlap the last one are left out; the log has them all.
            for (const mark of latest.current.marks) {
              const x = chart.valToPos(mark.at_ms / 1000, 'x', true);
              if (x < bbox.left || x > bbox.left + bbox.width) continue;
              const ink = css(MARK_COLOURS[mark.event]);
              ctx.strokeStyle = ink;
              ctx.setLineDash(mark.event === 'phase' ? [3 * devicePixelRatio, 3 * devicePixelRatio] : []);
              ctx.lineWidth = devicePixelRatio;
              ctx.beginPath();
              ctx.moveTo(x, bbox.top);
              ctx.lineTo(x, bbox.top + bbox.height);
              ctx.stroke();
              const label = markLabel.current(mark);
              const width = ctx.measureText(label).width;
              const at = Math.min(x, bbox.left + bbox.width - width);
              if (at < free) continue;
              ctx.fillStyle = ink;
              ctx.fillText(label, at, bbox.top - 2 * devicePixelRatio);
              free = at + width + 8 * devicePixelRatio;
            }
            ctx.restore();
          },
        ],
      },
    };
    const chart = new uPlot(options, dataOf(latest.current), element);
    plot.current = chart;
    const watcher = new ResizeObserver(() => {
      if (element.clientWidth > 0) chart.setSize({ width: element.clientWidth, height });
    });
    watcher.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const redraw = (): void => chart.redraw(false, true);
    scheme.addEventListener('change', redraw);
    return () => {
      watcher.disconnect();
      scheme.removeEventListener('change', redraw);
      chart.destroy();
      plot.current = null;
    };
  }, [drawn, language, chosenTheme, props.colour, height]);

  const markLabel = useRef<(mark: SeriesMark) => string>(() => '');
  markLabel.current = (mark) =>
    mark.event === 'phase' ? t('mark.phase', { step: mark.step, phase: t(`phase.${mark.phase || 'none'}`) }) : t(`mark.${mark.event}`);

  const data = useMemo(() => dataOf(props), [props.times, props.values]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [data, props.marks]);

  const now = props.show(lastOf(props.values));
  const words = range
    ? t('chart.words', { now, low: props.show(range.low), high: props.show(range.high),
        minutes: Math.max(1, Math.round(((props.times[props.times.length - 1] ?? 0) - (props.times[0] ?? 0)) / 60)) })
    : t('chart.empty');
  return (
    <figure class="chart card">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <span class="chart-now">{range ? now : ''}</span>
      </figcaption>
      {drawn ? (
        <div class="plot" ref={host} role="img" aria-label={`${props.title}: ${words}`} style={{ height: `${height}px` }} />
      ) : (
        <p class="empty" style={{ minHeight: `${height}px` }}>{range ? t('chart.soon') : t('chart.empty')}</p>
      )}
      {range && <p class="chart-words">{t('chart.range', { low: props.show(range.low), high: props.show(range.high) })}</p>}
    </figure>
  );
}

function dataOf(props: Props): uPlot.AlignedData {
  return [props.times as number[], props.values as (number | null)[]];
}
