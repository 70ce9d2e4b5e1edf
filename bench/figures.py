"""bench/figures.py - makes the Markdown tables of docs/performance.md and README.md of docs/figures/*.csv.

    python3 bench/figures.py all FILE...     the tables of docs/performance.md
    python3 bench/figures.py main FILE       the table of README.md

Each file has the measurements of one kind of processor: lines that begin with #, which describe the machine,
and the output of one or more `./run bench --peers --csv`. Columns are found by name. If a row was measured
several times in a mode, the table has the medians of its figures. Modes are explained in bench/modes.h."""
import csv
import pathlib
import statistics
import sys
import textwrap

GAP = 1.6  # the same as MODES_GAP
PEERS = ["libgomp", "libomp", "openmpi", "mpich", "gloo"]
SHARED_MEMORY = ["deepspeed", "vllm", "gloo-shm"]
MPI, OPENMP = ["openmpi", "mpich"], ["libgomp", "libomp"]
KEY = ["bench", "replicas", "dtype", "op", "in_place", "bytes", "devices", "skew_us", "turns",
       "load"]
LIFE = ["create", "rest"]
WITHOUT_MODES = LIFE + ["wait"]
WAITS = ["ditto", "ditto-active", "ditto-passive", "libgomp", "libgomp-active", "libgomp-passive", "libomp",
         "libomp-active", "libomp-passive", "openmpi", "openmpi-yield", "mpich"]


class Machine:
    """The measurements of one file."""

    def __init__(self, path):
        lines = open(path, encoding="utf-8").read().splitlines()
        self.header = [line[2:] for line in lines if line.startswith("#")]
        # Processors of one name differ in family and model, which the file is named after.
        stem = pathlib.Path(path).stem
        if len(self.header) > 1:
            self.header[1] = self.header[1].replace(",", f" ({stem}),", 1)
        rows, columns = [], None
        for cells in csv.reader(line for line in lines if not line.startswith("#")):
            if cells[0] == "bench":
                columns = cells
            else:
                rows.append(dict(zip(columns, cells)))
        self.name = self.header[1].split(",")[0] if len(self.header) > 1 else path
        self.modes = modes_of([float(row["hand_over_ns"]) for row in rows if row.get("hand_over_ns")])
        self.cells = {}  # (key, mode) -> contender -> its rows
        self.keys = []
        for row in rows:
            # Batches of a row without a hand-over were disturbed, unless nothing in the file has one.
            if self.modes and not row.get("hand_over_ns") and row["bench"] not in WITHOUT_MODES:
                continue
            key = tuple(row.get(name) or "" for name in KEY)
            if key not in self.keys:
                self.keys.append(key)
            mode = self.mode_of(row.get("hand_over_ns"))
            self.cells.setdefault((key, mode), {}).setdefault(row["algorithm"], []).append(row)

    def mode_of(self, hand_over):
        for number, mode in enumerate(self.modes):
            if hand_over and mode[0] <= float(hand_over) <= mode[-1]:
                return number
        return 0

    def mode_name(self, mode):
        if not self.modes:
            return "hand-over unknown"
        return f"hand-over {statistics.median(self.modes[mode]):.0f} ns"

    def mode_numbers(self):
        return range(max(1, len(self.modes)))

    def figure(self, key, mode, contender, column="ns_median"):
        """Returns the median over all measurements, or None."""
        rows = self.cells.get((key, mode), {}).get(contender, [])
        figures = [float(row[column]) for row in rows if row.get(column) not in (None, "")]
        figure = statistics.median(figures) if figures else 0
        return figure if figure > 0 else None

    def text(self, key, mode, column):
        rows = self.cells.get((key, mode), {}).get("ditto", [])
        return rows[-1].get(column, "") if rows else ""

    def least(self, key, mode, contenders):
        found = [f for f in (self.figure(key, mode, c) for c in contenders) if f]
        return min(found) if found else None

    def has(self, key, mode):
        return (key, mode) in self.cells


def modes_of(readings):
    """Returns lists of the readings between which the gap is too large."""
    modes = []
    for reading in sorted(readings):
        if modes and reading <= GAP * modes[-1][-1]:
            modes[-1].append(reading)
        else:
            modes.append([reading])
    return modes


# -- cells --

def us(ns):
    """Returns nanoseconds as microseconds with two or three digits."""
    if ns is None:
        return ""
    value = ns / 1000
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def ratio(a, b, bad=lambda value: False):
    """Returns a quotient, in bold if it is bad."""
    if not a or not b:
        return ""
    text = f"{a / b:.2g}" if a / b < 0.1 else f"{a / b:.2f}"
    return f"**{text}**" if bad(a / b) else text


def size_of(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def work_of(key):
    name, _, dtype, _, in_place, size, devices, _, turns, _ = key
    text = name
    if size not in ("", "0"):
        text += " " + size_of(int(size))
    if dtype not in ("", "f32"):
        text += " " + dtype
    if in_place != "" and name.split(" on ")[0] != "broadcast":
        text += ", in place" if in_place == "1" else ", out of place"
    if turns == "1":
        text += ", roots in turn"
    if name == "parallel-for":
        text += f", {devices} PU" + ("s" if devices != "1" else "")
    return text


def below(value):
    return value < 0.85


def slower(value):
    return value > 1


def ratios(machine, key, mode):
    """bound / ditto, ditto / best MPI, ditto / best OpenMP"""
    ditto = machine.figure(key, mode, "ditto")
    return [ratio(machine.figure(key, mode, "ditto", "bound_ns"), ditto, below),
            ratio(ditto, machine.least(key, mode, MPI), slower),
            ratio(ditto, machine.least(key, mode, OPENMP), slower)]


def table(heading, rows):
    lines = ["| " + " | ".join(cells) + " |" for cells in [heading, ["---"] * len(heading)] + rows]
    return "\n".join(lines) + "\n"


# -- tables --

# The rows of README.md: work, replicas, bytes. All-reduces are those of f32 in place.
MAIN = [("barrier", 2, ""), ("run", 2, ""), ("all-reduce", 2, 8), ("all-reduce", 2, 32 << 10),
        ("all-reduce", 2, 512 << 10), ("all-reduce", 2, 8 << 20), ("barrier", 8, ""),
        ("all-reduce", 8, 32 << 10)]


def doubt(machine, key, mode):
    """A sign behind figures that are not certain."""
    return " ~" if remark_of_quality(machine, key, mode) else ""


def summary(machine):
    """The table of README.md, in the mode in which most of its rows were measured."""
    keys = [key for row in MAIN for key in machine.keys
            if (key[0], key[1], key[5] if key[0] == "all-reduce" else "") == tuple(map(str, row)) and
            key[2] in ("", "f32") and key[4] != "0"]
    mode = max(machine.mode_numbers(), key=lambda number: sum(machine.has(key, number) for key in keys))
    rows = [[work_of(key).removesuffix(", in place"), key[1],
             us(machine.figure(key, mode, "ditto")) + doubt(machine, key, mode)] + ratios(machine, key, mode)
            for key in keys if machine.has(key, mode)]
    return textwrap.fill(f"{machine.header[1]}; {machine.mode_name(mode)}. {machine.header[0]}.", 110,
                         break_on_hyphens=False) + \
        "\n\n" + table(["work", "replicas", "us", "of bound", "of MPI", "of OpenMP"], rows)


def side_by_side(machines):
    """A table with a group of columns for each mode of each machine."""
    keys, heading, places = [], ["work", "replicas"], []
    for machine in machines:
        keys += [key for key in machine.keys
                 if key not in keys and key[0] not in WITHOUT_MODES + ["skew"]]
    for number, machine in enumerate(machines):
        for mode in machine.mode_numbers():
            places.append((machine, mode))
            mark = chr(ord("A") + number) + (str(mode + 1) if len(machine.modes) > 1 else "")
            heading += [f"{mark}: us", "of bound", "of MPI", "of OpenMP"]
    rows = []
    for key in keys:
        row = [work_of(key), key[1]]
        for machine, mode in places:
            row += [us(machine.figure(key, mode, "ditto")) + doubt(machine, key, mode)] + \
                ratios(machine, key, mode)
        rows.append(row)
    return table(heading, rows)


def legend(machines):
    """Names the letters of side_by_side."""
    lines = []
    for number, machine in enumerate(machines):
        letter = chr(ord("A") + number)
        modes = "; ".join(f"{letter}{m + 1 if len(machine.modes) > 1 else ''}: {machine.mode_name(m)}"
                          for m in machine.mode_numbers())
        item = f"- {letter} is {machine.header[1]}. {machine.header[0]}. {modes}."
        lines.append(textwrap.fill(item, 110, subsequent_indent="  ", break_on_hyphens=False))
    lines.append("- A figure with ~ is not certain: its batches spread over more than 15 %, or there are\n"
                 "  fewer than 15 of them.")
    return "\n".join(lines) + "\n"


def remark_of_quality(machine, key, mode):
    """Says why the figures of a row are not certain."""
    words = []
    if machine.text(key, mode, "noisy") == "1":
        words.append("noisy")
    batches = machine.text(key, mode, "batches")
    if batches and int(batches) < 15 and key[0] not in LIFE + ["checkpoint"]:
        words.append(f"only {batches} batches")
    return words


def remark(machine, key, mode):
    words = remark_of_quality(machine, key, mode)
    share = machine.figure(key, mode, "ditto", "operation_share")
    if share:
        words.append(f"{share:.2f} in collectives")
    plain = machine.figure(key, mode, "ditto-plain")
    if plain:
        words.append(ratio(machine.figure(key, mode, "ditto"), plain) + " of the plain call")
    return ", ".join(words)


def main_row(machine, key, mode):
    ditto = machine.figure(key, mode, "ditto")
    return [work_of(key), key[1], us(ditto), us(machine.figure(key, mode, "ditto", "bound_ns")),
            machine.text(key, mode, "bound_form")] + \
        [us(machine.figure(key, mode, peer)) for peer in PEERS] + ratios(machine, key, mode) + \
        [ratio(ditto, machine.figure(key, mode, "gloo")), remark(machine, key, mode)]


def skew_row(machine, key, mode):
    # gloo is left out, because the CPU seconds of its own threads would be missing.
    contenders = ["ditto"] + PEERS[:-1]
    shares = [machine.figure(key, mode, c, "cpu_ratio") for c in contenders]
    return [work_of(key), key[7]] + [us(machine.figure(key, mode, c)) for c in contenders] + \
        [f"{share:.2f}" if share else "" for share in shares]


def wait_row(machine, key):
    """Times and CPU times of each contender, and how ditto compares with the best of them."""
    def time(contender):
        return machine.figure(key, 0, contender)

    def cpu(contender):
        share = machine.figure(key, 0, contender, "cpu_share")
        return time(contender) * share if share else None

    def best(of, contenders):
        return min((of(c) for c in contenders if of(c)), default=None)

    default = ["libgomp", "libomp", "openmpi", "mpich"]
    def doubtful(contender):
        rows = machine.cells[(key, 0)].get(contender, [])
        return " ~" if any(row["noisy"] == "1" for row in rows) else ""

    cells = [f"{us(time(c))} / {us(cpu(c))}{doubtful(c)}" if time(c) else "" for c in WAITS]
    return [key[9], key[7]] + cells + [ratio(of("ditto"), best(of, which), bad)
                                       for of in (time, cpu)
                                       for which, bad in ((default, lambda value: value > 1.05),
                                                          (WAITS[3:], lambda value: value > 1.25))] + \
        [ratio(time("ditto" + how), best(time, ["libgomp" + how, "libomp" + how]), lambda value: value > 1.05)
         for how in ("-active", "-passive")]


def shared_memory_row(machine, key, mode):
    """Compares an all-reduce with those that libraries for language models have in shared memory."""
    ditto = machine.figure(key, mode, "ditto")
    return [work_of(key), key[1], us(ditto)] + \
        [us(machine.figure(key, mode, peer)) for peer in SHARED_MEMORY] + \
        [ratio(ditto, machine.least(key, mode, SHARED_MEMORY), slower)]


def of_machine(machine, mode):
    """Returns all tables of a machine in a mode."""
    keys = [key for key in machine.keys if machine.has(key, mode)]
    peers = ["libgomp", "libomp", "Open MPI", "MPICH"]
    parts = [f"### {machine.name}, {machine.mode_name(mode)}\n",
             "```text\n" + "\n".join(line for words in machine.header for line in textwrap.wrap(words, 110)) +
             "\n```\n"]
    parts.append(table(["work", "replicas", "ditto", "bound", "its form"] + peers +
                       ["gloo", "bound / ditto", "ditto / best MPI", "ditto / best OpenMP", "ditto / gloo",
                        " "],
                       [main_row(machine, key, mode) for key in keys
                        if key[0] not in WITHOUT_MODES + ["skew"]]))
    shared = [shared_memory_row(machine, key, mode) for key in keys
              if machine.least(key, mode, SHARED_MEMORY)]
    if shared:
        parts.append(table(["work", "replicas", "ditto", "DeepSpeed", "vLLM", "gloo in shared memory",
                            "ditto / best"], shared))
    skews = [skew_row(machine, key, mode) for key in keys if key[0] == "skew"]
    if skews:
        parts.append(table(["work", "late by (us)", "ditto"] + peers + ["CPU: ditto"] + peers, skews))
    waits = [wait_row(machine, key) for key in keys if key[0] == "wait"]
    if waits:
        parts.append("Waiting, microseconds of a repetition / of CPU time:\n")
        parts.append(table(["load", "late by (us)"] + WAITS +
                           ["time: of the best default", "of the best", "CPU: of the best default",
                            "of the best", "active / peers' active", "passive / peers' passive"], waits))
    lives = [["create and destroy" if key[0] == "create" else "CPU time in one second at rest", key[1],
              f"{machine.figure(key, mode, 'ditto') / 1e6:.2f}"] for key in keys if key[0] in LIFE]
    if lives:
        parts.append(table(["a strategy's life", "replicas", "ms"], lives))
    return "\n".join(parts)


def main():
    what, machines = sys.argv[1], [Machine(path) for path in sorted(sys.argv[2:])]
    if what == "main":
        print(summary(machines[0]))
        return
    print(legend(machines))
    print(side_by_side(machines))
    for machine in machines:
        for mode in machine.mode_numbers():
            print(of_machine(machine, mode))


main()
