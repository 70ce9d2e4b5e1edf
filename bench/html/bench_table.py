"""bench/html/bench_table.py - writes the table of a bench, with a line for each row of the CSV."""
import re

from modes import DISTURBED
from tables import Column, number_column, ratio_column, table_of, us_column
from texts import digits, place_text, size_text


def best_peer(rows):
    """Returns the fastest peer among the rows of a measurement, or None."""
    return min((row for row in rows if row.is_peer() and row.is_positive()), key=lambda row: row.median,
               default=None)


def of_bound(row):
    """Returns the bound divided by the row's time."""
    return row.bound / row.median if row.bound and row.is_positive() else None


def to_best_peer(row):
    """Returns the row's time divided by that of the best peer of its measurement.

    Benches without contenders measure a peer themselves, and print only the quotient."""
    if not row.is_positive():
        return None
    best = best_peer(row.measurement)
    if best:
        return row.median / best.median
    if len(row.measurement) == 1 and row.text("bound_form") and row.number("peer_ratio"):
        return 1 / row.number("peer_ratio")
    return None


def columns_of(report):
    """Returns all columns that the table of a bench may have. Counters are the last ones."""
    sort = " Sorts by this column."
    columns = [
        Column("contender", lambda row: row.contender),
        number_column("replicas", lambda row: row.number("replicas"), "replicas"),
        Column("dtype", lambda row: row.text("dtype")),
        Column("op", lambda row: row.text("op")),
        Column("place", place_text),
        Column("roots", lambda row: "in turn" if row.text("turns") == "1" else ""),
        Column("size", lambda row: size_text(row.bytes) if row.bytes else "", lambda row: row.bytes, "bytes"),
        number_column("PUs", lambda row: row.number("devices") if row.bench == "parallel-for" else None,
                      "devices"),
        number_column("late by, us", lambda row: row.number("skew_us"), "skew_us"),
        number_column("load", lambda row: row.number("load"), "load",
                      "Busy processes on each PU. Sorts by this column."),
        Column("hand-over, ns", lambda row: "disturbed" if row.mode == DISTURBED else digits(row.hand_over),
               lambda row: row.hand_over, "hand_over_ns",
               "Time in which a store of one PU becomes visible on another." + sort),
        us_column("min, us", lambda row: row.min, "ns_min"),
        us_column("median, us", lambda row: row.median, "ns_median"),
        us_column("p95, us", lambda row: row.p95, "ns_p95"),
        us_column("bound, us", lambda row: row.bound, "bound_ns",
                  "The fastest hand-written form, or the limit that the bench sets." + sort),
        Column("its form", lambda row: row.text("bound_form") or ("limit" if row.bound else "")),
        ratio_column("bound /\u00a0time", of_bound, "of_bound", "Less than 1: slower than the bound." + sort),
        ratio_column("time /\u00a0best peer", to_best_peer, "of_peer",
                     "More than 1: slower than the best peer of the same measurement." + sort),
        number_column("CPU share", lambda row: row.number("cpu_share"), "cpu_share"),
        number_column("CPU ratio", lambda row: row.number("cpu_ratio"), "cpu_ratio",
                      "CPU time divided by that of the same work alone." + sort),
        number_column("in collectives", lambda row: row.number("operation_share"), "operation_share"),
        number_column("batches", lambda row: row.number("batches"), "batches"),
        Column("remarks", lambda row: ", ".join(row.remarks())),
    ]
    for name in report.counters:
        columns.append(Column(name, lambda row, name=name: row.text(name)
                              if re.search(r"\d(;|$)", row.text(name)) else ""))
    return columns


def attributes_of(row):
    names = (["ditto"] if row.contender == "ditto" else []) + (["doubtful"] if row.is_doubtful() else [])
    return f' data-line="{row.line}"' + (f' class="{" ".join(names)}"' if names else "")


def bench_table(report, bench, rows):
    """Returns the table of a bench, which has these rows of the report."""
    return table_of(columns_of(report), rows, "bench", f"rows of {bench}", attributes_of)
