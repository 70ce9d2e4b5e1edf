"""bench/html_report.py - makes a page of HTML of the CSV of ditto-bench.

    python3 bench/html_report.py NEW.csv --html FILE [--compare OLD.csv] [--machine FILE.json]
    python3 bench/html_report.py NEW.csv --check        only reads the files, and says what is wrong with them

The page needs no other file and no network. NEW.csv has the output of `ditto-bench machine` and of one or
more `./run bench --csv`. FILE.json has the output of `ditto-info --json` on the same machine. docs/perf.md
explains the page. The folder bench/html has its parts, and page.py puts them together.

The exit status is 1 if a file cannot be read or written, or is not such a CSV. Then FILE stays as it was."""
import argparse
import os
import pathlib
import sys
import tempfile

# The modules of bench/html import each other by their names alone. The folder is no package. A package would
# hide the module `html` of the standard library from all programs of bench.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "html"))
from checks import Problem
from page import page_of
from rows import Report


def write(path, text):
    """Writes a file of another name in the same folder, and renames it, so that no part of a page is left."""
    other = None
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(21, "it is a folder")
        umask = os.umask(0)
        os.umask(umask)
        handle, other = tempfile.mkstemp(prefix=".html_report-", dir=os.path.dirname(path) or ".")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(other, 0o666 & ~umask)
        os.replace(other, path)
    except OSError as error:
        if other is not None and os.path.exists(other):
            os.unlink(other)
        raise Problem(f"{path}: asked to write the page, but {error.strerror}; give the name of a file in a "
                      "folder that can be written to") from error


def main():
    parser = argparse.ArgumentParser(description="Makes a page of HTML of the CSV of ditto-bench.")
    parser.add_argument("csv", help="what `./run bench --csv` has written")
    parser.add_argument("--html", metavar="FILE", help="the page to write")
    parser.add_argument("--compare", metavar="OLD.csv", help="an older CSV, which is compared")
    parser.add_argument("--machine", metavar="FILE.json", help="what `ditto-info --json` has written")
    parser.add_argument("--check", action="store_true", help="only read the files")
    words = parser.parse_args()
    if (words.html is None) != words.check:
        parser.error("give either --html FILE or --check")
    try:
        page = page_of(Report(words.csv), Report(words.compare) if words.compare else None, words.machine)
        if words.html is not None:
            write(words.html, page)
    except Problem as problem:
        print(f"html_report: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
