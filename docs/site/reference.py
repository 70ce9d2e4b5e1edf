"""Writes the pages of the reference: one for each public header, an index of all functions, and the pages of
the C++ header, of the Fortran module and of the Python package. Sphinx makes the site, because the
Markdown of Doxygen differs from that of the pages, and Doxygen does not show contracts of several functions
at each of them. Breathe is not used, because the man pages need a reader of the XML anyway.

usage: reference.py XML OUTPUT      XML is the folder of Doxygen's XML
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import doxygen_xml  # noqa: E402

# Sphinx's roles for the kinds of names.
ROLES = {"function": "c:func", "struct": "c:struct", "enum": "c:enum", "typedef": "c:type", "value":
         "c:enumerator", "define": "c:macro"}


# Stands for the edge of markup inside a paragraph, where reStructuredText wants a space or an escaped one.
EDGE = "\0"

# What may become a link: names of the interface, pages and headers.
WORDS = r"(\b(?:ditto|DITTO)_\w+\b|\bdocs/[\w-]+\.md|(?:\binclude/)?\bditto/\w+\.h\b)"


class Writer:
    """Writes blocks as reStructuredText. Names of the reference become links."""

    def __init__(self, names):
        self.names = names  # name -> role
        self.lines = []
        self.indent = 0

    def line(self, text=""):
        self.lines.append(" " * self.indent + text if text else "")

    def text(self):
        return "\n".join(self.lines) + "\n"

    def title(self, text, mark):
        self.line()
        self.line(escape(text))
        self.line(mark * max(4, len(escape(text))))
        self.line()

    def spans(self, spans):
        pieces = []
        for style, text in spans:
            if style == "code" and text.strip():
                pieces.append(self.code(text.strip()))
            elif style in ("strong", "emphasis") and text.strip():
                mark = "**" if style == "strong" else "*"
                pieces.append(f"{EDGE}{mark}{escape(text.strip())}{mark}{EDGE}")
            else:
                for word in re.split(WORDS, text):
                    pieces.append(self.word(word))
        return re.sub(r"\s+", " ", "".join(pieces)).strip().strip(EDGE).replace(EDGE, "\\ ")

    def word(self, text):
        page = re.fullmatch(r"(docs/[\w-]+)\.md", text)
        if page and (ROOT / text).exists():
            return f"{EDGE}:doc:`{text} </{page[1]}>`{EDGE}"
        header = re.fullmatch(r"(?:include/)?ditto/(\w+)\.h", text)
        if header and (ROOT / "include" / "ditto" / f"{header[1]}.h").exists():
            return f"{EDGE}:doc:`{text} </reference/{header[1]}>`{EDGE}"
        return self.link(text) if text in self.names else escape(text)

    def link(self, name):
        return f"{EDGE}:{self.names[name]}:`{name}`{EDGE}"

    def code(self, text):
        return self.link(text) if text in self.names else f"{EDGE}``{text}``{EDGE}"

    def blocks(self, blocks):
        for kind, content in blocks:
            if kind == "text":
                self.line(self.spans(content))
            elif kind == "code":
                self.line(".. code-block:: " + ("c" if ";" in content else "text"))
                self.line()
                for text in content.split("\n"):
                    self.line("   " + text if text else "")
            elif kind == "list":
                for item in content:
                    self.item(item)
            self.line()

    def item(self, blocks):
        begin = len(self.lines)
        self.indent += 2
        self.blocks(blocks)
        self.indent -= 2
        self.lines[begin] = " " * self.indent + "- " + self.lines[begin].lstrip()

    def field(self, name, blocks):
        """A field, whose text may have several blocks."""
        begin = len(self.lines)
        self.indent += 3
        self.blocks(blocks)
        self.indent -= 3
        first = self.lines[begin].lstrip() if len(self.lines) > begin else ""
        self.lines[begin:begin + 1] = [" " * self.indent + f":{name}: {first}"]
        while self.lines and not self.lines[-1]:
            self.lines.pop()


def escape(text):
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def sentence(text):
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


# -- entries of C --

def write_entry(writer, entry):
    directive, declaration = entry.kind, entry.declaration
    if entry.kind == "typedef":
        directive, declaration = "type", declaration.removeprefix("typedef ")
        declaration = entry.name if declaration == f"struct {entry.name} {entry.name}" else declaration
    elif entry.kind == "define":
        directive = "macro"
    elif entry.kind in ("struct", "enum"):
        declaration = entry.name
    writer.line(f".. c:{directive}:: {declaration}")
    writer.line()
    writer.indent += 3
    writer.blocks(entry.text)
    write_fields(writer, entry)
    for member in entry.members:
        writer.line(f".. c:{'enumerator' if member.kind == 'value' else 'member'}:: {member.declaration}")
        writer.line()
        writer.indent += 3
        writer.blocks(member.text)
        writer.indent -= 3
    writer.indent -= 3
    writer.line()


def write_fields(writer, entry):
    for name, blocks in entry.parameters:
        writer.field(f"param {name}", blocks)
    if entry.returns and not entry.returns_last():
        writer.field("returns", entry.returns)
    for name, blocks in entry.values:
        writer.field(f"retval {name}", blocks)
    if entry.returns_last():
        writer.field("returns", entry.returns)
    paragraphs = dict(entry.paragraphs)
    if entry.kind == "function":
        safety, cost = doxygen_xml.thread_safety(entry), doxygen_xml.cost(entry)
        paragraphs = {"Thread safety": safety, **{k: v for k, v in paragraphs.items() if k == "Ownership"},
                      "Cost": cost, **paragraphs, "Thread safety": safety, "Cost": cost}
    for title, blocks in paragraphs.items():
        writer.field(title, blocks)
    writer.line()


def write_header(header, names):
    writer = Writer(names)
    writer.title(header.path, "=")
    writer.line(writer.spans([("", sentence(header.brief))]))
    writer.line()
    writer.line(".. code-block:: c")
    writer.line()
    optional = header.path in ("ditto/checkpoint.h", "ditto/mpi.h")
    writer.line(f"   #include <{header.path if optional else 'ditto.h'}>")
    writer.line()
    writer.blocks(header.intro)
    for part in header.parts():
        if isinstance(part, tuple):
            title, blocks = part
            if title:
                writer.title(title, "-")
            writer.blocks(blocks)
        else:
            write_entry(writer, part)
    return writer.text()


def write_functions(headers, names):
    writer = Writer(names)
    writer.title("All functions", "=")
    functions = sorted(doxygen_xml.functions(headers), key=lambda entry: entry.name)
    writer.line(f"The {len(functions)} public functions of C in alphabetical order. The :ref:`genindex` "
                "lists types, macros and members too.")
    writer.line()
    for entry in functions:
        writer.line(f":c:func:`{entry.name}`")
        writer.line("   " + writer.spans([("", entry.brief())]))
        writer.line()
    return writer.text()


def write_index(headers, names):
    writer = Writer(names)
    writer.title("Reference", "=")
    writer.line("Each public header has a page. They are listed in the order in which ``ditto.h`` includes "
                "them, which is the order for reading. ``ditto/checkpoint.h`` and ``ditto/mpi.h`` belong to "
                "libraries of their own.")
    writer.line()
    writer.line(".. list-table::")
    writer.line("   :widths: auto")
    writer.line("   :class: names")
    writer.line()
    for header in headers:
        stem = pathlib.PurePath(header.path).stem
        writer.line(f"   * - :doc:`{header.path} <{stem}>`")
        writer.line(f"     - {writer.spans([('', sentence(header.brief))])}")
    for header in CPP_HEADERS:
        writer.line(f"   * - :doc:`{header} <{cpp_page(header)}>`")
        writer.line("     - A header for C++17.")
    for module in FORTRAN_MODULES:
        writer.line(f"   * - :doc:`{module}.f90 <{fortran_page(module)}>`")
        writer.line("     - A module for Fortran 2018.")
    writer.line("   * - :doc:`import ditto <python>`")
    writer.line("     - A package for Python.")
    writer.line()
    writer.line("The man pages of section 3 have the same contents: ``man ditto_all_reduce``.")
    writer.line()
    for name, pages in [("", ["functions"]),
                        ("", [pathlib.PurePath(h.path).stem for h in headers] +
                         [cpp_page(header) for header in CPP_HEADERS] +
                         [fortran_page(module) for module in FORTRAN_MODULES] + ["python"])]:
        writer.line(".. toctree::")
        writer.line("   :hidden:")
        writer.line()
        for page in pages:
            writer.line(f"   {page}")
        writer.line()
    return writer.text()


# -- languages other than C --

# Sphinx reads the docstrings.
PYTHON_PAGE = """
The Python package ditto
========================

The guide is :doc:`/docs/python`.

.. automodule:: ditto
   :members:
   :inherited-members: dict, Exception
"""


def cpp_page(header):
    """Returns the name of the page of a header of C++: cpp, or cpp_input for example."""
    return "cpp" if header == "ditto.hpp" else "cpp_" + pathlib.PurePath(header).stem


def fortran_page(module):
    """Returns the name of the page of a module of Fortran: fortran, or fortran_input for example."""
    return module.replace("ditto", "fortran", 1)


def comment_blocks(lines):
    return doxygen_xml.blocks_of_comment(lines)


class Listing:
    """Sections, declarations and their comments, as a page."""

    def __init__(self, names, language):
        self.writer, self.language = Writer(names), language

    def title(self, text, mark):
        self.writer.title(text, mark)

    def comment(self, lines):
        self.writer.blocks(comment_blocks(lines))

    def declaration(self, lines):
        self.writer.line(f".. code-block:: {self.language}")
        self.writer.line()
        for text in lines:
            self.writer.line("   " + text if text else "")
        self.writer.line()


# Functions of C whose names differ from those of the procedures of Fortran.
SAME_IN_C = {"create_variable": "ditto_variable_create", "error_message": "ditto_last_error",
             "library_version": "ditto_version", "fail": "ditto_fail",
             "broadcast": "ditto_broadcast_from_root",
             "reduce": "ditto_reduce_to_root", "part": "ditto_exchange",
             "from_all": "ditto_dataset_concatenate", "start_apply": "ditto_apply_start",
             "finish_apply": "ditto_apply_finish", "open": "ditto_checkpoint_open",
             "close": "ditto_checkpoint_close", "save_checkpoint": "ditto_checkpoint_save",
             "restore_checkpoint": "ditto_checkpoint_restore",
             "latest_checkpoint": "ditto_checkpoint_latest"}

# The modules of Fortran, and the procedures of each that belong to no type.
FORTRAN_MODULES = {"ditto": ("tensor_of", "elements_of", "extents", "failure", "error_message",
                             "library_version"),
                   "ditto_input": ("csv_columns", "csv_text", "tensor_component"),
                   "ditto_optimizers": (),
                   "ditto_mpi": ("mpi_cluster", "mpi_end"),
                   "ditto_checkpoints": ("save_checkpoint", "restore_checkpoint", "latest_checkpoint")}

# The headers of C++, in the order for reading.
CPP_HEADERS = ("ditto.hpp", "ditto/input.hpp", "ditto/optimizer.hpp", "ditto/coordinator.hpp",
               "ditto/checkpoint.hpp")


def fortran_procedures(source):
    """Returns the procedures of the module: name -> (comment, first line, declarations of arguments)."""
    lines = source.split("\n")
    begin = lines.index("contains")
    found, comment, number = {}, [], begin + 1
    while number < len(lines):
        text = lines[number].strip()
        head = re.match(r"(?:pure )?(?:subroutine|function) (\w+)\((.*)", text)
        if text.startswith("! --"):
            comment = []
        elif text.startswith("!"):
            comment.append(text[2:])
        elif head:
            statement = text
            while statement.endswith("&"):
                number += 1
                statement = statement[:-1].rstrip() + " " + lines[number].strip().lstrip("&").lstrip()
            arguments = re.findall(r"\w+", re.search(r"\((.*?)\)", statement)[1])
            result = re.search(r"result\((\w+)\)", statement)
            wanted = arguments + ([result[1]] if result else [])
            declared, number = [], number + 1
            while "::" in lines[number]:
                names = re.findall(r"\w+", re.sub(r"\(.*?\)|=.*", "", lines[number].split("::")[1]))
                if set(names) & set(wanted):
                    declared.append(lines[number].strip())
                number += 1
            found[head[1]] = (comment, statement, declared)
            comment = []
            continue
        elif not text:
            comment = []
        number += 1
    return found


def write_fortran(module, free_procedures, names):
    path = f"src/fortran/{module}.f90"
    source = (ROOT / path).read_text()
    page = Listing(names, "fortran")
    lines = source.split("\n")
    end = next(i for i, text in enumerate(lines) if not text.startswith("!"))
    page.title(f"The Fortran module {module}", "=")
    page.comment([text[2:] for text in lines[1:end]])
    page.writer.line(f"This page is made from ``{path}``. The guide is :doc:`/docs/fortran`.")
    page.writer.line()
    procedures = fortran_procedures(source)
    public = set(re.findall(r"\w+", " ".join(re.findall(r"^    public :: (.*)", source, re.M))))
    constants = re.findall(r"^    integer\(\w+\), parameter, public :: (?:.*&\n)*.*", source, re.M)
    if constants:
        page.title("Constants", "-")
        page.declaration([text[4:] for block in constants for text in block.split("\n")])
    types = re.findall(r"((?:^    ![^\n]*\n)*)^    type(?:, bind\(c\))? :: (\w+)\n(.*?)^    end type", source,
                       re.S | re.M)
    count = 0
    for comment, name, body in types:
        if name not in public:
            continue
        page.title(f"type({name})", "-")
        page.comment([text.strip()[2:] for text in comment.split("\n") if text.strip()[:4] != "! --"])
        components = [text[8:] for text in body.split("\n")
                      if "::" in text and "procedure, " not in text and "private ::" not in text]
        page.declaration(components)
        for bound, target in re.findall(r"^        procedure, non_overridable :: (\w+) => (\w+)", body, re.M):
            count += 1
            write_procedure(page, f"{name}%{bound}", procedures[target], target, bound)
    if free_procedures:
        page.title("Procedures of the module", "-")
    for name in free_procedures:
        count += 1
        write_procedure(page, name, procedures[name], name, name)
    for callback in re.findall(r"((?:^    ![^\n]*\n)+    abstract interface\n.*?    end interface)", source,
                               re.S | re.M):
        page.title(re.search(r"subroutine (\w+)", callback)[1], "~")
        comment = [text.strip()[2:] for text in callback.split("\n") if text.startswith("    !")]
        page.comment(comment)
        page.declaration([text[8:] for text in callback.split("\n") if text.startswith("        ")])
    return page.writer.text(), count


def write_procedure(page, title, procedure, target, bound):
    comment, statement, declared = procedure
    page.title(title, "~")
    page.comment(comment)
    started = bound.removeprefix("start_") + "_start"
    candidates = [SAME_IN_C.get(bound), f"ditto_{target}", f"ditto_{bound}", f"ditto_{started}"]
    same = [name for name in candidates if name in page.writer.names]
    if same:
        page.writer.line(f"In C: :c:func:`{same[0]}`.")
        page.writer.line()
    page.declaration([re.sub(rf"\b{target}\b", bound, statement), *("    " + text for text in declared)])


def cpp_parts(source):
    """Yields the public parts of a header: ("title", text), and ("entry", (comment, declaration)) with lists
    of lines. Bodies of functions, private members and the namespace detail are left out."""
    lines = source.split("\n")
    number = next(i for i, text in enumerate(lines) if text.startswith("// -- "))
    comment = []
    while number < len(lines):
        text = lines[number]
        if text.startswith("namespace detail"):
            while not re.match(r"\} // namespace detail", lines[number]):
                number += 1
            comment = []
        elif text.startswith("// -- "):
            yield "title", text[6:].removesuffix(" --")
            comment = []
        elif text.startswith("//"):
            comment.append(text[3:])
        elif not text or text.startswith(("#", "}", "{", "inline namespace")):
            comment = []
        else:
            declaration = []
            while True:
                declaration.append(lines[number])
                joined = " ".join(declaration)
                if lines[number].rstrip().endswith((";", "}")) and joined.count("{") == joined.count("}"):
                    break
                number += 1
            yield "entry", (comment, without_bodies(declaration))
            comment = []
        number += 1


def without_bodies(lines):
    """Replaces the bodies of functions by semicolons, and drops what is private or constructs a class."""
    text = "\n".join(lines)
    is_class = re.match(r"(template <[^{;]*> *)?(class|struct)\b[^;(]*\{", text.replace("\n", " "))
    if is_class:
        depth_to_keep = 1
        text = re.sub(r"\n  private:.*?(?=\n  public:|\n\};)", "", text, flags=re.S)
    else:
        depth_to_keep = 0
    kept, depth, position = [], 0, 0
    while position < len(text):
        character = text[position]
        if character == "{":
            if depth >= depth_to_keep and is_body(kept, depth_to_keep):
                end, level = position, 0
                while True:
                    level += (text[end] == "{") - (text[end] == "}")
                    if level == 0:
                        break
                    end += 1
                while kept and kept[-1] in " \n":
                    kept.pop()
                kept.append(";")
                position = end + 1
                continue
            depth += 1
        elif character == "}":
            depth -= 1
        kept.append(character)
        position += 1
    joined = "".join(kept)
    joined = re.sub(r"\)((?: noexcept)?)\s*:\s\w+[({][^;]*;", r")\1;", joined)  # initializers of members
    result = [line.rstrip() for line in joined.split("\n")]
    return [line for i, line in enumerate(result) if line or i and result[i - 1]]


def is_body(kept, depth):
    before = "".join(kept).rstrip()
    statement = re.split(r"[;}]|\n\n|:\n", before)[-1]
    return ")" in statement and not re.search(r"=\s*$", before) and not re.search(r"\breturn$", before)


def write_cpp(header, names):
    source = (ROOT / "include" / header).read_text()
    page = Listing(names, "cpp")
    lines = source.split("\n")
    end = next(i for i, text in enumerate(lines) if not text.startswith("//"))
    page.title(header, "=")
    first = lines[0].split(" - ", 1)[1]
    page.comment([first[:1].upper() + first[1:], *[text[3:] for text in lines[1:end]]])
    page.writer.line("The guide is :doc:`/docs/cpp`. Everything is in the namespace ``ditto``.")
    page.writer.line()
    count = 0
    for kind, content in cpp_parts(source):
        if kind == "title":
            page.title(sentence(content).rstrip("."), "-")
            continue
        comment, declaration = content
        count += 1
        joined = " ".join(declaration)
        named = re.match(r"(?:template <.*?> *)?(?:class|struct) (?:\[\[nodiscard\]\] )?(\w+(?:<void>)?)",
                         joined)
        if named and "{" in joined:
            page.title(named[1], "~")
        page.comment(comment)
        page.declaration(declaration)
    return page.writer.text(), count


def main():
    xml, output = sys.argv[1:]
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    headers = doxygen_xml.load(xml, ROOT / "include")
    names = {}
    for header in headers:
        for entry in header.entries:
            names[entry.name] = ROLES[entry.kind]
            names.update((m.name, ROLES["value"]) for m in entry.members if m.kind == "value")
    pages = {pathlib.PurePath(header.path).stem: write_header(header, names) for header in headers}
    pages["functions"] = write_functions(headers, names)
    pages["index"] = write_index(headers, names)
    num_cpp, num_fortran = 0, 0
    for header in CPP_HEADERS:
        pages[cpp_page(header)], count = write_cpp(header, names)
        num_cpp += count
    for module, free_procedures in FORTRAN_MODULES.items():
        pages[fortran_page(module)], count = write_fortran(module, free_procedures, names)
        num_fortran += count
    pages["python"] = PYTHON_PAGE
    for name, text in pages.items():
        (output / f"{name}.rst").write_text(text)
    (output / "names.json").write_text(json.dumps(names, indent=0, sort_keys=True))
    print(f"reference: {len(headers)} headers, {len(doxygen_xml.functions(headers))} functions of C, "
          f"{num_cpp} declarations of C++, {num_fortran} procedures of Fortran")


main()
