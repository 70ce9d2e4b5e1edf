"""Runs examples/train_words for a second. At the end the losses of both strategies must be below their
start. The CSV must be well formed, and a folder without text must be refused with a message.

usage: check_train_words.py TRAIN_WORDS REPLICAS"""
import csv
import math
import subprocess
import sys
import tempfile

STRATEGIES = ["mirrored", "asynchronous"]
COLUMNS = ["strategy", "seconds", "loss", "rows", "rows_per_s"]


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=200, check=False)


def check_curve(name, rows):
    """`rows` are those of one strategy."""
    assert len(rows) >= 2, f"{name}: only {len(rows)} samples"
    seconds = [float(row["seconds"]) for row in rows]
    updated = [int(row["rows"]) for row in rows]
    losses = [float(row["loss"]) for row in rows]
    assert seconds == sorted(seconds) and seconds[0] >= 0, f"{name}: the time goes backwards: {seconds}"
    assert updated == sorted(updated), f"{name}: the number of rows falls: {updated}"
    assert updated[0] == 0 and updated[-1] > 0, f"{name}: the rows are {updated}"
    assert all(math.isfinite(loss) for loss in losses), f"{name}: a loss is no number: {losses}"
    assert losses[-1] < losses[0], f"{name}: the loss was {losses[0]}, and is {losses[-1]} at the end"
    assert all(float(row["rows_per_s"]) >= 0 for row in rows)


def check_csv(program, replicas):
    result = run(program, "--csv", "--seconds", "1", "--replicas", replicas)
    assert result.returncode == 0, f"exit {result.returncode}: {result.stderr}"
    lines = result.stdout.splitlines()
    head = [line for line in lines if line.startswith("#")]
    assert any(f"{replicas} replicas" in line for line in head), head
    assert any("pauses" in line for line in head), "the pause of the slow replica is not said"
    table = list(csv.reader(line for line in lines if not line.startswith("#")))
    assert table[0] == COLUMNS, table[0]
    assert all(len(cells) == len(COLUMNS) for cells in table), "a line has another number of columns"
    rows = [dict(zip(COLUMNS, cells)) for cells in table[1:]]
    assert {row["strategy"] for row in rows} == set(STRATEGIES)
    for name in STRATEGIES:
        check_curve(name, [row for row in rows if row["strategy"] == name])
    assert rows[0]["loss"] == next(row["loss"] for row in rows if row["strategy"] == STRATEGIES[1]), \
        "the strategies do not begin with the same model"


def check_empty_folder(program):
    with tempfile.TemporaryDirectory() as empty:
        result = run(program, "--text", empty)
        assert result.returncode == 1 and result.stderr != "", f"an empty folder: {result}"


if __name__ == "__main__":
    check_csv(sys.argv[1], sys.argv[2])
    check_empty_folder(sys.argv[1])
