"""bench/html/compare.py - compares the rows of two CSV files, an old one and a new one."""
from cells import median
from modes import DISTURBED, MODES_DIFFER, UNKNOWN, match_modes
from tables import Column, number_column, ratio_column, table_of, us_column
from texts import escape, group_text, size_text

# The middle half of the samples of a noisy row spreads over more than this part of the median.
NOISY_SPREAD = 0.15


class Side:
    """The rows of one of the two files that have the same work, size, contender and mode."""

    def __init__(self, rows):
        self.rows = rows
        self.median = median([row.median for row in rows])
        self.min = min((row.min for row in rows if row.min is not None), default=None)
        self.p95 = max((row.p95 for row in rows if row.p95 is not None), default=None)
        self.hand_over = median([row.hand_over for row in rows])
        self.is_noisy = any(row.text("noisy") == "1" for row in rows)

    def spread(self):
        """Returns the time over which the samples spread, or None if the file does not say it."""
        if self.min is not None and self.p95 is not None:
            return self.p95 - self.min
        return NOISY_SPREAD * self.median if self.is_noisy else None


class Pair:
    """A line of the comparison. One of the two sides may be missing."""

    def __init__(self, key, old, new):
        self.group, self.bytes, self.contender, self.mode = key
        self.old, self.new = old, new
        self.ratio = new.median / old.median if self.is_compared() else None
        self.verdict, self.why = self.judge()

    def is_compared(self):
        return bool(self.mode != DISTURBED and self.old and self.new and self.old.median and self.new.median)

    def judge(self):
        """Returns the verdict, by which pairs are counted, and the remark that says it."""
        if self.mode == DISTURBED:
            return "disturbed", "disturbed, not compared" + ("" if self.old and self.new else
                                                             ", only in old" if self.old else ", only in new")
        if not self.old or not self.new:
            return ("only in old", "missing in new") if self.old else ("only in new", "missing in old")
        if not self.is_compared():
            return "no time", "a median is empty or not positive, not compared"
        difference = abs(self.new.median - self.old.median)
        spreads = [side.spread() for side in (self.old, self.new)]
        known = [spread for spread in spreads if spread is not None]
        if known and max(known) >= difference:
            return "noisier", "noisier than the difference"
        if not known:
            return "unknown", "spread not known"
        word = "faster" if self.ratio < 1 else "slower"
        return word, word

    def remarks(self):
        words = [self.why]
        for name, side in (("old", self.old), ("new", self.new)):
            if side and len(side.rows) > 1:
                words.append(f"{name}: median of {len(side.rows)} measurements")
        return ", ".join(words)


def pairs_of(old, new):
    """Returns the lines of the comparison, by bench, and then in the order of the files."""
    matched = match_modes(old, new)
    old_of_mode = {i: ("both", k) for k, i in matched.items()}

    def collect(report, number_of):
        sides = {}
        for row in report.rows:
            mode = row.mode if row.mode in (UNKNOWN, DISTURBED) else number_of(row.mode)
            sides.setdefault((row.group, row.bytes, row.contender, mode), []).append(row)
        return {key: Side(rows) for key, rows in sides.items()}

    of_new = collect(new, lambda mode: ("both", mode) if mode in matched else ("new", mode))
    of_old = collect(old, lambda mode: old_of_mode.get(mode, ("old", mode)))
    keys = list(of_new) + [key for key in of_old if key not in of_new]
    benches = {bench: number for number, bench in enumerate(dict.fromkeys(key[0][0] for key in keys))}
    keys.sort(key=lambda key: benches[key[0][0]])  # the sort is stable
    return [Pair(key, of_old.get(key), of_new.get(key)) for key in keys]


def columns():
    """Returns the columns of the comparison, whose lines are pairs."""
    def side(name, what):
        def of(pair):
            found = getattr(pair, name)
            return getattr(found, what) if found else None
        return of

    return [Column("work", lambda pair: group_text(pair.group)),
            Column("size", lambda pair: size_text(pair.bytes) if pair.bytes else "", lambda pair: pair.bytes,
                   "bytes"),
            Column("contender", lambda pair: pair.contender),
            number_column("hand-over old, ns", side("old", "hand_over"), "hand_over_old"),
            number_column("hand-over new, ns", side("new", "hand_over"), "hand_over_new"),
            us_column("old, us", side("old", "median"), "old"),
            us_column("new, us", side("new", "median"), "new"),
            ratio_column("new\u00a0/\u00a0old", lambda pair: pair.ratio, "ratio",
                         "Less than 1: the new file is faster. Sorts by this column."),
            Column("remarks", lambda pair: pair.remarks())]


def compare_section(old, new):
    """Returns the section that compares two reports."""
    pairs = pairs_of(old, new)
    count = {}
    for pair in pairs:
        count[pair.verdict] = count.get(pair.verdict, 0) + 1
    order = [("slower", "slower, by more than the rows spread"),
             ("faster", "faster, by more than the rows spread"),
             ("noisier", "noisier than the difference"), ("unknown", "with a spread that is not known"),
             ("only in old", "only in the old file"), ("only in new", "only in the new file"),
             ("disturbed", "disturbed, not compared"), ("no time", "without a time, not compared")]
    facts = "".join(f"<li><strong>{count[name]}</strong> {text}</li>"
                    for name, text in order if name in count)
    heads = "".join(f'<tr><th scope="row">{name}</th><td>{escape(old.facts()[name])}</td>'
                    f"<td>{escape(new.facts()[name])}</td></tr>" for name in new.facts())
    warning = ""
    if old.facts()["machine"] != new.facts()["machine"]:
        warning = "<p><strong>The machines differ</strong>, or their kernels do. The ratios then compare " \
                  "machines, and not only versions of ditto.</p>"
    if bool(old.modes) != bool(new.modes):
        warning += "<p><strong>Only one of the files has hand-overs.</strong> Its rows belong to modes " \
                   "that the other file does not know, so they are not compared.</p>"
    table = table_of(columns(), pairs, "compare", "comparison of two reports",
                     lambda pair: "" if pair.verdict in ("faster", "slower") else ' class="doubtful"')
    return ('<section id="comparison"><h2>Comparison</h2>'
            '<div class="scroll" role="region" tabindex="0" aria-label="the two files"><table class="heads">'
            f'<thead><tr><td></td><th scope="col">old</th><th scope="col">new</th></tr></thead><tbody>{heads}'
            f"</tbody></table></div>{warning}<ul>{facts}</ul>"
            '<p class="note">Rows are matched by their work, size, contender and mode. Two modes are the '
            f"same if their hand-overs differ by less than a factor of {MODES_DIFFER}. A row is noisier than "
            "the difference if the time from its minimum to its 95th percentile, in either file, is at least "
            "the difference of the medians. In files without these figures, a noisy row spreads over "
            f"{NOISY_SPREAD * 100:.0f} % of its median.</p>{table}</section>")
