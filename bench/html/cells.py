"""bench/html/cells.py - collects the rows of the same work, size and mode. Their figures are medians."""
import statistics

from modes import DISTURBED


def median(values):
    """Returns the median of the positive values, or None if there are none."""
    values = [value for value in values if value is not None and value > 0]
    return statistics.median(values) if values else None


class Cell:
    """All rows of one group, size and mode.

    If a contender was measured several times, its figure is the median of the medians."""

    def __init__(self):
        self.rows = {}  # contender -> its rows

    def figure(self, contender):
        return median([row.median for row in self.rows.get(contender, [])])

    def bound(self):
        first = "ditto" if "ditto" in self.rows else next(iter(self.rows))
        return median([row.bound for row in self.rows[first]])

    def best_peer(self):
        """Returns the name of the fastest peer, or None if there is no peer."""
        peers = [name for name, rows in self.rows.items() if rows[0].is_peer() and self.figure(name)]
        return min(peers, key=self.figure, default=None)

    def doubts(self, contender):
        """Returns in words why the figure of the contender is not certain."""
        return sorted({word for row in self.rows.get(contender, []) for word in row.remarks()
                       if row.is_doubtful()})


def cells_of(report):
    """Returns a dictionary from (group, mode) to a dictionary from sizes to cells.

    Both are in the order of the file. Disturbed rows are left out."""
    cells = {}
    for row in report.rows:
        if row.mode != DISTURBED and row.is_positive():
            cell = cells.setdefault((row.group, row.mode), {}).setdefault(row.bytes, Cell())
            cell.rows.setdefault(row.contender, []).append(row)
    return cells
