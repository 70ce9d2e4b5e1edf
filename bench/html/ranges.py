"""bench/html/ranges.py - draws the samples of each row of a bench, or a line from the minimum to the 95th
percentile if there are none."""
import math

from charts import class_of, shape
from modes import DISTURBED
from texts import escape, group_text, place_text, size_text, time_text


def label_of(row):
    """Returns the short text beside the line of a row."""
    words = [row.contender, size_text(row.bytes) if row.bytes else "", f"N={row.text('replicas')}",
             {"in": "in place", "out": "out of place"}.get(place_text(row)),
             f"late {row.text('skew_us')}" if row.text("skew_us") else "",
             f"load {row.text('load')}" if row.text("load") else "",
             f"{row.hand_over:.0f} ns" if row.hand_over is not None else "",
             "noisy" if row.text("noisy") == "1" else "", "disturbed" if row.mode == DISTURBED else ""]
    return ", ".join(filter(None, words))


def tip_of(row):
    """Returns the tooltip of a row, with its figures and remarks."""
    size = f", {size_text(row.bytes)}" if row.bytes else ""
    figures = f"min {time_text(row.min)}, median {time_text(row.median)}, p95 {time_text(row.p95)}"
    return f"{row.contender}, {group_text(row.group)}{size}: " + ", ".join([figures] + row.remarks())


def range_plot(bench, rows):
    """Draws the minimum, the median and the 95th percentile of each row, divided by its median."""
    rows = [row for row in rows if row.is_positive() and row.min is not None and row.p95 is not None]
    if not rows:
        return '<p class="note">The CSV has no minimum and 95th percentile of this bench, so its ranges ' \
               "are not drawn.</p>"
    low, high, left, right, step = -1.5, 2.5, 320, 684, 15
    clipped = sampled = 0

    def x_of(value):
        return left + (min(max(math.log2(max(value, 0.01)), low), high) - low) / (high - low) * (right - left)

    parts, y = [], 30
    height = y + len(rows) * step + 6 * len({id(row.measurement) for row in rows}) + 6
    for value in (0.5, 0.71, 1, 1.41, 2, 2.83, 4):
        x = x_of(value)
        parts.append(f'<path class="{"axis" if value == 1 else "grid"}" d="M{x:.1f} 20V{height}"/>'
                     f'<text x="{x:.1f}" y="14" text-anchor="middle">{value:g}</text>')
    before = None
    for row in rows:
        if before is not None and row.measurement is not before:
            y += 6
        before = row.measurement
        least, most = row.min / row.median, row.p95 / row.median
        ends = ""  # a tip at each end that is beyond the axis
        if math.log2(max(least, 0.01)) < low:
            ends += f'<path class="dot" d="M{left - 4} {y}l7 -5v10z"/>'
        if math.log2(max(most, 0.01)) > high:
            ends += f'<path class="dot" d="M{right + 4} {y}l-7 -5v10z"/>'
        clipped += ends != ""
        sampled += bool(row.samples())
        dots = "".join(f'<circle class="dot" cx="{x_of(ns / row.median):.1f}" cy="{y}" r="2"/>'
                       for ns in row.samples())
        parts.append(
            f'<g class="c-{class_of(row.contender)}"><title>{escape(tip_of(row))}</title>'
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(label_of(row))}</text>'
            f'<path class="span{" sampled" if dots else ""}" d="M{x_of(least):.1f} {y}H{x_of(most):.1f}"/>'
            f'{dots}{ends}'
            f'<path class="dot" d="{shape(row.contender, x_of(1), y)}"/></g>')
        y += step
    note = f" A tip marks the ends beyond the axis, of {clipped} of the rows." if clipped else ""
    what = "A dot is the time of a batch. " if sampled else "The CSV has no single samples. "
    return (f'<details><summary>{"Samples" if sampled else "Ranges"} of {len(rows)} rows</summary>'
            f'<p class="note">{what}A line reaches from the minimum to the 95th percentile of a row, divided '
            f"by the row's median. The axis is logarithmic.{note}</p>"
            f'<div class="scroll" role="region" tabindex="0" aria-label="ranges of {escape(bench)}">'
            f'<svg class="ranges" viewBox="0 0 700 {height}" width="700" height="{height}" role="img" '
            f'aria-label="ranges of {escape(bench)}">{"".join(parts)}</svg></div></details>')
