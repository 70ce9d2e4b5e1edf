"""bench/html/page.py - puts the page together, which then needs no other file and no network.

Its sections are those of machine.py, compare.py, heat_maps.py, and one for each bench with bench_table.py,
charts.py and ranges.py. style.css and sort.js become parts of the page."""
import pathlib
import re

from bench_table import bench_table
from cells import cells_of
from charts import charts_of
from compare import compare_section
from heat_maps import heat_maps_of
from machine import machine_section
from modes import DISTURBED
from ranges import range_plot
from rows import ENOUGH_BATCHES
from texts import escape


def inlined(name):
    """Returns the text of a file of this folder, without the comment at its beginning."""
    text = pathlib.Path(__file__).with_name(name).read_text(encoding="utf-8")
    return text.partition("*/\n")[2]


def id_of(bench):
    """Returns the name of a bench's section for links."""
    return "bench-" + re.sub(r"[^A-Za-z0-9-]", "-", bench)


def head_section(report):
    """Returns the title, the facts that the CSV states, and the numbers of rows."""
    facts = report.facts()
    rows = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    rows += "".join(f"<dt>note</dt><dd>{escape(text)}</dd>" for text in report.comments[2:])
    modes = "; ".join(
        f"{report.mode_name(number)} ({mode[0]:g} to {mode[-1]:g} ns, "
        f"{sum(row.mode == number for row in report.rows)} rows)" for number, mode in enumerate(report.modes))
    doubtful = sum(row.is_doubtful() for row in report.rows)
    noisy = sum(row.text("noisy") == "1" for row in report.rows)
    disturbed = sum(row.mode == DISTURBED for row in report.rows)
    rows += f"<dt>modes</dt><dd>{escape(modes) or 'not known: no row has a hand-over'}</dd>"
    rows += f"<dt>rows</dt><dd>{len(report.rows)}, {doubtful} of them not certain: {noisy} noisy, " \
            f"{disturbed} disturbed, others with fewer than {ENOUGH_BATCHES} batches</dd>"
    text = "" if report.comments else \
        '<p class="note">The CSV has no comment lines, so its commit and machine are not known. ' \
        "<code>build/bench/ditto-bench machine</code> prints them.</p>"
    return f"<header><h1>ditto bench report</h1><dl>{rows}</dl>{text}</header>"


def bench_section(report, bench, cells):
    """Returns the table, the charts and the ranges of a bench."""
    rows = [row for row in report.rows if row.bench == bench]
    text = f"{len(rows)} row{'s' if len(rows) > 1 else ''}."
    disturbed = sum(row.mode == DISTURBED for row in rows)
    if disturbed:
        text += f" {disturbed} of them {'were' if disturbed > 1 else 'was'} disturbed, which " \
                "keeps a row out of charts and heat maps."
    return (f'<section id="{id_of(bench)}"><h2>{escape(bench)}</h2><p class="note">{text}</p>'
            f"{bench_table(report, bench, rows)}{charts_of(report, bench, cells)}{range_plot(bench, rows)}"
            "</section>")


def reading_section():
    return """<section id="reading"><h2>How to read it</h2><ul>
<li>A row of a table is a row of the CSV. A heading sorts by its column, and a second click turns the order
round.</li>
<li><em>bound / time</em> is 1 if a contender is as fast as the fastest hand-written form. For benches without
contenders, the bound is a limit that the bench sets, and its form is <em>limit</em>.</li>
<li><em>time / best peer</em> compares with the fastest peer of the same measurement, whose batches were
interleaved with those of the row. Below 1 the row is faster.</li>
<li>A row is <em>noisy</em> if the middle half of its samples spreads over more than 15 % of the median.</li>
<li>A batch is <em>disturbed</em> if the mode changed during it, or if the host took a PU away. Such batches
do not count. If all batches of a row were disturbed, the row has no mode.</li>
<li>The <em>hand-over</em> is the time in which a store of one PU becomes visible on another. On virtual
machines it changes by itself. Each such mode of the machine has rows, charts and heat maps of its own, and
figures of two modes are never put into one number.</li>
</ul></section>"""


def page_of(report, old, machine):
    """Returns the page of a report.

    `old` is a report to compare with, or None. `machine` is the name of a file with the output of
    `ditto-info --json`, or None."""
    cells = cells_of(report)
    benches = report.benches()
    links = [("machine", "machine")] + ([("comparison", "comparison")] if old else []) + \
            [("heat", "heat map")] + [(id_of(bench), bench) for bench in benches] + \
            [("reading", "how to read it")]
    nav = "".join(f'<li><a href="#{target}">{escape(text)}</a></li>' for target, text in links)
    return "\n".join([
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # The browser itself refuses everything that is not in the page.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">",
        '<link rel="icon" href="data:,">',
        f"<title>ditto bench report, {escape(report.facts()['date'])}</title>"
        f"<style>\n{inlined('style.css')}</style></head>",
        "<body>",
        head_section(report), f'<nav aria-label="sections"><ul>{nav}</ul></nav><main>',
        machine_section(report, machine), compare_section(old, report) if old else "",
        f'<section id="heat"><h2>ditto and the best peer</h2>{heat_maps_of(report, cells)}</section>',
        *(bench_section(report, bench, cells) for bench in benches), reading_section(),
        f"</main><script>\n{inlined('sort.js')}</script></body></html>\n"])
