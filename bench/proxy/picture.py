"""A picture of the rows as SVG: bars of the ratios with their spread and targets, written by hand."""
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, BAR, STEP = 940, 180, 190, 64, 16, 30
MET, MISSED, PLAIN, INK, PALE = "#2f7d4f", "#b8442f", "#48698f", "#222222", "#d8d8d8"


def svg(results, machine):
    """Rows with a ratio; the line at 1.0 is the server that a row is compared with."""
    rows = [result for result in results if "ratio" in result]
    most = max([1.0] + [row["ratio"]["max"] for row in rows]) * 1.02
    height = TOP + STEP * len(rows) + 46
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
           f'font-size="12" fill="{INK}">', f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           text(16, 22, "CPU per request: ringshift to the server it is compared with (less is better)", size=15),
           text(16, 40, f"{machine['started']}, {machine['cpus']} x {machine['cpu']}; bar: median of the rounds, "
                        "whisker: least and most, black mark: target", size=11)]

    def x(value):
        return LEFT + (WIDTH - LEFT - RIGHT) * value / most

    bottom = TOP + STEP * len(rows)
    for tick in ticks(most):
        out.append(line(x(tick), TOP - 6, x(tick), bottom, INK if tick == 1 else PALE, 1))
        out.append(text(x(tick), bottom + 16, f"{tick:g}", anchor="middle"))
    for i, row in enumerate(rows):
        y, ratio = TOP + STEP * i + (STEP - BAR) / 2, row["ratio"]
        middle = y + BAR / 2
        color = PLAIN if "target" not in row else MET if row["met"] else MISSED
        out += [text(LEFT - 8, middle + 4, row["name"], anchor="end"),
                f'<rect x="{LEFT}" y="{y:.1f}" width="{x(ratio["median"]) - LEFT:.1f}" height="{BAR}" fill="{color}"/>',
                line(x(ratio["min"]), middle, x(ratio["max"]), middle, INK, 1.5),
                *(line(x(ratio[end]), middle - 4, x(ratio[end]), middle + 4, INK, 1.5) for end in ("min", "max")),
                text(WIDTH - RIGHT + 10, middle + 4, f"{ratio['median']:.3f} of {row['against']}")]
        if "target" in row:
            out.append(line(x(row["target"]), y - 4, x(row["target"]), y + BAR + 4, "black", 3))
    out += [text(16, bottom + 36, "green: target met, red: not met, blue: no target", size=11), "</svg>"]
    return "\n".join(out) + "\n"


def ticks(most):
    step = next(step for step in (0.2, 0.5, 1, 2, 5, 10, 50, 1e9) if most / step <= 10)
    return [round(i * step, 1) for i in range(int(most / step) + 1)]


def text(x, y, words, anchor="start", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'


def line(x1, y1, x2, y2, color, width):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"/>'
