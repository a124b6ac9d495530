// The circle on a canvas: arcs in their members' colours; the chosen member stands out, a key is a needle. The picture
// is one image for screen readers; the table beside it has the same figures, and choosing is possible there as well.
import { useEffect, useRef, useState } from 'preact/hooks';
import { colourOf } from '../draw/colour';
import { angleOf, arcAt, circleIn, positionAt, type Arc } from '../draw/ring';
import { theme } from '../lib/settings';
import { useValue } from '../lib/value';

interface Props {
  arcs: readonly Arc[];
  indexOf: (id: string) => number | undefined;
  chosen: string | null;
  hovered: string | null;
  needle: number | null; // 0..1
  label: string;
  centre: readonly [string, string];
  onHover(member: string | null): void;
  onChoose(member: string): void;
}

const BAND = 46;

export function CanvasRing(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState(0);
  const chosenTheme = useValue(theme);
  const [scheme, setScheme] = useState(0);

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const watcher = new ResizeObserver(() => setSize(Math.min(element.clientWidth, 520)));
    watcher.observe(element);
    const query = matchMedia('(prefers-color-scheme: dark)');
    const redraw = (): void => setScheme((now) => now + 1);
    query.addEventListener('change', redraw);
    return () => {
      watcher.disconnect();
      query.removeEventListener('change', redraw);
    };
  }, []);

  const { arcs, indexOf, needle } = props;
  const shown = props.hovered ?? props.chosen;
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context || size === 0) return;
    const scale = devicePixelRatio || 1;
    element.width = Math.round(size * scale);
    element.height = Math.round(size * scale);
    context.scale(scale, scale);
    context.clearRect(0, 0, size, size);
    const circle = circleIn(size, size, BAND);
    const middle = (circle.inner + circle.outer) / 2;
    context.lineWidth = circle.outer - circle.inner;
    // One path a member: a thousand members with thousands of arcs are drawn in some milliseconds.
    const paths = new Map<string, Path2D>();
    for (const arc of arcs) {
      let path = paths.get(arc.member);
      if (!path) paths.set(arc.member, (path = new Path2D()));
      const from = angleOf(arc.begin);
      path.moveTo(circle.x + middle * Math.cos(from), circle.y + middle * Math.sin(from));
      path.arc(circle.x, circle.y, middle, from, angleOf(arc.end));
    }
    for (const [member, path] of paths) {
      const index = indexOf(member);
      context.globalAlpha = shown === null || member === shown ? 1 : 0.22;
      context.strokeStyle = index === undefined ? '#888' : colourOf(index);
      context.stroke(path);
    }
    const mine = shown === null ? undefined : paths.get(shown);
    if (mine && shown !== null) {
      // Stands out by place, too, not by colour alone.
      context.globalAlpha = 1;
      context.lineWidth = 8;
      const outside = new Path2D();
      for (const arc of arcs) {
        if (arc.member !== shown) continue;
        const from = angleOf(arc.begin);
        const radius = circle.outer + 7;
        outside.moveTo(circle.x + radius * Math.cos(from), circle.y + radius * Math.sin(from));
        outside.arc(circle.x, circle.y, radius, from, angleOf(arc.end));
      }
      const index = indexOf(shown);
      context.strokeStyle = index === undefined ? '#888' : colourOf(index);
      context.stroke(outside);
    }
    context.globalAlpha = 1;
    if (needle !== null) {
      const angle = angleOf(needle);
      const ink = getComputedStyle(element).color;
      context.strokeStyle = ink;
      context.fillStyle = ink;
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(circle.x + (circle.inner - 26) * Math.cos(angle), circle.y + (circle.inner - 26) * Math.sin(angle));
      context.lineTo(circle.x + (circle.outer + 12) * Math.cos(angle), circle.y + (circle.outer + 12) * Math.sin(angle));
      context.stroke();
      context.beginPath();
      context.arc(circle.x + (circle.outer + 14) * Math.cos(angle), circle.y + (circle.outer + 14) * Math.sin(angle), 5, 0, 2 * Math.PI);
      context.fill();
    }
  }, [arcs, indexOf, shown, needle, size, chosenTheme, scheme]);

  const under = (event: MouseEvent): string | null => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return null;
    const position = positionAt(circleIn(size, size, BAND), event.clientX - box.left, event.clientY - box.top);
    if (position === null) return null;
    return arcs[arcAt(arcs, position)]?.member ?? null;
  };
  return (
    <div class="ring-host" ref={host}>
      <canvas ref={canvas} role="img" aria-label={props.label} style={{ width: `${size}px`, height: `${size}px` }}
              onMouseMove={(event) => props.onHover(under(event))} onMouseLeave={() => props.onHover(null)}
              onClick={(event) => {
                const member = under(event);
                if (member !== null) props.onChoose(member);
              }} />
      <p class="ring-centre" aria-hidden="true"><strong>{props.centre[0]}</strong><span>{props.centre[1]}</span></p>
    </div>
  );
}
