"""Reads the XML that Doxygen writes of the public headers. The man pages (man_pages.py) and the reference of
the site (docs/site/reference.py) are made from what this module returns.

Doxygen's XML has the comments of declarations. The contracts that a group of functions shares stand in other
comments, some of which Doxygen does not read. Those are read from the headers themselves.

Text is a list of blocks. A block is ("text", spans), ("code", text), ("list", items) or ("title", text). Each
item of a list is a list of blocks. A span is a pair of a style ("", "code", "strong" or "emphasis") and a
text.
"""
import pathlib
import re
import xml.etree.ElementTree as ElementTree

STYLES = {"computeroutput": "code", "bold": "strong", "emphasis": "emphasis"}
SYMBOLS = {"ndash": "–", "mdash": "—", "nonbreakablespace": " ", "linebreak": " ", "times": "×"}


class Entry:
    """A function, type, macro or member with its comment."""

    def __init__(self, kind, name, line):
        self.kind, self.name, self.line = kind, name, line
        self.header = ""
        self.declaration = ""
        self.text = []        # blocks of the description
        self.parameters = []  # (name, blocks)
        self.returns = []     # blocks
        self.values = []      # (name of the value, blocks)
        self.paragraphs = {}  # title -> blocks
        self.members = []     # entries of a struct or an enum
        self.types = set()    # the names of ditto's types in the declaration

    def returns_last(self):
        """True if the text of the return value continues the list of values, as in "or an error of ..."."""
        return bool(self.values and self.returns) and plain_text(self.returns[0][1]).startswith("or ")

    def brief(self):
        """The first sentence, as plain text."""
        for kind, content in self.text:
            if kind == "text":
                plain = plain_text(content)
                return re.split(r"(?<=[.!?])\s+(?=[A-Z])", plain)[0]
        return ""


class Header:
    """A public header: its entries and the contracts between them, both in the order of their lines."""

    def __init__(self, path):
        self.path = path       # as programs include it, for example ditto/queue.h
        self.brief = ""
        self.intro = []        # blocks
        self.entries = []
        self.contracts = []    # (line, title, blocks)

    def parts(self):
        """Contracts and entries in the order of their lines."""
        both = [(line, 0, (title, blocks)) for line, title, blocks in self.contracts]
        both += [(entry.line, 1, entry) for entry in self.entries]
        return [part for _, _, part in sorted(both, key=lambda part: part[:2])]


def plain_text(spans):
    return re.sub(r"\s+", " ", "".join(text for _, text in spans)).strip()


# -- Doxygen's XML --

def add_text(blocks, style, text):
    """Adds a piece of text to the paragraph at the end of the blocks."""
    if not text:
        return
    text = re.sub(r"\s+", " ", text)
    if not blocks or blocks[-1][0] != "text":
        if not text.strip():
            return
        blocks.append(("text", []))
        text = text.lstrip()
    blocks[-1][1].append((style, text))


def read_blocks(node, blocks, entry=None, style=""):
    """Appends the contents of a node. Sections of a function go to the entry and not to the blocks."""
    add_text(blocks, style, node.text)
    for child in node:
        tag = child.tag
        if tag == "para":
            end_paragraph(blocks)
            read_blocks(child, blocks, entry, style)
            end_paragraph(blocks)
        elif tag in STYLES:
            add_text(blocks, STYLES[tag], "".join(child.itertext()))
        elif tag in ("verbatim", "preformatted", "programlisting"):
            text = code_of(child) if tag == "programlisting" else "".join(child.itertext())
            blocks.append(("code", text.rstrip("\n")))
        elif tag in ("itemizedlist", "orderedlist"):
            blocks.append(("list", [read_blocks(item, []) for item in child.findall("listitem")]))
        elif tag == "parameterlist" and entry is not None:
            read_parameters(child, entry)
        elif tag == "simplesect" and entry is not None:
            read_section(child, entry)
        elif tag in SYMBOLS:
            add_text(blocks, style, SYMBOLS[tag])
        else:
            read_blocks(child, blocks, entry, style)
        add_text(blocks, style, child.tail)
    return clean(blocks) if entry is None and node.tag != "para" else blocks


def end_paragraph(blocks):
    if blocks and blocks[-1][0] == "text":
        blocks.append(("end", None))


def clean(blocks):
    """Removes paragraphs without text, and spaces at the ends of the others."""
    cleaned = []
    for kind, content in blocks:
        if kind == "end" or kind == "text" and not plain_text(content):
            continue
        if kind == "text":
            style, text = content[-1]
            content = [*content[:-1], (style, text.rstrip())]
        cleaned.append((kind, content))
    return cleaned


def code_of(listing):
    lines = []
    for line in listing.iter("codeline"):
        text = []
        for part in line.iter():
            text += [" "] if part.tag == "sp" else [part.text or ""]
            text.append((part.tail or "") if part is not line else "")
        lines.append("".join(text))
    return "\n".join(lines)


def read_parameters(node, entry):
    for item in node.findall("parameteritem"):
        name = "".join(item.find("parameternamelist").itertext()).strip()
        blocks = read_blocks(item.find("parameterdescription"), [])
        (entry.values if node.get("kind") == "retval" else entry.parameters).append((name, blocks))


def read_section(node, entry):
    blocks = []
    for child in node:
        if child.tag == "para":
            blocks += read_blocks(child, []) + [("end", None)]
    blocks = clean(blocks)
    kind = node.get("kind")
    if kind == "return":
        entry.returns += blocks
    elif kind == "par":
        entry.paragraphs.setdefault(node.findtext("title"), []).extend(blocks)
    else:
        entry.text += blocks


def describe(entry, node):
    blocks = []
    for name in ("briefdescription", "detaileddescription"):
        read_blocks(node.find(name), blocks, entry)
        end_paragraph(blocks)
    blocks = clean(blocks) + entry.text
    # Doxygen takes the first sentence apart. Only comments of functions have it in a paragraph of its own.
    if entry.kind != "function" and len(blocks) > 1 and blocks[0][0] == blocks[1][0] == "text":
        blocks[:2] = [("text", [*blocks[0][1], ("", " "), *blocks[1][1]])]
    entry.text = blocks
    return entry


def text_of(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip() if node is not None else ""


def declaration_of(node):
    """The declaration of a member as C has it, without a semicolon."""
    name, kind = node.findtext("name"), node.get("kind")
    if kind == "define":
        parameters = [text_of(p) for p in node.findall("param")]
        return f"{name}({', '.join(parameters)})" if parameters else name
    written, arguments = text_of(node.find("type")), node.findtext("argsstring") or ""
    if kind == "enum":
        return f"enum {name}"
    before = "typedef " if kind == "typedef" else ""
    if written.endswith("(*"):  # a pointer to a function
        return f"{before}{written[:-2].rstrip()} (*{name}{arguments}"
    return f"{before}{written}{'' if written.endswith('*') else ' '}{name}{arguments}"


def member_entry(node):
    location = node.find("location")
    entry = Entry(node.get("kind"), node.findtext("name"), int(location.get("line")))
    entry.header = location.get("file")
    entry.declaration = declaration_of(node)
    entry.types = set(re.findall(r"\bditto_\w+", entry.declaration)) - {entry.name}
    if entry.kind == "enum":
        for value in node.findall("enumvalue"):
            member = Entry("value", value.findtext("name"), entry.line)
            number = text_of(value.find("initializer")).lstrip("= ")
            member.declaration = f"{member.name} = {number}" if number else member.name
            entry.members.append(describe(member, value))
    return describe(entry, node)


def struct_entry(compound):
    location = compound.find("location")
    entry = Entry("struct", compound.findtext("compoundname"), int(location.get("line")))
    entry.header = location.get("file")
    entry.declaration = f"struct {entry.name}"
    for node in compound.iter("memberdef"):
        member = member_entry(node)
        entry.members.append(member)
        entry.types |= member.types
    return describe(entry, compound)


def expand_list(entry, macros):
    """Gives an enum the members that it makes with a macro, as X(NAME, VALUE, ..., "TEXT")."""
    name = entry.name.upper() + "_LIST"
    if entry.members and not entry.members[0].name.endswith("_LIST") or name not in macros:
        return
    entry.members = []
    for written, value, rest in re.findall(r"X\(\s*(\w+),\s*(-?\d+),\s*(.*?)\)", macros[name]):
        member = Entry("value", written, entry.line)
        member.declaration = f"{written} = {value}"
        texts = re.findall(r'"([^"]*)"', rest)
        member.text = [("text", [("", texts[0])])] if texts else []
        entry.members.append(member)


# -- comments that belong to no declaration --

def spans_of(text):
    spans = []
    for piece in re.split(r"(`[^`]+`|(?<![\w*])\*\w[^*]*\w\*(?![\w*]))", text):
        if piece.startswith("`") and len(piece) > 2:
            spans.append(("code", piece[1:-1]))
        elif piece.startswith("*") and piece.endswith("*") and len(piece) > 2:
            spans.append(("emphasis", piece[1:-1]))
        elif piece:
            spans.append(("", piece))
    return spans


def blocks_of_comment(lines):
    """Paragraphs, lists with "-", and samples that are indented by four columns."""
    blocks, paragraph, sample, items = [], [], [], []

    def flush():
        if paragraph:
            blocks.append(("text", spans_of(" ".join(paragraph))))
        if sample:
            blocks.append(("code", "\n".join(sample).rstrip()))
        if items:
            blocks.append(("list", [[("text", spans_of(" ".join(item)))] for item in items]))
        paragraph.clear(), sample.clear(), items.clear()

    for line in lines:
        text = line.strip()
        if not text:
            if sample:
                sample.append("")
            else:
                flush()
        elif line.startswith("    ") and not items:
            if paragraph:
                flush()
            sample.append(line[4:].rstrip())
        elif re.match(r" {0,2}- ", line):
            if not items:
                flush()
            items.append([text[2:]])
        elif items and line.startswith("  "):
            items[-1].append(text)
        else:
            if items or sample:
                flush()
            paragraph.append(text)
    flush()
    return blocks


def lines_of_comment(comment):
    body = re.sub(r"^/\*+|\*/$", "", comment)
    lines = [re.sub(r"^ \*", "", line) for line in body.split("\n")]
    lines[0] = " " + lines[0].lstrip()
    depth = 2 if comment.startswith("/**") else 1
    return [line[depth:] if line[:depth].strip() == "" else line.lstrip() for line in lines]


def read_comments(header, source):
    """Reads the comment at the head of a header, and its contracts: the comments at the first column that are
    not followed by the declaration that they describe."""
    for match in re.finditer(r"^/\*.*?\*/", source, re.S | re.M):
        line, comment = source.count("\n", 0, match.start()) + 1, match.group()
        lines = lines_of_comment(comment)
        if line == 1:
            end = lines.index("") if "" in lines else len(lines)
            header.brief = re.sub(r"\s+", " ", " ".join(lines[:end]).split(" - ", 1)[-1]).strip()
            header.intro = blocks_of_comment(lines[end:])
            continue
        lines = [re.sub(r"@[{}]", "", text).rstrip() for text in lines]
        title = None
        if comment.startswith("/**"):
            found = re.match(r"\s*@(?:defgroup \w+|name) (.*)", lines[0])
            if not found:
                continue
            title, lines = found[1], lines[1:]
        else:
            found = re.match(r"-- (.*?)(?: --)?$", lines[0])
            if found:
                title, _, rest = found[1].partition(". ")
                lines = [rest.removesuffix(" --"), *lines[1:]]
        header.contracts.append((line, title, blocks_of_comment(lines)))


# -- everything --

def load(folder, include):
    """Returns the headers, in the order in which ditto.h includes them, and then the others.

    folder   the folder of Doxygen's XML
    include  the folder include/ of the source tree
    """
    include = pathlib.Path(include)
    entries, structs, macros = {}, {}, {}
    for path in sorted(pathlib.Path(folder).glob("*.xml")):
        if path.name in ("index.xml", "Doxyfile.xml"):
            continue
        for compound in ElementTree.parse(path).getroot().findall("compounddef"):
            if compound.get("kind") == "struct":
                entry = struct_entry(compound)
                structs[entry.name] = entry
                continue
            for node in compound.iter("memberdef"):
                entry = member_entry(node)
                entries[(entry.kind, entry.name)] = entry
                if entry.kind == "define":
                    macros[entry.name] = text_of(node.find("initializer"))
    merge_types(entries, structs, macros)

    first = re.findall(r"^#include <(ditto/\w+\.h)>", (include / "ditto.h").read_text(), re.M)
    others = sorted(f"ditto/{path.name}" for path in (include / "ditto").glob("*.h"))
    headers = []
    for path in first + [other for other in others if other not in first]:
        header = Header(path)
        read_comments(header, (include / path).read_text())
        header.entries = sorted((entry for entry in entries.values() if entry.header == path),
                                key=lambda entry: (entry.line, entry.name))
        headers.append(header)
    return headers


def merge_types(entries, structs, macros):
    """`typedef struct NAME {...} NAME` becomes one entry, and so does an enum."""
    for name, struct in structs.items():
        typedef = entries.pop(("typedef", name), None)
        if typedef is not None and not struct.text:
            struct.text = typedef.text
        entries[("struct", name)] = struct
    for (kind, name), entry in list(entries.items()):
        if kind == "enum":
            typedef = entries.pop(("typedef", name), None)
            if typedef is not None and not entry.text:
                entry.text = typedef.text
            expand_list(entry, macros)


def functions(headers):
    return [entry for header in headers for entry in header.entries if entry.kind == "function"]


# -- functions that do not state every contract --

# Headers, declarations, and what the common comments of the headers say of threads. The first row that fits
# counts.
THREADS = [
    ("", r".*\(const ditto_replica \*self.*|.*\(ditto_replica \*self.*",
     "Only the thread of the replica may call it, in replica context."),
    ("dataset|source|transform", r".*", "Any thread may call it, in any context."),
    ("topology|placement|value", r".*_destroy\(.*",
     "Any thread may call it. No other thread may use the object during the call."),
    ("topology|placement", r".*", "Any thread may call it."),
    ("value", r".*\bditto_value_.*",
     "Several threads may use a value at the same time, but none while another one destroys the handle."),
    ("context", r".*", "Any thread may call it. It concerns the calling thread."),
    ("status", r".*", "Any thread may call it. Each thread has a record of its own."),
    ("random", r".*", "Any thread may call it. One thread at a time uses a ditto_random."),
    ("queue", r".*_(put|claim|publish|abandon|fail)\(.*",
     "One thread at a time uses the number of a producer. Another thread may take over the number after it "
     "has synchronized with the return of the previous thread's last call."),
    ("queue", r".*_get\(.*", "One thread at a time is the consumer."),
    ("queue", r".*", "Any thread may call it, in any context."),
    ("trace", r".*_usage_.*", "Any thread may call it, in any context."),
    ("checkpoint", r".*\bditto_checkpoint_close.*",
     "Any thread may call it, but no other thread may use the checkpoint at the same time."),
    ("checkpoint", r".*\bditto_checkpoint_(num_entries|get|step|version|attribute|read)\(.*",
     "Several threads may use one open checkpoint at the same time, but not while it is closed."),
    ("checkpoint", r".*\bditto_checkpoint_(latest|open)\(.*", "Any thread may call it, in any context."),
    ("checkpoint", r".*\bditto_checkpointer_(save|wait|destroy).*",
     "Threads may share a checkpointer. Its calls are executed one after the other."),
    ("mpi|cluster", r".*",
     "A thread may call it that may use the cluster, see ditto_cluster_options and ditto_mpi_cluster."),
    ("", r".*\bditto_strategy_create\(.*", "Any thread may call it. Each call makes a strategy of its own."),
    ("", r".*",
     "Several threads may call functions on one strategy and its objects. Their calls are served one after "
     "the other."),
]
NO_COST = "Reads or writes a few words, and calls neither the system nor an allocator."


def thread_safety(entry):
    """The blocks of what a function says of threads, or of what its header says for it."""
    own = entry.paragraphs.get("Thread safety")
    if own:
        return own
    header = pathlib.PurePath(entry.header).stem
    for headers, pattern, sentence in THREADS:
        if (not headers or re.fullmatch(headers, header)) and re.fullmatch(pattern, entry.declaration):
            return [("text", [("", sentence)])]
    raise AssertionError(entry.name)


def cost(entry):
    return entry.paragraphs.get("Cost") or [("text", [("", NO_COST)])]
