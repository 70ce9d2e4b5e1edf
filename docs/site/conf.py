"""The settings of Sphinx for the site. tools/docs.sh runs it on the pages that stage.py and reference.py have
put into one folder."""
import json
import pathlib
import re
import sys
import unittest.mock

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "ditto"
author = "The ditto developers"
project_copyright = "The ditto developers, BSD 3-clause licence"
release = version = re.search(r"version : '([^']+)'", (ROOT / "meson.build").read_text())[1]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = []
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
suppress_warnings = []
highlight_language = "text"
primary_domain = "c"
nitpicky = True  # a name of ditto that is not found is a warning
nitpick_ignore_regex = [(r"c:.*", r"(?!ditto|DITTO).*"), (r"cpp:.*", ".*"), (r"py:.*", r"(?!ditto\.[A-Z]).*")]
toc_object_entries_show_parents = "hide"
smartquotes_action = "D"  # dashes, and no other quotes than those of the text

# The reference of the Python package is made from its docstrings. It is imported without NumPy and without
# the library.
sys.path.insert(0, str(ROOT / "python"))
autodoc_mock_imports = ["numpy"]
unittest.mock.patch("ctypes.CDLL").start().return_value.ditto_version.return_value = release.encode()
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
default_role = "literal"  # of `text` in docstrings

html_theme = "furo"
html_title = f"ditto {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
# The search would read pages to show parts of them, which browsers refuse for files.
html_show_search_summary = False
html_search_scorer = str(ROOT / "docs" / "site" / "search.js")
# Debian's furo has no rule for readers whose system asks for dark colours. These are for both: the system and
# the button of the page.
html_theme_options = {
    "navigation_with_keys": True,
    "dark_css_variables": {
        "color-problematic": "#ff8f8f",
        "color-foreground-primary": "#dcdfe4",
        "color-foreground-secondary": "#b0b6be",
        "color-foreground-muted": "#a0a7b0",
        "color-foreground-border": "#777d85",
        "color-background-primary": "#14171b",
        "color-background-secondary": "#1b1f24",
        "color-background-hover": "#262b31",
        "color-background-hover--transparent": "#262b3100",
        "color-background-border": "#363c44",
        "color-background-item": "#4a515a",
        "color-brand-primary": "#7db4ff",
        "color-brand-content": "#8bbcff",
        "color-highlighted-background": "#0d3a66",
        "color-api-keyword": "#b0b6be",
        "color-highlight-on-target": "#34341a",
        "color-admonition-background": "#1b1f24",
        "color-card-background": "#1b1f24",
        "color-card-marginals-background": "#262b31",
    },
}
# Styles whose text has enough contrast.
pygments_style = "default"
pygments_dark_style = "github-dark"


# The languages of indented blocks, which cannot name theirs, by how a line of them begins. A block with
# columns of words is text.
BEGINNINGS = {
    "text": r".*\S {3,}[^#\s]",
    "cmake": r"(project|find_package)\(",
    "python": r"(import|from|with|def) ",
    "sh": r"(\./|build/|[A-Za-z_]+=\S|(c\+\+|cc|cmake|export|gcc|meson|mkdir|mkfifo|mpirun|ninja|nm|perf) |"
          r"(python3|sh|sudo) )",
}


class FindLanguages(SphinxTransform):
    """Gives the blocks of code that name no language their own."""

    default_priority = 400

    def apply(self, **_arguments):
        for block in self.document.findall(nodes.literal_block):
            if block.get("language", "none") == "none":
                found = (language for language, begin in BEGINNINGS.items()
                         if re.search(f"^{begin}", block.astext(), re.M))
                block["language"] = next(found, "text")
                block["force"] = True  # highlight what the lexer understands


class LinkNames(SphinxTransform):
    """Makes links of the names of functions, types and macros that pages have in `code`."""

    default_priority = 400

    def apply(self, **_arguments):
        names = self.app.ditto_names
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext().removesuffix("()")
            ancestor = literal.parent
            while ancestor is not None and not isinstance(ancestor, (nodes.title, nodes.reference,
                                                                     addnodes.pending_xref)):
                ancestor = ancestor.parent
            if name not in names or ancestor is not None:
                continue
            link = addnodes.pending_xref("", refdomain="c", reftype=names[name].removeprefix("c:"),
                                         reftarget=name, refdoc=self.env.docname, refwarn=False,
                                         refexplicit=True)
            literal.replace_self(link)
            link += literal


def leave_out_constructors(_app, _what, name, value, _options, _signature, _returned):
    """Most classes of Python are not called by programs. Their objects are made by methods of others."""
    if isinstance(value, type) and name not in ("ditto.Strategy", "ditto.Coordinator"):
        return "", None
    return None


def make_portable(app, exception):
    """Debian's furo takes a style sheet from the root of a web server, and a script as a module, which
    browsers refuse for files. Both become parts of the files that ask for them."""
    if exception is not None or app.builder.name != "html":
        return
    static = pathlib.Path(app.outdir) / "_static"
    sheet = static / "styles" / "furo.css"
    text = sheet.read_text()
    asked = re.match(r"@import url\((/[^)]*)\);", text)
    if asked:
        common = pathlib.Path("/usr/share") / asked[1].lstrip("/")
        sheet.write_text((common.read_text() if common.exists() else "") + text[asked.end():])
    script = static / "scripts" / "furo.js"
    text = script.read_text()
    asked = re.search(r'^import \w+ from "\./([^"]+)";$', text, re.M)
    if asked:
        script.write_text((script.parent / asked[1]).read_text() + text.replace(asked[0], ""))


def setup(app):
    names = pathlib.Path(app.srcdir) / "reference" / "names.json"
    app.ditto_names = json.loads(names.read_text())
    app.add_transform(FindLanguages)
    app.add_transform(LinkNames)
    app.connect("autodoc-process-signature", leave_out_constructors)
    app.connect("build-finished", make_portable)
    return {"parallel_read_safe": True}
