"""bench/html/charts.py - draws charts of time against size, with a line for each contender."""
import math

from rows import PEERS
from texts import escape, group_text, size_text, time_text

# The contenders that have a colour and a marker of their own.
CONTENDERS = ["ditto", "ditto-plain", "bound"] + PEERS


def shape(contender, x, y):
    """Returns the path of a marker. Each contender has its own shape, and not only its own colour."""
    paths = {
        "ditto": f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "ditto-plain": f"M{x - 3:.1f} {y:.1f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
        "bound": f"M{x - 5:.1f} {y - 1:.1f}h10v2h-10z",
        "libgomp": f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z",
        "libomp": f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z",
        "openmpi": f"M{x:.1f} {y - 5:.1f}l5 9h-10z",
        "mpich": f"M{x:.1f} {y + 5:.1f}l5 -9h-10z",
        "gloo": f"M{x - 1:.1f} {y - 5:.1f}h2v4h4v2h-4v4h-2v-4h-4v-2h4z",
        "deepspeed": f"M{x - 5:.1f} {y:.1f}l2.5 -4.3h5l2.5 4.3l-2.5 4.3h-5z",
        "vllm": f"M{x - 5:.1f} {y - 4:.1f}h3l2 5l2 -5h3l-4 8h-2z",
        "gloo-shm": f"M{x - 5:.1f} {y - 4:.1f}h10l-5 4l5 4h-10l5 -4z",
    }
    return paths.get(contender, f"M{x - 3:.1f} {y - 3:.1f}h6v6h-6z")


def class_of(contender):
    """Returns the class of style.css that has the colour of the contender."""
    return contender if contender in CONTENDERS else "other"


def decades(low, high):
    """Returns the exponents of two powers of ten between which all values lie."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return first, max(last, first + 1)


def legend_of(contenders, left, top):
    """Draws the line, the marker and the name of each contender, three beside each other."""
    parts = []
    for number, name in enumerate(contenders):
        x, y = left + number % 3 * 116, top + number // 3 * 18
        parts.append(f'<g class="c-{class_of(name)}"><path class="line" d="M{x - 12} {y}h24"/>'
                     f'<path class="dot" d="{shape(name, x, y)}"/></g>'
                     f'<text x="{x + 16}" y="{y + 4}">{escape(name)}</text>')
    return parts


def chart(title, series):
    """Draws times against sizes. `series` has a list of (size, ns, tooltip) for each contender."""
    width, left, right, top, bottom = 400, 52, 388, 12, 246
    points = [point for line in series.values() for point in line]
    first, last = decades(min(ns for _, ns, _ in points), max(ns for _, ns, _ in points))
    sizes = sorted({size for size, _, _ in points})
    low, high = math.log2(sizes[0]), math.log2(sizes[-1])

    def x_of(size):
        return left + 8 + (math.log2(size) - low) / (high - low) * (right - left - 16)

    def y_of(ns):
        return bottom - (math.log10(ns) - first) / (last - first) * (bottom - top)

    parts = []
    for power in range(first, last + 1):
        y = y_of(10.0 ** power)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        unit = ("ns", "us", "ms", "s")[power // 3] if 0 <= power < 12 else None
        label = f"{10 ** (power % 3)} {unit}" if unit else f"1e{power} ns"
        parts.append(f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    marks = [1 << shift for shift in range(0, 50, 4) if low <= shift <= high]
    for size in marks if len(marks) > 1 else [sizes[0], sizes[-1]]:
        x = x_of(size)
        parts.append(f'<path class="grid" d="M{x:.1f} {top}V{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{size_text(size)}</text>')
    order = sorted(series, key=lambda name: (CONTENDERS + [name]).index(name))
    for name in reversed(order):  # ditto is drawn last, above the others
        line = sorted(series[name])
        path = "L".join(f"{x_of(size):.1f} {y_of(ns):.1f}" for size, ns, _ in line)
        parts.append(f'<g class="c-{class_of(name)}"><path class="line" d="M{path}"/>')
        for size, ns, tip in line:
            parts.append(f'<path class="dot" d="{shape(name, x_of(size), y_of(ns))}"><title>{escape(tip)}'
                         "</title></path>")
        parts.append("</g>")
    parts += legend_of(order, left, bottom + 36)
    height = bottom + 36 + (len(order) + 2) // 3 * 18
    return (f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
            f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="time against size, '
            f'{escape(title)}">{"".join(parts)}</svg></figure>')


def tip_of(name, size, ns, cell, contender):
    """Returns the tooltip of a mark. The bound is no contender, so `contender` is None for it."""
    words = [f"{name}, {size_text(size)}: {time_text(ns)}"]
    if contender and len(cell.rows[contender]) > 1:
        words.append(f"median of {len(cell.rows[contender])} measurements")
    return ", ".join(words + (cell.doubts(contender) if contender else []))


def charts_of(report, bench, cells):
    """Returns the charts of a bench, and a line about groups that have none. `cells` is from cells_of."""
    drawn, without = [], 0
    for (group, mode), of_size in cells.items():
        if group[0] != bench:
            continue
        series = {}
        for size, cell in of_size.items():
            if size == 0:
                continue
            for name in cell.rows:
                ns = cell.figure(name)
                series.setdefault(name, []).append((size, ns, tip_of(name, size, ns, cell, name)))
            bound = cell.bound()
            if bound:
                series.setdefault("bound", []).append((size, bound, tip_of("bound", size, bound, cell, None)))
        if len({size for line in series.values() for size, _, _ in line}) < 2:
            without += 1
            continue
        title = f"{group_text(group, with_bench=False)}; {report.mode_name(mode)}"
        drawn.append(chart(title, series))
    if not drawn:
        return "<p class=\"note\">There is no chart of time against size, because no row of this bench was " \
               "measured with two sizes in one mode.</p>"
    text = '<h3>Time against size</h3><p class="note">Both axes are logarithmic. Point at a mark to read ' \
           "its figure. Each mode of the machine has a chart of its own."
    if without:
        text += f" {without} kind{'s' if without > 1 else ''} of work with only one size in a mode " \
                f"{'have' if without > 1 else 'has'} none."
    return text + '</p><div class="charts">' + "".join(drawn) + "</div>"
