"""Checks the trace of train_digits. It must be strict JSON, and have an event for each run of each replica,
for each batch that a replica takes, and for the producer's work on this batch. Its collectives must take the
time that is in the table of train_digits.

usage: check_trace.py TRAIN_DIGITS REPLICAS"""

import json
import os
import re
import subprocess
import sys
import tempfile

TRAINING_ROWS, TEST_ROWS = 1438, 359  # of examples/data/digits.csv


def refuse(value):
    raise ValueError(f"{value} is no JSON")


def count_batches(rows, replicas, batch=32):
    """Returns the number of batches with rows that the replicas get in one pass. In the short step at the
    end, each replica gets as many rows as in a full one, until none are left."""
    shares = [batch // replicas + (i < batch % replicas) for i in range(replicas)]
    short = sum(sum(shares[:i]) < rows % batch for i in range(replicas))
    return rows // batch * replicas + short


def check(program, replicas):
    epochs = 4
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.json")
        words = [program, "--replicas", str(replicas), "--epochs", str(epochs), "--trace", path]
        table = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        with open(path, encoding="ascii") as file:
            trace = json.load(file, parse_constant=refuse)
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert trace["otherData"]["events not kept"] == "0"
    runs = epochs + 1
    for replica in range(replicas):
        own = [e for e in events if e["tid"] == replica]
        assert sum(e["name"] == "run" for e in own) == runs, f"replica {replica}: not {runs} runs"
        assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in own)
        ends = [e["ts"] + e["dur"] for e in own]
        assert all(a <= b + 0.002 for a, b in zip(ends, ends[1:])), "events do not end in order"
    track = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"]
             if e["ph"] == "M" and e["name"] == "thread_name"}
    assert all(track[replica] == f"replica {replica}" for replica in range(replicas))
    producers = set(track) - set(range(replicas))
    assert producers and {e["tid"] for e in events} <= set(track)
    for producer in producers:
        assert track[producer].startswith("producer ")
        own = sorted((e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e["tid"] == producer)
        assert all(name == "fill" for _, _, name in own)
        in_order = all(a[1] <= b[0] + 0.002 for a, b in zip(own, own[1:]))
        assert in_order, "a producer fills two batches at once"
    taken = sum(e["name"] == "ditto_next" and e["args"]["bytes"] > 0 for e in events)
    filled = sum(e["name"] == "fill" and e["args"]["bytes"] > 0 for e in events)
    expected = epochs * count_batches(TRAINING_ROWS, replicas) + count_batches(TEST_ROWS, replicas)
    assert filled == taken == expected, f"{filled} batches filled, {taken} taken, {expected} expected"
    collective_ms = sum(e["dur"] for e in events if e["cat"] == "collective") / 1000 / replicas
    rows = re.findall(r"^(ditto_\w+) +(\d+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)  (\d+)$", table, re.M)
    table_ms = sum(float(ms) for name, _, _, ms, *_ in rows if name != "ditto_next")
    times = f"collectives take {collective_ms:.3f} ms in the trace, {table_ms:.3f} ms in the table"
    assert rows and abs(collective_ms - table_ms) <= 0.05 * table_ms, times
    print(f"{replicas} replicas: {len(events)} events for {runs} runs, {times}")


check(sys.argv[1], int(sys.argv[2]))
