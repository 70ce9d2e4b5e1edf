"""bench/html/heat_maps.py - writes tables of the time of ditto divided by that of the best peer."""
from rows import ENOUGH_BATCHES
from texts import escape, group_text, ratio_text, size_text, time_text

# The greatest ratio of each colour. style.css has the colours.
COLOURS = [(0.5, "h1"), (0.8, "h2"), (1.0, "h3"), (1.25, "h4"), (2.0, "h5")]


def class_of_ratio(ratio):
    return next((name for most, name in COLOURS if ratio <= most), "h6")


def heat_cell(size, cell):
    if cell is None or not cell.figure("ditto") or not cell.best_peer():
        return "<td></td>"
    best = cell.best_peer()
    ditto, peer = cell.figure("ditto"), cell.figure(best)
    ratio = ditto / peer
    doubts = sorted({word for name in ("ditto", best) for word in cell.doubts(name)})
    tip = f"ditto {time_text(ditto)}, {best} {time_text(peer)}" + "".join(f", {word}" for word in doubts)
    return (f'<td class="{class_of_ratio(ratio)}" data-bytes="{size}" data-ratio="{ratio:.10g}" '
            f'title="{escape(tip)}">'
            f'{ratio_text(ratio)}{" ~" if doubts else ""}</td>')


def heat_maps_of(report, cells):
    """Returns a table for each mode. Its rows are kinds of work, and its columns are sizes. `cells` is from
    cells_of."""
    parts, benches = [], report.benches()
    without = set(benches)
    for mode in report.mode_order():
        rows = {group: of_size for (group, where), of_size in cells.items() if where == mode and any(
            cell.figure("ditto") and cell.best_peer() for cell in of_size.values())}
        if not rows:
            continue
        without -= {group[0] for group in rows}
        sizes = sorted({size for of_size in rows.values() for size, cell in of_size.items()
                        if cell.figure("ditto") and cell.best_peer()})
        head = "".join(f'<th scope="col">{size_text(size) if size else "no size"}</th>' for size in sizes)
        body = "\n".join(
            f'<tr data-group="{escape("|".join(group))}"><th scope="row">{escape(group_text(group))}</th>' +
            "".join(heat_cell(size, of_size.get(size)) for size in sizes) + "</tr>"
            for group, of_size in sorted(rows.items(), key=lambda item: benches.index(item[0][0])))
        name = report.mode_name(mode)
        parts.append(f"<h3>{escape(name)}</h3>"
                     f'<div class="scroll" role="region" tabindex="0" aria-label="heat map, {escape(name)}">'
                     f'<table class="heat" data-mode="{mode}"><thead><tr><th scope="col">work</th>{head}</tr>'
                     f"</thead><tbody>\n{body}\n</tbody></table></div>")
    if not parts:
        return '<p class="note">No row has both ditto and a peer.</p>'
    key = "".join(f'<span class="key {name}">{text}</span>' for name, text in (
        ("h1", "to 0.5"), ("h2", "to 0.8"), ("h3", "to 1"), ("h4", "to 1.25"), ("h5", "to 2"),
        ("h6", "above 2")))
    return ("<p>Each number is the time of ditto divided by that of the best peer. Below 1 ditto is faster. "
            "The best peer is the fastest of all that were measured, in any of its ways to wait. A number "
            "with ~ is not certain: a row of one of the two is noisy, or has fewer than "
            f"{ENOUGH_BATCHES} batches. If a row was measured several times in a mode, the number is the "
            "quotient of the medians.</p>"
            f'<p class="keys">{key}</p>' + "".join(parts) +
            (f'<p class="note">Without ditto and a peer: {escape(", ".join(sorted(without)))}.</p>'
             if without else ""))
