"""bench/html/modes.py - finds the modes of the machine, which differ in the hand-overs of the rows.

bench/modes.h explains modes. A mode is known by its number in a file. Figures of two modes are never put
into one number."""
import math
import statistics

# A mode ends where a hand-over and the next greater one of the file differ by a greater factor than this. The
# same as MODES_GAP.
GAP = 1.6
# Two hand-overs of two files are in two modes if they differ by a greater factor than this.
MODES_DIFFER = 1.25
# Benches whose rows are not measured in modes.
WITHOUT_MODES = ["create", "rest", "wait"]
# The modes of rows without a hand-over.
UNKNOWN, DISTURBED = "unknown", "disturbed"


def modes_of(readings):
    """Returns lists of readings, from low to high. Neighbours in a list differ by at most GAP."""
    modes = []
    for reading in sorted(readings):
        if modes and reading <= GAP * modes[-1][-1]:
            modes[-1].append(reading)
        else:
            modes.append([reading])
    return modes


def mode_of(row, modes):
    """Returns the number of the row's mode, UNKNOWN, or DISTURBED. The batches of a row without a hand-over
    were disturbed, unless its bench or the whole file has none."""
    if row.hand_over is not None:
        return next(number for number, mode in enumerate(modes) if mode[0] <= row.hand_over <= mode[-1])
    is_single = row.text("batches") == "1" and row.text("disturbed") in ("", "0")
    if not modes or row.bench in WITHOUT_MODES or is_single:
        return UNKNOWN
    return DISTURBED


def match_modes(old, new):
    """Returns a dictionary from modes of the new report to modes of the old one.

    Two modes are the same if their hand-overs are near. Each is matched once, the nearest first."""
    distances = sorted((abs(math.log(max(statistics.median(b), 0.1) / max(statistics.median(a), 0.1))), i, k)
                       for i, a in enumerate(old.modes) for k, b in enumerate(new.modes))
    matched = {}
    for distance, i, k in distances:
        if distance <= math.log(MODES_DIFFER) and k not in matched and i not in matched.values():
            matched[k] = i
    return matched
