"""Compares what pages say about the source tree with the tree.

A number on a page, in figures or as a word, must be what can be counted. Paths, verbs of ./run, and names of
the interface and of the sources must exist. Pages are README.md and its like, docs/, and the comments of the
public headers.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [path for pattern in ("*.md", "docs/*.md", "docs/adr/*.md", "include/**/*.h*")
         for path in sorted(ROOT.glob(pattern))]
PATH = re.compile(r"(?<![\w/.-])(?:bench|debian|docs|examples|include|python|src|tests|tools)/[\w./-]*\w")
VERB = re.compile(r"(?<!\w)\./run ([a-z]+)")
NAME = re.compile(r"\b(?:ditto|DITTO|dti|DTI)_\w*[^\W_]\b")
WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen".split()
NUMBER = rf"(\d+|{'|'.join(WORDS)})"


def read(path):
    return (ROOT / path).read_text()


def count(path, pattern):
    return len(re.findall(pattern, read(path), re.M))


def changed(port, original, new):
    """Returns how many lines of a port have changed, and how many of them are taken away."""
    folder = ROOT / "examples" / "ports" / port
    lines = subprocess.run(["diff", folder / original, folder / new], capture_output=True, text=True,
                           check=False).stdout.splitlines()
    taken = sum(line.startswith("<") for line in lines)
    return [taken + sum(line.startswith(">") for line in lines), taken]


OWN_WORDS = [len(re.findall(r"^\*\*", read("docs/glossary.md").partition("\n## Terms")[0], re.M))]
LESSONS = [len(list(ROOT.glob("examples/[0-9]*.c")))]
DTYPES = [count("include/ditto/dtype.h", r"^    X\(DITTO_")]
OPERATORS = [count("include/ditto/collective.h", r"^    DITTO_[A-Z]+ = [0-9],")]
WIRE = [count("include/ditto/cluster.h", r"^    \w+ \(\*\w+\)\(void \*user")]

# Pages, what they say, with # for each number, and the numbers. README.md need not say it.
SAID = [
    ("README.md", r"defines # words", OWN_WORDS),
    ("CONTRIBUTING.md", r"\(# words\)", OWN_WORDS),
    ("docs/glossary.md", r"the # words that are ditto's own", OWN_WORDS),
    ("docs/style.md", r"ditto has # words of its own", OWN_WORDS),
    ("README.md", r"# lessons", LESSONS),
    ("docs/architecture.md", r"# lessons", LESSONS),
    ("README.md", r"Fortran: # modules", [len(list(ROOT.glob("src/fortran/*.f90")))]),
    ("docs/tutorial.md", r"It has # steps", [count("docs/tutorial.md", r"^## \d+\. ")]),
    ("docs/from-mpi.md", r"C\+\+ \(# lines of change, of which # are taken away",
     changed("conjugate_gradients", "mpi.cpp", "ditto.cpp")),
    ("docs/from-mpi.md", r"Fortran \(# lines, of which # are taken away",
     changed("jacobi", "mpi.f90", "ditto.f90")),
    ("CHANGELOG.md", r"for # dtypes", DTYPES),
    ("docs/adr/0010-one-source-for-all-kernels.md", r"There are # dtypes, # operators",
     DTYPES + OPERATORS),
    ("docs/cluster.md", r"`ditto_wire`\. Its # functions", WIRE),
    ("docs/adr/0029-headers-between-hosts.md", r"a table of # functions\*\* \(`ditto_wire`\)", WIRE),
]


def check_numbers():
    problems = []
    for page, pattern, numbers in SAID:
        found = re.search(pattern.replace("#", NUMBER), " ".join(read(page).split()), re.I)
        if found is None and page != "README.md":
            problems.append(f"{page}: nothing matches {pattern}, so there is nothing to compare")
        elif found:
            said = [int(text) if text.isdigit() else WORDS.index(text.lower()) for text in found.groups()]
            if said != numbers:
                problems.append(f"{page}: \"{found[0]}\" should have {numbers}")
    return problems


def check_names():
    known = set()
    for folder in ("include", "src", "python", "bench", "tests", "tools", "examples"):
        for path in (ROOT / folder).rglob("*.*"):
            if path.is_file() and path.suffix != ".md":
                known.update(NAME.findall(path.read_bytes().decode(errors="replace")))
    verbs = re.search(r"^verbs=['\"]?([a-z ]+)", read("run"), re.M)[1].split() + ["help"]
    problems, num_names = [], 0
    for page in PAGES:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            place = f"{page.relative_to(ROOT)}:{number}"
            paths, names = PATH.findall(line), NAME.findall(line)
            problems += [f"{place}: ./run has no {verb}" for verb in VERB.findall(line) if verb not in verbs]
            num_names += len(paths) + len(names)
            problems += [f"{place}: {path} does not exist" for path in paths if not (ROOT / path).exists()]
            problems += [f"{place}: {name} is in no source" for name in names if name not in known]
    return problems, num_names


def main():
    problems, num_names = check_names()
    problems += check_numbers()
    print(f"{len(PAGES)} pages, {len(SAID)} sentences with numbers, {num_names} paths and names")
    print("\n".join(problems) if problems else "all agree with the tree")
    return 1 if problems else 0


sys.exit(main())
