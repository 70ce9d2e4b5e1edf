"""Writes a man page of section 3 for each public function, from Doxygen's XML of the headers. It also writes
ditto(7), an overview, and ditto-environment(7), which has the contents of docs/environment.md.

usage: man_pages.py XML OUTPUT      makes OUTPUT/man3/NAME.3 and OUTPUT/man7/NAME.7
"""
import email.utils
import pathlib
import re
import sys
import textwrap

import doxygen_xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARIES = {"ditto/checkpoint.h": "ditto-hdf5", "ditto/mpi.h": "ditto-openmpi"}
MOST_RELATED = 8
END_OF_OVERVIEW = """
## Compiling and linking

pkg-config has the flags of compilers and linkers:

    cc app.c $(pkg-config --cflags --libs ditto)

The other modules of pkg-config are `ditto-hdf5` (checkpoints), `ditto-openmpi` and `ditto-mpich` (several
hosts). In CMake, `find_package(ditto CONFIG)` makes the targets `ditto::ditto`, `ditto::hdf5`,
`ditto::openmpi` and `ditto::mpich`. In meson, `dependency('ditto')` finds the library.

## Languages

`ditto.hpp` is a header for C++17. The modules for Fortran are sources in the folder that
`pkg-config --variable=fortran ditto` prints. CMake has the target `ditto::fortran`. The package for Python is
in the folder that `pkg-config --variable=python ditto` prints.

## Files

The headers are `ditto.h` and the files of the folder `ditto`. Debian's packages have the pages and the
examples in `/usr/share/doc/libditto-dev`. docs/semantics.md, which comments name, is one of the pages.

## Environment

ditto-environment(7) lists the variables that ditto reads. ditto-info(1) prints their values.

## See also

ditto-info(1), ditto-environment(7), ditto_strategy_create(3), ditto_strategy_run(3), ditto_last_error(3)
"""


def escape(text):
    """Text of a page. A line must not begin with a point or an apostrophe, and a minus is not a hyphen."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace("–", "\\(en").replace("—", "\\(em").replace("×", "\\(mu")
    return re.sub(r"^([.'])", r"\\&\1", text)


def fill(text):
    """Wraps a paragraph, and protects the beginnings of its lines. Each sentence begins a line."""
    lines = []
    for sentence in re.split(r"(?<=[.!?:]) (?=[A-Z])", text):
        lines += textwrap.wrap(sentence, 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join(re.sub(r"^([.'])", r"\\&\1", line) for line in lines)


def spans(content):
    pieces = []
    for style, text in content:
        escaped = escape(text)
        if style == "code" and text.strip():
            escaped = f"\\fB{escaped.strip()}\\fP"
        elif style and text.strip():
            escaped = f"\\fI{escaped.strip()}\\fP"
        pieces.append(escaped)
    return fill(re.sub(r"\s+", " ", "".join(pieces)).strip())


def write_blocks(page, blocks, first="", depth=0):
    """Writes blocks. `first` is the macro before the first paragraph, .PP before all others."""
    for number, (kind, content) in enumerate(blocks):
        if kind == "text":
            macro = first if number == 0 else ".PP" if depth == 0 else ".sp"
            page += [macro, spans(content)] if macro else [spans(content)]
        elif kind == "code":
            page += [".PP" if depth == 0 else ".sp", ".RS 4" if depth == 0 else ".in +4n", ".nf"]
            page += [escape(line) or "\\&" for line in content.split("\n")]
            page += [".fi", ".RE" if depth == 0 else ".in"]
        elif kind == "list":
            page.append(".RS 4" if depth else ".PD 0")
            for item in content:
                page.append(".IP \\(bu 2")
                write_blocks(page, item, depth=depth + 1)
            page.append(".RE" if depth else ".PD")


def write_items(page, items):
    for name, blocks in items:
        page += [".TP", f".B {escape(name)}"]
        write_blocks(page, blocks, depth=1)


def write_section(page, title, blocks):
    page.append(f".SH {title}")
    write_blocks(page, blocks)


def declaration_lines(entry):
    """The declaration, with each parameter that does not fit on a line of its own."""
    head, _, rest = entry.declaration.partition("(")
    text = f"{entry.declaration};"
    if len(text) <= 78:
        return [text]
    lines, line = [], f"{head}("
    for parameter in re.split(r"(?<=,) ", f"{rest};"):
        if len(line) + len(parameter) > 78 and not line.endswith("("):
            lines.append(line.rstrip())
            line = "    "
        line += parameter + " "
    return [*lines, line.rstrip()]


def types_of(entry, types):
    """The public enums, structs and callbacks that the declaration names, and those in these types."""
    found = sorted(name for name in entry.types if name in types)
    return [types[name] for name in found if types[name].kind in ("enum", "struct") or types[name].parameters]


def write_types(page, entry, types):
    used = [used for used in types_of(entry, types) if used.name != "ditto_status"]
    if not used:
        return
    page.append(".SH TYPES")
    for number, used_type in enumerate(used):
        page += [".PP"] if number else []
        title = "struct" if used_type.kind == "struct" else used_type.kind
        page.append(f"\\fB{escape(used_type.name)}\\fP ({title}, <{escape(used_type.header)}>)")
        page.append(".br")
        write_blocks(page, used_type.text)
        if used_type.kind == "typedef":
            page += [".PP", ".nf", escape(used_type.declaration + ";"), ".fi"]
        for member in used_type.members:
            page += [".TP", f".B {escape(member.declaration)}"]
            write_blocks(page, member.text, depth=1)
            if not member.text:
                page.append("\\&")


def beginning(name, section, brief, version, date):
    """The first lines of a page. Words are not divided, because most long ones are names."""
    return [f'.TH {name} {section} "{date}" "ditto {version}" "ditto"', ".nh", ".ad l",
            ".SH NAME", f"{escape(name)} \\- {escape(brief)}"]


def write_table(page, lines):
    """Writes each row of a table in Markdown as an item, whose name is the first column."""
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    for name, *cells in rows:
        page += [".TP", f".B {escape(name.replace('`', ''))}"]
        for title, cell in zip(head[1:], cells):
            text = f"{title[:1].upper()}{title[1:]}: {cell.rstrip('.')}."
            page += [spans(doxygen_xml.spans_of(text)), ".br"]
        page.pop()


def write_markdown(page, text):
    """Writes paragraphs, samples, tables and sections."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    for part in re.split(r"^(## .*\n|(?:\|.*\n)+)", text, flags=re.M):
        if part.startswith("## "):
            page.append(f".SH {escape(part[3:].strip().upper())}")
        elif part.startswith("|"):
            write_table(page, part.splitlines())
        else:
            write_blocks(page, doxygen_xml.blocks_of_comment(part.split("\n")),
                         first="" if page[-1].startswith(".SH") else ".PP")


def environment_page(version, date):
    """The page docs/environment.md."""
    title, text = (ROOT / "docs" / "environment.md").read_text().split("\n", 1)
    page = [*beginning("ditto-environment", 7, title[2:].lower(), version, date), ".SH DESCRIPTION"]
    write_markdown(page, text)
    page += [".SH SEE ALSO", ".BR ditto (7),", ".BR ditto\\-info (1)"]
    return "\n".join(line for line in page if line) + "\n"


def overview(headers, version, date):
    """What ditto.h says, the functions of each header, and END_OF_OVERVIEW."""
    whole = doxygen_xml.Header("ditto.h")
    doxygen_xml.read_comments(whole, (ROOT / "include" / "ditto.h").read_text())
    page = [*beginning("ditto", 7, whole.brief.rstrip("."), version, date),
            ".SH SYNOPSIS", ".B #include <ditto.h>", ".SH DESCRIPTION"]
    write_blocks(page, whole.intro)
    page.append(".SH FUNCTIONS")
    for header in headers:
        names = [f"\\fB{entry.name}\\fP(3)" for entry in header.entries if entry.kind == "function"]
        if names:
            page += [".TP", f".B {escape(header.path)}", fill(escape(header.brief)), ".br"]
            page.append(fill(", ".join(names)))
    write_markdown(page, END_OF_OVERVIEW)
    return "\n".join(line for line in page if line) + "\n"


def related(entry, header, known):
    """Functions that the comment names, and then the neighbours in the header."""
    written = str([entry.text, entry.returns, entry.values, entry.parameters, entry.paragraphs])
    named = [name for name in re.findall(r"\bditto_\w+", written) if name in known and name != entry.name]
    names = [other.name for other in header.entries if other.kind == "function"]
    place = names.index(entry.name)
    near = sorted((name for name in names if name != entry.name),
                  key=lambda name: abs(names.index(name) - place))
    unique = list(dict.fromkeys(named + near))
    return sorted(unique[:max(MOST_RELATED, len(set(named)))])


def man_page(entry, header, types, known, version, date):
    brief = entry.brief().rstrip(".")
    brief = brief[:1].lower() + brief[1:] if not brief[:2].isupper() else brief
    library = LIBRARIES.get(header.path, "ditto")
    include = header.path if header.path in LIBRARIES else "ditto.h"
    page = [*beginning(entry.name, 3, brief, version, date),
            ".SH SYNOPSIS", ".nf", f"\\fB#include <{escape(include)}>\\fP", ".PP"]
    page += [f"\\fB{escape(line)}\\fP" for line in declaration_lines(entry)]
    page += [".fi", ".PP", f"Link with the flags of \\fBpkg\\-config \\-\\-libs {escape(library)}\\fP.",
             f"The declaration is in <{escape(header.path)}>."]
    write_section(page, "DESCRIPTION", entry.text)
    if entry.parameters:
        page.append(".SH PARAMETERS")
        write_items(page, entry.parameters)
    write_returns(page, entry)
    write_section(page, "THREAD SAFETY", doxygen_xml.thread_safety(entry))
    if "Ownership" in entry.paragraphs:
        write_section(page, "OWNERSHIP", entry.paragraphs["Ownership"])
    write_section(page, "COST", doxygen_xml.cost(entry))
    for title, blocks in entry.paragraphs.items():
        if title not in ("Thread safety", "Ownership", "Cost"):
            write_section(page, title.upper(), blocks)
    write_contract(page, entry, header)
    write_types(page, entry, types)
    page.append(".SH SEE ALSO")
    others = related(entry, header, known)
    page += [f".BR {escape(name)} (3)," for name in others] + [".BR ditto (7)"]
    return "\n".join(line for line in page if line) + "\n"


def write_returns(page, entry):
    if entry.returns_last():
        page.append(".SH RETURN VALUE")
        write_items(page, entry.values)
        write_blocks(page, entry.returns, first=".PP")
    elif entry.returns:
        write_section(page, "RETURN VALUE", entry.returns)
        if entry.values:
            page += [".SH ERRORS"] if all("_ERR_" in name for name, _ in entry.values) else []
            write_items(page, entry.values)
    elif entry.values:
        page.append(".SH RETURN VALUE")
        write_items(page, entry.values)


def write_contract(page, entry, header):
    """What the header says once for all functions that follow: the last such comment before this one."""
    before = [(title, blocks) for line, title, blocks in header.contracts if line < entry.line and blocks]
    if before:
        title, blocks = before[-1]
        page.append(".SH RULES OF THE HEADER")
        write_blocks(page, blocks)


def main():
    xml, output = sys.argv[1:]
    headers = doxygen_xml.load(xml, ROOT / "include")
    version = re.search(r"version : '([^']+)'", (ROOT / "meson.build").read_text())[1]
    # The same sources give the same pages, so the date is that of the last release of the packages.
    written = re.search(r"^ -- .*>  (.*)", (ROOT / "debian" / "changelog").read_text(), re.M)[1]
    date = email.utils.parsedate_to_datetime(written).strftime("%Y-%m-%d")
    types = {entry.name: entry for header in headers for entry in header.entries
             if entry.kind in ("enum", "struct", "typedef")}
    known = {entry.name for entry in doxygen_xml.functions(headers)}
    folder, folder7 = pathlib.Path(output) / "man3", pathlib.Path(output) / "man7"
    folder.mkdir(parents=True, exist_ok=True)
    folder7.mkdir(exist_ok=True)
    (folder7 / "ditto.7").write_text(overview(headers, version, date))
    (folder7 / "ditto-environment.7").write_text(environment_page(version, date))
    for header in headers:
        for entry in header.entries:
            if entry.kind == "function":
                text = man_page(entry, header, types, known, version, date)
                (folder / f"{entry.name}.3").write_text(text)
    print(f"man: {len(known) + 2} pages")


if __name__ == "__main__":
    main()
