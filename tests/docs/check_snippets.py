"""Compiles every snippet of the documentation and runs those that are programs.

Snippets are the ```c, ```cpp and ```fortran blocks of README.md and docs/*.md, and the indented samples in
the comments of the public headers. A snippet with main, or a program of Fortran, is linked and run in a
folder of its own, and must return 0 and leave no file behind. Any other snippet is only compiled, and so is
one that needs libditto-hdf5 if that was not built. A snippet of C or C++ without #include gets ditto.h or
ditto.hpp, and a few standard headers. Procedures of Fortran without a module get one that uses all modules of
ditto. Without a compiler of C++ or Fortran, snippets of that language are left out, and the output says so.

usage: check_snippets.py [--only PLACE] [--hdf5 LIBDITTO_HDF5] [--cpp COMPILER]
                         [--fortran COMPILER --modules LIBDITTO_FORTRAN] LIBDITTO COMPILER...
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = [ROOT / "include" / "ditto.h", *sorted((ROOT / "include" / "ditto").glob("*.h"))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
CPP_WARNINGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
INCLUDES = {
    "c": "".join(f"#include <{name}.h>\n" for name in ("ditto", "math", "stdio", "stdlib", "string")),
    "cpp": "".join(f"#include <{name}>\n" for name in ("ditto.hpp", "cmath", "cstdio", "string", "vector")),
}
LANGUAGES = {"c": "c", "cpp": "cpp", "fortran": "f90"}  # language -> how names of its files end
FORTRAN_WARNINGS = ["-std=f2018", "-Wall", "-Werror", "-frecursive"]
FORTRAN_BEGIN = "module snippet\n" + "".join(f"use{name}\n" for name in (
    ", intrinsic :: iso_c_binding", ", intrinsic :: iso_fortran_env", " ditto", " ditto_input",
    " ditto_optimizers", " ditto_checkpoints")) + (
        "implicit none\ncontains\n")
NUM_JOBS = 2
SECONDS = 120  # for each program; programs need milliseconds, and more under a sanitizer


class Snippet:
    """Code, and the file and the line at which it begins."""

    def __init__(self, path, line, lines, language="c"):
        self.language = language
        self.place = f"{path.relative_to(ROOT)}:{line}"
        self.code = "\n".join(lines) + "\n"
        if language == "fortran":
            self.source, main = self.code, r"^program \w+"
            if not re.search(r"^(module|program) ", self.code, re.M):
                self.source = f"{FORTRAN_BEGIN}{self.code}end module\n"
        else:
            includes = "" if any(text.startswith("#include") for text in lines) else INCLUDES[language]
            self.source, main = f'{includes}#line {line} "{path}"\n{self.code}', r"^int main\("
        self.is_program = re.search(main, self.code, re.M) is not None
        self.uses_checkpoints = re.search(r"ditto/checkpoint\.h|use ditto_checkpoints", self.code) is not None


def snippets_of_page(path):
    """The ```c, ```cpp and ```fortran blocks of a page. Other code of C and Fortran must not be indented,
    because it would not be compiled."""
    begin, block, fence = 0, [], None
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if text.startswith("```"):
            if fence in LANGUAGES:
                yield Snippet(path, begin, block, fence)
            fence, begin, block = (text[3:].strip() if fence is None else None), number + 1, []
        elif fence is not None:
            block.append(text)
        elif re.match(r" {4}.*\bditto_\w+\(.*;", text):
            sys.exit(f"{path.relative_to(ROOT)}:{number}: put this code into a ```c block, which is compiled")
        elif re.match(r" {4}.*(\bcall \w+%|\bend (subroutine|program|module)\b)", text):
            sys.exit(f"{path.relative_to(ROOT)}:{number}: put this code into a ```fortran block")


def snippets_of_header(path):
    """The indented samples in comments whose lines begin with " *". A sample comes after an empty line, is
    indented by at least four columns more than the text, and has a line that ends in a semicolon."""
    before, begin, block, indent = "", 0, [], 0
    for number, text in enumerate([*path.read_text().splitlines(), ""], 1):
        inside = re.match(r" \*( *)(.*?)(?: *\*/)?$", text)
        if inside and inside[2] and len(inside[1]) >= 5 and (block or before == " *"):
            begin = begin or number
            indent = indent or len(inside[1])
            block.append(" " * (len(inside[1]) - indent) + inside[2])
        elif block and inside and not inside[2]:
            block.append("")
        else:
            if any(line.endswith(";") for line in block):
                yield Snippet(path, begin, block)
            begin, block, indent = 0, [], 0
        before = text.rstrip()


def compilers(words):
    """Returns the command of each language that has a compiler."""
    includes = f"-I{ROOT / 'include'}"
    found = {"c": [*words.compiler, *WARNINGS, includes]}
    if words.cpp:
        found["cpp"] = [*words.cpp.split(), *CPP_WARNINGS, includes]
    if words.fortran:
        # meson puts the module files into the folder of the library's objects.
        found["fortran"] = [*words.fortran.split(), *FORTRAN_WARNINGS, f"-I{words.modules}.p"]
    return found


def check(snippet, folder, compiler, words):
    """Compiles the snippet, and runs it if it is a program. Returns what is wrong, or an empty text."""
    folder.mkdir()
    source = f"snippet.{LANGUAGES[snippet.language]}"
    (folder / source).write_text(snippet.source)
    can_link = snippet.is_program and (words.hdf5 or not snippet.uses_checkpoints)
    command = [*compiler, "-O0", "-g", source, "-o", "snippet"]
    if can_link:
        command += [words.modules] if snippet.language == "fortran" else []
        for library in filter(None, (words.hdf5, words.library)):
            command += [library, "-Xlinker", "-rpath", "-Xlinker", str(pathlib.Path(library).parent)]
        command += ["-lm", "-pthread"]
    else:
        # The functions of a snippet that is not a whole program may be static, and nobody calls them.
        command += ["-c", "-Wno-unused-function"]
    compiled = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if compiled.returncode != 0:
        return f"{snippet.place}: does not compile\n{compiled.stdout}{compiled.stderr}"
    if can_link:
        try:
            ran = subprocess.run(["./snippet"], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"{snippet.place}: did not end within {SECONDS} seconds"
        if ran.returncode != 0:
            return f"{snippet.place}: exit status {ran.returncode}\n{ran.stdout}{ran.stderr}"
        left = sorted(name for name in set(os.listdir(folder)) - {"snippet", source}
                      if not name.endswith(".mod"))
        if left:
            return f"{snippet.place}: left {', '.join(left)} behind"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hdf5", help="libditto-hdf5, if it was built")
    parser.add_argument("--cpp", help="the C++ compiler and its arguments, if there is one")
    parser.add_argument("--fortran", help="the Fortran compiler and its arguments, if there is one")
    parser.add_argument("--modules", help="libditto-fortran.a, beside the folder with its module files")
    parser.add_argument("--only", default="", help="check only the snippets whose place contains this text")
    parser.add_argument("library", help="libditto")
    parser.add_argument("compiler", nargs=argparse.REMAINDER, help="the compiler and its arguments")
    words = parser.parse_args()
    commands = compilers(words)

    found = [snippet for path in PAGES for snippet in snippets_of_page(path)]
    found += [snippet for path in HEADERS for snippet in snippets_of_header(path)]
    wanted = [snippet for snippet in found if words.only in snippet.place]
    snippets = [snippet for snippet in wanted if snippet.language in commands]
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(NUM_JOBS) as pool:
        folders = [pathlib.Path(scratch) / str(number) for number in range(len(snippets))]
        problems = list(filter(None, pool.map(
            lambda snippet, folder: check(snippet, folder, commands[snippet.language], words), snippets,
            folders)))

    programs = sum(snippet.is_program for snippet in snippets)
    print(f"{len(snippets)} snippets, {programs} of them programs")
    for language in sorted({snippet.language for snippet in wanted} - set(commands)):
        number = sum(snippet.language == language for snippet in wanted)
        print(f"left out: {number} snippets of {language}, because there is no compiler")
    print("\n".join(problems) if problems else "all snippets compile, and all programs work")
    return 1 if problems else 0


sys.exit(main())
