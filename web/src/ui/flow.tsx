// Who gives to whom, drawn; the table beside it says the same in words.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { layoutFlow, type FlowNode, type Pair } from '../draw/flow';
import { colourOf } from '../draw/colour';
import { useWords } from '../i18n';

interface Props {
  pairs: readonly Pair[];
  indexOf: (id: string) => number | undefined;
  show: (share: number) => string;
  total: string; // In words, for the text alternative.
}

export function FlowDiagram({ pairs, indexOf, show, total }: Props) {
  const { t, n } = useWords();
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    setWidth(element.clientWidth);
    const watcher = new ResizeObserver(() => setWidth(element.clientWidth));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  const flow = useMemo(() => layoutFlow(pairs, { width: width || 600, nodesMax: 12 }), [pairs, width]);
  const colour = (id: string | null): string => {
    const index = id === null ? undefined : indexOf(id);
    return index === undefined ? 'var(--muted)' : colourOf(index);
  };
  const name = (node: { id: string | null; count: number }): string => node.id ?? n('flow.others', node.count);
  const label = (node: FlowNode, side: 'left' | 'right') => {
    const space = side === 'left' ? node.x : flow.width - node.x - flow.nodeWidth;
    const letters = Math.max(4, Math.floor(space / 7.5));
    const text = name(node);
    const short = text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
    const x = side === 'left' ? node.x - 8 : node.x + flow.nodeWidth + 8;
    const middle = node.y + node.height / 2;
    return (
      <text x={x} y={middle} text-anchor={side === 'left' ? 'end' : 'start'}>
        <tspan x={x} dy={node.height < 26 ? '0.35em' : '-0.2em'} class="flow-name">{short}</tspan>
        {node.height >= 26 && <tspan x={x} dy="1.25em" class="flow-share">{show(node.share)}</tspan>}
        <title>{`${text}: ${show(node.share)}`}</title>
      </text>
    );
  };
  const byGiver = flow.left.length >= flow.right.length; // The side with more colours to tell bands apart.
  if (flow.links.length === 0) return <p class="empty">{t('flow.none')}</p>;
  return (
    <div class="flow" ref={host}>
      <svg width={flow.width} height={flow.height + 24} viewBox={`0 -22 ${flow.width} ${flow.height + 24}`} role="img"
           aria-label={t('flow.words', { total, givers: flow.left.length, takers: flow.right.length })}>
        <text x={(flow.left[0]?.x ?? 0) + flow.nodeWidth} y={-8} text-anchor="end" class="flow-head">{t('flow.gives')}</text>
        <text x={flow.right[0]?.x ?? 0} y={-8} class="flow-head">{t('flow.takes')}</text>
        {flow.links.map((link) => (
          <path key={`${link.from}>${link.to}`} d={link.path} class="flow-link" style={{ fill: colour(byGiver ? link.from : link.to) }}>
            <title>{`${link.from ?? t('flow.other')} → ${link.to ?? t('flow.other')}: ${show(link.share)}`}</title>
          </path>
        ))}
        {[...flow.left.map((node) => ({ node, side: 'left' as const })), ...flow.right.map((node) => ({ node, side: 'right' as const }))].map(
          ({ node, side }) => (
            <g key={`${side}${node.id}`}>
              <rect x={node.x} y={node.y} width={flow.nodeWidth} height={node.height} rx="2" style={{ fill: colour(node.id) }} />
              {label(node, side)}
            </g>
          ),
        )}
      </svg>
    </div>
  );
}
