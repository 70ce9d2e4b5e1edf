#!/bin/sh
# Makes the documentation: OUTDIR/html is the site, and OUTDIR/man has the man pages of sections 3 and 7.
# OUTDIR/work can be deleted afterwards. All pages are made anew, which takes about 20 seconds.
#     sh tools/docs.sh OUTDIR
# It needs doxygen, Sphinx, the theme furo and the MyST parser. In Debian they are the packages doxygen,
# python3-sphinx, furo and python3-myst-parser.
set -eu
[ $# -eq 1 ] || { echo "usage: sh tools/docs.sh OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
# Debian's modules belong to Debian's Python, and another python3 may come first in PATH.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
command -v doxygen >/dev/null || { echo "docs: doxygen is missing" >&2; exit 1; }
"$python" -c 'import sphinx, furo, myst_parser' ||
    { echo "docs: install python3-sphinx, furo and python3-myst-parser" >&2; exit 1; }

work=$out/work
pages=$work/pages
rm -rf "$work" "$out/html" "$out/man"
mkdir -p "$pages"
{ cat docs/site/Doxyfile && echo "OUTPUT_DIRECTORY = \"$work\""; } | doxygen -
"$python" docs/site/stage.py "$pages"
"$python" docs/site/reference.py "$work/xml" "$pages/reference"
"$python" -m sphinx -q -W --keep-going -b html -d "$work/doctrees" -c docs/site "$pages" "$out/html"
"$python" tools/man_pages.py "$work/xml" "$out/man"
echo "docs: $out/html/index.html"
