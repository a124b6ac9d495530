// A small curve beside a figure; decoration, so it is hidden from screen readers: the figure says it.
export function Spark({ values }: { values: readonly (number | null)[] }) {
  const width = 120;
  const height = 28;
  const shown = values.slice(-120);
  const known = shown.filter((value): value is number => value !== null);
  if (known.length < 2) return <svg class="spark" viewBox={`0 0 ${width} ${height}`} aria-hidden="true" />;
  const low = Math.min(...known);
  const high = Math.max(...known);
  const span = high - low || 1;
  let path = '';
  let pen = false;
  shown.forEach((value, index) => {
    if (value === null) {
      pen = false;
      return;
    }
    const x = (index / (shown.length - 1)) * width;
    const y = high === low ? height / 2 : height - 2 - ((value - low) / span) * (height - 4);
    path += `${pen ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  });
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
