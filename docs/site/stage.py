"""Copies the pages of the site into a folder, from which Sphinx makes it. The folders are those of the source
tree, so links between pages stay as they are. A link to a file that is no page becomes the name of the file.

usage: stage.py OUTPUT
"""
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs" / "adr").glob("*.md"))
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def outside_of_code(text, change):
    """Applies a function to the parts of a page that are not blocks of code."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    for number in range(0, len(parts), 2):
        lines = parts[number].split("\n")
        parts[number] = "\n".join(line if line.startswith("    ") and "](" in line and not is_list(lines, i)
                                  else line for i, line in enumerate(lines))
        parts[number] = change(parts[number])
    return "".join(parts)


def is_list(lines, number):
    """True if the line is indented because it belongs to an item of a list."""
    for line in reversed(lines[:number]):
        if line and not line.startswith(" "):
            return line.startswith(("-", "*")) or re.match(r"\d+\.", line) is not None
    return False


def staged(page, text, pages):
    folder = page.parent

    def replace(match):
        mark, label, target = match.groups()
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return match[0]
        file = target.partition("#")[0]
        path = os.path.normpath(os.path.join(folder.relative_to(ROOT), file))
        if mark or path in pages:
            return match[0]
        if not (ROOT / path).exists():
            sys.exit(f"{page.relative_to(ROOT)}: a link to {target}, which does not exist")
        name = f"`{path}`"
        is_name = label.strip("`").rstrip("/") in (path, file, os.path.basename(path))
        return name if is_name else f"{label} ({name})"

    return outside_of_code(text, lambda part: LINK.sub(replace, part))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    output = pathlib.Path(sys.argv[1])
    pages = {str(page.relative_to(ROOT)) for page in PAGES}
    for page in PAGES:
        write(output / page.relative_to(ROOT), staged(page, page.read_text(), pages))
    (output / "docs" / "figures").mkdir(exist_ok=True)
    for folder in ("docs", "docs/figures"):
        for picture in sorted((ROOT / folder).glob("*.svg")):
            shutil.copyfile(picture, output / folder / picture.name)
    write(output / "index.md", (ROOT / "docs" / "site" / "index.md").read_text())
    overview = output / "README.md"  # the home page has its title already
    write(overview, re.sub("^# ditto$", "# Overview", overview.read_text(), count=1, flags=re.M))

    with (output / "docs" / "adr" / "README.md").open("a") as index:
        index.write("\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n")
    print(f"stage: {len(PAGES)} pages")


main()
