"""Checks what programs say about the words of their command lines.

For each program it compares the text of --help with what the program does: every option that the text names
is known, every number that is outside the range in the text is refused with this range, and a misspelled
option is named with the right one. The options of ditto-info are those of its man page, and the pages name
only options that exist.

usage: check_command_lines.py PROGRAM..."""
import itertools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Words that a program needs before an option can be read.
FIRST = {("ditto-bench", "--load"): ["wait"], ("ditto-bench", "--skew"): ["wait"],
         ("ditto-bench", "--devices"): ["parallel-for"], ("ditto-bench", "--turns"): ["reduce"]}
ANY_FIRST = {"ditto-bench": ["all-reduce"]}

# A program, words that it refuses, and what it says about them.
REFUSED = [
    ("ditto-info", "--replicas 2x", "--replicas is 2x, but must be a whole number from 1 to 1024"),
    ("ditto-info", "--per planet",
     "--per is planet, but must be one of pu, core, llc, node, package, machine"),
    ("ditto-info", "--shape 1,x", "--shape is 1,x, but must be four numbers like 1,1,8,2"),
    ("ditto-info", "--json=yes", "--json has no value, but yes was given"),
    ("ditto-info", "replicas 2", "replicas is unknown; the nearest is --replicas"),
    ("ditto-info", "-x", "-x is unknown"),
    ("ditto-bench", "all-reduc", "all-reduc is unknown; the nearest is all-reduce"),
    ("ditto-bench", "", "the first word must be the name of what to measure"),
    ("ditto-bench", "--csv barrier", "the first word must be the name of what to measure"),
    ("ditto-bench", "barrier run", "run is one name too many"),
    ("ditto-bench", "barrier --bytes 8", "--bytes is no option of barrier"),
    ("ditto-bench", "all-reduce --bytes 5G",
     "--bytes is 5G, but must be sizes of at most 4G, like 8,4K,1M or 8..128M"),
    ("ditto-bench", "all-reduce --bytes=-8",
     "--bytes is -8, but must be sizes of at most 4G, like 8,4K,1M or 8..128M"),
    ("ditto-bench", "all-reduce --bytes " + ",".join(["8"] * 33),
     "--bytes is " + ",".join(["8"] * 33) + ", but must be a list of at most 32 sizes"),
    ("ditto-bench", "all-reduce --op sum",
     "--op is sum, but must be one of SUM, MEAN, MIN, MAX, PROD, AND, OR, XOR"),
    ("ditto-bench", "all-reduce --groups 2", "--groups must divide the number of replicas, which is 2, into "
     "groups of at least 2"),
    ("train_words", "--seconds nan", "--seconds is nan, but must be a number from 0.1 to 3600"),
    ("train_digits", "--resume", "--resume needs a folder: add --checkpoint FOLDER"),
    ("generate", "model", "a model and its tokenizer are needed"),
    ("train", "", "the texts have 0 bytes, and a sequence has 128: name more FILEs"),
    ("train", "--data 3", "--batch 8 is no multiple of --data 3"),
    ("train", "--dim 97", "dim is no multiple of twice the number of heads"),
    ("01_hello", "-3", "REPLICAS is -3, but must be a whole number from 1 to 1024"),
    ("01_hello", "2 3", "3 is one word too many"),
    ("02_all_reduce", "x", "REPLICAS is x, but must be a whole number from 1 to 1024"),
]

# Pairs of options of ditto-info of which one would have no effect.
EXCLUSIVE = [
    (["--placement"], ["--json", "--measure", "--no-helpers"]),
    (["--topology f.xml"], ["--synthetic pu:2"]),
    (["--topology f.xml", "--synthetic pu:2"], ["--measure", "--no-helpers"]),
    (["--per node"], ["--pus 2", "--shape 1,1,1,1", "--stride 1,1,1,1"]),
    (["--pus 2"], ["--shape 1,1,1,1", "--stride 1,1,1,1"]),
    (["--read f.txt"], ["--replicas 2", "--per node", "--pus 2", "--shape 1,1,1,1", "--stride 1,1,1,1",
                        "--compact", "--no-smt"]),
]


def run(program, words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)


def check_refused(program, words, message):
    """The message may be a regular expression. Help is named after it."""
    name = pathlib.Path(program).name
    result = run(program, words)
    expected = re.compile(f"{re.escape(name)}: {message}; see {re.escape(name)} --help\\n")
    assert (result.returncode, result.stdout) == (2, "") and expected.fullmatch(result.stderr), \
        f"{name} {words}: expected {expected.pattern!r}, found {str(result)[:600]}"


def rows_of_help(program):
    """Returns what the text of --help names, and the help of each."""
    name = pathlib.Path(program).name
    result = run(program, ["--help"])
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.startswith(f"usage: {name} "), result
    rows = {}
    for line in result.stdout.splitlines():
        assert len(line) <= 80 and line == line.rstrip(), f"{name} --help: {line!r}"
        row = re.match(r"  (\S+(?: \S+)?)  +(\S.*)", line)
        if row:
            last = row[1]
            rows[last] = row[2]
        elif line.startswith("    "):
            rows[last] += " " + line.strip()
    assert {"--help", "--version"} <= rows.keys(), result.stdout
    assert run(program, ["-h"]).stdout == result.stdout
    return rows


def check_program(program, version):
    """Returns the options of the program."""
    name = pathlib.Path(program).name
    assert run(program, ["--version"]).stdout == f"{name} (ditto) {version}\n"
    check_refused(program, [*ANY_FIRST.get(name, []), "--nonsense"], "--nonsense is unknown")
    rows = rows_of_help(program)
    for typed, text in rows.items():
        option, _, value = typed.partition(" ")
        words = FIRST.get((name, option), ANY_FIRST.get(name, []))
        if option.startswith("--"):
            wrong = option[:-1]
            check_refused(program, [*words, wrong], f"{wrong} is unknown; the nearest is {option}")
            words = [*words, option]
            if value and not value.startswith("["):
                check_refused(program, words, f"{option} needs a value: {re.escape(typed)}")
        if limits := re.search(r"([\d.]+) to (\d+)", text):
            for number in (str(int(limits[2]) + 1), "-1", "1x", "none", "99999999999999999999999"):
                check_refused(program, [*words, number], rf"\S+ is {number}, but must be a (whole )?number "
                              f"from {limits[1]} to {limits[2]}")
    return {typed.split()[0] for typed in rows if typed.startswith("--")}


def check_info(program, options):
    manual = (ROOT / "tools" / "ditto-info.1").read_text().replace("\\-", "-")
    described = set(re.findall(r"^\.TP\n\.BI? (--[a-z-]+)", manual, re.M))
    assert described == options, f"ditto-info.1 and --help differ: {described ^ options}"
    for some, others in EXCLUSIVE:
        for one, other in itertools.product(some, others):
            check_refused(program, one.split() + other.split(), "--.*: leave out --.*")
    for words in (["--replicas", "3"], ["--replicas=3"]):
        result = run(program, ["--placement", "--synthetic", "pack:1 [numa] core:4 pu:1", *words])
        assert result.returncode == 0 and result.stdout.count("replica ") == 3, result


def check_run():
    script = ROOT / "run"
    text = run(script, ["help"])
    assert text.returncode == 0 and max(map(len, text.stdout.splitlines())) <= 80, text
    for words in (["--help"], ["-h"], [], ["demo", "--help"], ["bench", "all-reduce", "-h"]):
        assert run(script, words).stdout == text.stdout, words
    for words in ("hlep", "build x", "demo --epoch=2", "bench all-reduc", "bench barrier --byte 8"):
        result = run(script, words.split())
        assert result.returncode == 2 and result.stderr.endswith("; see ./run help\n"), result


def check_pages(options):
    """The pages name only options that exist. A command ends at the end of its line or of its code."""
    named = 0
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for program, words in re.findall(rf"\b({'|'.join(options)}) ([^\n`|]*)", page.read_text()):
            for option in re.findall(r"(?:^| )(--[a-z-]+)", words):
                assert option in options[program], f"{page}: {program} has no option {option}"
                named += 1
    assert named > 0


def main(programs):
    version = re.search(r"version : '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
    # "train" alone is a word of English.
    names = {program: program[program.rfind("language_model/"):] if "language_model/" in program
             else pathlib.Path(program).name for program in programs}
    options = {names[program]: check_program(program, version) for program in programs}
    for program in programs:
        for name, words, message in REFUSED:
            if pathlib.Path(program).name == name:
                check_refused(program, words.split(), re.escape(message))
        if pathlib.Path(program).name == "ditto-info":
            check_info(program, options["ditto-info"])
            check_run()
    check_pages(options)


main(sys.argv[1:])
