"""bench/html/texts.py - writes numbers, times, sizes and kinds of work for a reader, and escapes texts."""
import html


def escape(text):
    """Returns a text as HTML shows it, also between quotation marks."""
    return html.escape(str(text), quote=True)


def digits(value):
    """Returns a number with about three digits."""
    if value is None:
        return ""
    if value == int(value) or abs(value) >= 100:
        return f"{value:.0f}"
    size = abs(value)
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else \
        f"{value:.3f}" if size >= 0.01 else f"{value:.2g}"


def ratio_text(value):
    """Returns a ratio with two digits after the point, and more or fewer if it is very small or large."""
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def time_text(ns):
    """Returns a time with its unit."""
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= unit:
            return f"{digits(ns / unit)} {name}"
    return f"{digits(ns)} ns"


def size_text(size):
    """Returns a number of bytes with its unit."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"


def group_text(group, with_bench=True):
    """Returns the words that tell a group from all others."""
    name, replicas, dtype, op, in_place, devices, skew, turns, load = group
    words = [name] if with_bench else []
    words.append(f"{replicas} replica" + ("s" if replicas != "1" else ""))
    if dtype:
        words.append(f"{dtype} {op}".strip())
    if in_place and name != "broadcast":
        words.append("in place" if in_place == "1" else "out of place")
    if turns == "1":
        words.append("roots in turn")
    if name == "parallel-for":
        words.append(f"{devices} PU" + ("s" if devices != "1" else ""))
    if skew:
        words.append(f"late by {skew} us")
    if load:
        words.append(f"load {load}")
    return ", ".join(words)


def place_text(row):
    """Returns "in" or "out", or nothing if the bench has no such choice."""
    place = {"1": "in", "0": "out"}.get(row.text("in_place"), "")
    return "" if row.bench == "broadcast" else place
