#!/usr/bin/env python3
"""Compares the state of the process and of threads in ditto's object files with docs/architecture.md.

usage: process_state.py BUILD_DIRECTORY
Prints each variable that only the object files have, or only the table, and exits with 1 if there is one.
Left out are the counters of calls that DTI_ENTER makes in each public function, what the compiler makes,
and the private jemalloc.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WRITABLE = re.compile(r"\.(data(\.rel\.local)?|bss|tdata|tbss)$")


def in_objects(build):
    """Pairs (object of a source file, variable) that lie in writable sections."""
    found = set()
    archives = [str(path) for path in (build / "src").glob("libditto*.a") if "kernels" not in path.name]
    command = ["nm", "-A", "-f", "sysv", *archives]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in names.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) < 7 or not WRITABLE.search(fields[6]):
            continue
        source, variable = re.match(r".*:(.*)\.o:(.*)", fields[0]).groups()
        variable = re.sub(r"\.\d+$", "", variable)
        if variable != "usage_" and "jemalloc" not in source:
            found.add((source, variable))
    return found


def in_table():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\|[^|]*\| `src/([\w/]+\.c)` \| (`.*`) \|$", page, re.M)
    return {(path.replace("/", "_"), name) for path, names in rows for name in re.findall(r"`(\w+)`", names)}


def main():
    objects, table = in_objects(pathlib.Path(sys.argv[1])), in_table()
    for source, variable in sorted(objects - table):
        print(f"{source}: {variable} is not in the table of docs/architecture.md")
    for source, variable in sorted(table - objects):
        print(f"docs/architecture.md: {source} has no variable {variable} in a writable section")
    return 1 if objects != table else 0


if __name__ == "__main__":
    sys.exit(main())
