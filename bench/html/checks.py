"""bench/html/checks.py - reads files of text, and refuses a CSV that ditto-bench has not written.

Each message says what was asked for, what was found, and what to do."""
import math
import re

# The columns that each heading has, in the order of ditto-bench.
FIXED = ["bench", "algorithm", "replicas", "dtype", "op", "in_place", "bytes", "reps", "ns_min", "ns_median",
         "ns_p95", "gbps", "bound_ns", "noisy"]
# The columns that only newer versions print. Columns after all of these are counters.
ADDED = ["peer_ratio", "bound_form", "devices", "skew_us", "cpu_share", "cpu_ratio", "turns", "hand_over_ns",
         "batches", "disturbed", "operation_share", "load", "samples"]
# The columns that have several numbers, with semicolons between them.
LISTS = ["samples"]
# The columns that have text. All others have numbers.
TEXTS = ["bench", "algorithm", "dtype", "op", "bound_form"]


class Problem(Exception):
    """A file cannot be used. The message has one line and says why."""


def read_text(path, what):
    """Returns the text of a file. `what` names its content in messages."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise Problem(f"{path}: asked to read {what}, but found: {error.strerror}; give the name of a file "
                      "that can be read") from error
    except UnicodeDecodeError as error:
        raise Problem(f"{path}: asked to read {what}, but byte {error.start} is not text; give a file of "
                      "text") from error


def check_heading(place, columns):
    """Refuses a heading that ditto-bench does not print. `place` is the name of the file and the line."""
    missing = [name for name in FIXED if name not in columns]
    if missing:
        raise Problem(f"{place}: asked for the columns of `ditto-bench --csv`, but {missing[0]} is missing; "
                      "measure again with `./run bench --csv`")
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise Problem(f"{place}: asked for the columns of `ditto-bench --csv`, but {twice[0]} is there "
                      "twice; remove one of them")
    known = FIXED + ADDED
    last = max(columns.index(name) for name in columns if name in known)
    unknown = [name for name in columns[:last] if name not in known]
    if not unknown and "load" not in columns:  # counters follow `load`, and are never without it
        unknown = columns[last + 1:]
    if unknown:
        raise Problem(f"{place}: asked for the columns of `ditto-bench --csv`, but found the unknown column "
                      f"\"{unknown[0]}\"; remove it, or use the html_report.py of that version")


def check_cells(place, columns, cells):
    """Refuses a row that does not fit its heading, or has a cell that is no number where one is needed."""
    if len(cells) > len(columns):
        raise Problem(f"{place}: asked for {len(columns)} cells, but found {len(cells)}; compare the line "
                      "with its heading")
    for name, text in zip(columns, cells):
        if name in TEXTS or not text:
            continue
        if name not in FIXED + ADDED:
            if not all(re.fullmatch(r"([^=;]*=)?([-+.0-9e]*|nan|inf)", part) for part in text.split(";")):
                raise Problem(f"{place}: asked for counts in the column \"{name}\", which is unknown, but "
                              f"found \"{text}\"; remove the column")
            continue
        try:
            numbers = text.split(";") if name in LISTS else [text]
            good = all(math.isfinite(float(number)) for number in numbers) and \
                (name != "bytes" or int(text) >= 0)
        except ValueError:
            good = False
        if not good:
            raise Problem(f"{place}: asked for a number in the column {name}, but found \"{text}\"; "
                          "correct the line, or measure again")
    if not cells[columns.index("bench")] or not cells[columns.index("algorithm")]:
        raise Problem(f"{place}: asked for the names of a bench and a contender, but a cell is empty; "
                      "correct the line, or measure again")
