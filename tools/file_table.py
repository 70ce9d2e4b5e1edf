#!/usr/bin/env python3
"""Writes the table of source files in docs/architecture.md, from the first comment of each file.

usage: file_table.py           rewrites the table
       file_table.py --check   exits with 1 if the table is not what it would write
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- table of files: written by tools/file_table.py -->\n"
END = "<!-- end of the table of files -->\n"


def first_sentence(path):
    """The first sentence after the dash in a file's first comment; None if it only names another file."""
    comment = re.match(r"/\*(.*?)\*/", path.read_text(), re.S)
    text = re.sub(r"\s*\n \*\s?", " ", comment[1]).strip() if comment else ""
    named = re.match(r"(\S+) - (.*)", text, re.S)
    if named is None or named[1] != str(path.relative_to(ROOT)):
        sys.exit(f"{path}: the first comment does not begin with the file's path and a dash")
    sentence = re.match(r".*?\.(?=\s|$)", named[2] + ".")[0].rstrip(".:")
    if re.match(r"[Ss]ee \S+\.h$", sentence):
        return None
    if not re.match(r"\w+[_/]", sentence):  # not the name of a function or file
        sentence = sentence[0].upper() + sentence[1:]
    return sentence.replace("|", "\\|")


def table():
    rows = ["| file | what it holds |\n", "| --- | --- |\n"]
    folders = sorted({path.parent for path in (ROOT / "src").rglob("*.[ch]")})
    for folder in folders:
        rows.append(f"| **`{folder.relative_to(ROOT)}/`** | |\n")
        by_stem = {}
        for path in sorted(folder.glob("*.[ch]")):
            by_stem.setdefault(path.stem, []).append(path)
        for stem, paths in by_stem.items():
            headers_first = sorted(paths, key=lambda path: path.suffix, reverse=True)
            sentences = [s for s in map(first_sentence, headers_first) if s]
            names = ", ".join(f"`{path.name}`" for path in headers_first)
            if not sentences:
                sys.exit(f"{names}: no first sentence says what the file holds")
            # The .c file's sentence often repeats that of the header.
            if len(sentences) == 2 and sentences[1].lower() in sentences[0].lower():
                del sentences[1]
            rows.append(f"| {names} | {'. '.join(sentences)} |\n")
    return "".join(rows)


def main():
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + "\n" + table() + "\n" + END + after
    if "--check" in sys.argv:
        return 0 if page == wanted else 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
