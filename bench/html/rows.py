"""bench/html/rows.py - reads a CSV of ditto-bench: its rows, and the facts that its comment lines state."""
import csv
import re
import statistics

from checks import ADDED, FIXED, Problem, check_cells, check_heading, read_text
from modes import DISTURBED, UNKNOWN, WITHOUT_MODES, mode_of, modes_of

# A row with fewer batches is not certain. The same as ROUNDS_ENOUGH.
ENOUGH_BATCHES = 15
# The rows of a group agree in these columns. They may differ in the contender and the size.
GROUP = ["bench", "replicas", "dtype", "op", "in_place", "devices", "skew_us", "turns", "load"]
PEERS = ["libgomp", "libomp", "openmpi", "mpich", "gloo", "deepspeed", "vllm", "gloo-shm"]


class Row:
    """A row of the CSV. An empty cell is None as a number."""

    def __init__(self, line, cells):
        self.line = line
        self.cells = cells
        self.bench, self.contender = cells["bench"], cells["algorithm"]
        self.group = tuple(cells.get(name) or ("1" if name == "devices" else "") for name in GROUP)
        self.bytes = int(cells["bytes"] or 0)
        self.min, self.median, self.p95, self.bound = (
            self.number(name) for name in ("ns_min", "ns_median", "ns_p95", "bound_ns"))
        self.bound = self.bound or None  # 0 means that there is none
        self.hand_over = self.number("hand_over_ns")
        self.mode = None
        self.measurement = None  # the list of all rows that were measured in turns, with this one

    def number(self, name):
        text = self.cells.get(name) or ""
        return float(text) if text else None

    def samples(self):
        """Returns the times of all batches, or nothing if the CSV was made without --samples."""
        return [float(text) for text in self.text("samples").split(";") if text]

    def text(self, name):
        return self.cells.get(name) or ""

    def is_peer(self):
        return any(self.contender == peer or self.contender.startswith(peer + "-") for peer in PEERS)

    def is_positive(self):
        """Says whether the row has a time that others can be divided by."""
        return self.median is not None and self.median > 0

    def remarks(self):
        """Returns in words why the figures are not certain, and how many batches were disturbed."""
        words = []
        if self.mode == DISTURBED:
            words.append("all batches were disturbed")
        if self.text("noisy") == "1":
            words.append("noisy")
        batches = self.number("batches")
        if batches is not None and batches < ENOUGH_BATCHES and self.mode != DISTURBED and \
                self.bench not in WITHOUT_MODES + ["checkpoint"]:
            words.append(f"only {batches:.0f} batches")
        if self.number("disturbed") and self.mode != DISTURBED:
            words.append(f"disturbed batches: {self.number('disturbed'):.0f}")
        return words

    def is_doubtful(self):
        """Says whether the figures are not certain. A few disturbed batches alone do not matter."""
        return any(not word.startswith("disturbed batches") for word in self.remarks())


class Report:
    """The rows of a CSV, in its order."""

    def __init__(self, path):
        self.path, self.comments, self.rows, self.counters = path, [], [], []
        columns = None
        for number, line in enumerate(read_text(path, "the CSV of ditto-bench").splitlines(), 1):
            place = f"{path}:{number}"
            if line.startswith("#"):
                self.comments.append(line[1:].strip())
                continue
            if not line.strip():
                continue
            cells = next(csv.reader([line]))
            if cells[0] == "bench":
                check_heading(place, cells)
                columns = cells
                self.counters += [name for name in columns
                                  if name not in FIXED + ADDED and name not in self.counters]
                continue
            if columns is None:
                raise Problem(f"{place}: asked for a heading that begins with \"bench\", but found "
                              f"\"{line[:40]}\"; give a file that `./run bench --csv` has written")
            check_cells(place, columns, cells)
            cells = dict(zip(columns, cells))
            self.rows.append(Row(number, {name: cells.get(name, "") for name in columns}))
        if not self.rows:
            raise Problem(f"{path}: asked for the rows of `ditto-bench --csv`, but found none; measure with "
                          "`./run bench --csv`")
        self.modes = modes_of([row.hand_over for row in self.rows if row.hand_over is not None])
        for row in self.rows:
            row.mode = mode_of(row, self.modes)
        self.find_measurements()

    def find_measurements(self):
        """Finds the measurement of each row.

        Rows of one measurement follow each other, and no contender is among them twice."""
        before, current = None, []
        for row in self.rows:
            key = (row.group, row.bytes, row.text("hand_over_ns"))
            if key != before or any(other.contender == row.contender for other in current):
                before, current = key, []
            current.append(row)
            row.measurement = current

    def mode_name(self, mode):
        if mode == UNKNOWN:
            return "hand-over not known"
        if mode == DISTURBED:
            return "disturbed"
        return f"hand-over {statistics.median(self.modes[mode]):.0f} ns"

    def mode_order(self):
        """Returns the modes in the order in which the page shows them."""
        return [*range(len(self.modes)), UNKNOWN]

    def benches(self):
        return list(dict.fromkeys(row.bench for row in self.rows))

    def facts(self):
        """Returns the version, commit, date, compiler and machine that the first two comment lines name."""
        first = self.comments[0] if self.comments else ""
        parts = [part.strip() for part in first.split(",")]
        date = next((part for part in parts if re.fullmatch(r"\d{4}-\d\d-\d\d", part)), "")
        commit = next((part[7:] for part in parts if part.startswith("commit ")), "")
        rest = [part for part in parts[1:] if part and part != date and not part.startswith("commit ")]
        missing = "not known"
        return {"ditto": parts[0] or missing, "commit": commit or missing, "date": date or missing,
                "compiler": ", ".join(rest) or missing,
                "machine": self.comments[1] if len(self.comments) > 1 else missing}
