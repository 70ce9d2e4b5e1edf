"""Runs ditto-info --json on this machine and on described ones, and compares its output with
docs/ditto-info.schema.json.

It checks types, required members and enums, and that the schema describes every member that is printed. It
also checks the exit status of machines that are wrong, and the output of --placement. The environment
variables that ditto-info lists are compared with those that the sources read, those of the page and those of
its man page.

usage: check_info.py PROGRAM SCHEMA"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, "tools")
import man_pages

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, path):
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_type(value, name) for name in names):
        yield f"{path} is {value!r}, not of type {names}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path} is {value!r}, not one of {schema['enum']}"
    elif isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{path}.{name} is missing"
        for name, member in value.items():
            if name not in schema["properties"]:
                yield f"{path}.{name} is not in the schema"
            else:
                yield from problems(member, schema["properties"][name], f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(item, schema["items"], f"{path}[{index}]")


def run(program, words, **variables):
    # ditto-info reports the signal that ended its child, so a sanitizer must not handle signals.
    options = {name: os.environ.get(name, "") + ":handle_segv=0" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **options, **variables})


def differences_of_variables(program, schema):
    """Compares the lists of environment variables, and looks for what is said of one that is not in them."""
    sources = "".join(path.read_text() for pattern in ("src/**/*.c", "python/**/*.py")
                      for path in pathlib.Path(".").glob(pattern))
    page = pathlib.Path("docs/environment.md").read_text()
    usual = dict(re.findall(r"^\| `(DITTO_\w+)` \|.*\| `?([^|`]+)`? \|[^|]*\|$", page, re.M))
    read = set(re.findall(r'(?:getenv|environ\.get|dti_environment_\w+)\("(DITTO_\w+)"', sources))
    man = set(re.findall(r"^\.B (DITTO_\w+)$", man_pages.environment_page("", ""), re.M))
    for name, found in (("the sources", read), ("the man page", man),
                        ("the schema", set(schema["properties"]["environment"]["properties"]))):
        if found != set(usual):
            yield f"{name} has {sorted(found)}, but docs/environment.md has {sorted(usual)}"
    launcher = r"(?:OMPI|MPI|PMI|SLURM)_[A-Z_]+"
    read, said = set(re.findall(f'"({launcher})"', sources)), set(re.findall(f"`({launcher})`", page))
    if read != said:
        yield f"the sources have {sorted(read)}, but docs/environment.md has {sorted(said)}"

    values = {"DITTO_LIBRARY_PATH": "/", "DITTO_PART": "off", "DITTO_PIN": "none",
              "DITTO_PUS_PER_REPLICA": "1", "DITTO_SPIN_US": "5", "DITTO_TIMEOUT_MS": "90000",
              "DITTO_TUNING": "small_bytes=2K", "DITTO_WAIT": "default"}
    printed = json.loads(run(program, ["--json"], **values).stdout)["environment"]
    if printed != values or set(values) != set(usual):
        yield f"with {values}, --json printed {printed}"
    # One line, in the description of the strategy, or on the standard error if there is none.
    sentence = "DITTO_TIMEOUT is not a variable of ditto; the nearest is DITTO_TIMEOUT_MS\n"
    for words in (["--placement"], ["--synthetic", "pu:4"], ["--json"], []):
        wrong = run(program, words, **values, DITTO_TIMEOUT="5", DITTO_TEST_SHORT="yes")
        error = f"ditto-info: {sentence}" if words else ""
        if wrong.stderr != error or wrong.stdout.count(sentence) != (0 if words else 1):
            yield f"{words} with DITTO_TIMEOUT: {wrong.stderr!r} and {wrong.stdout!r}"
    listed = dict(re.findall(r"^  (DITTO_\w+)\S*: .* \(default: (.*)\)$", wrong.stdout, re.M))
    if listed != usual:
        yield f"ditto-info lists {listed}, but docs/environment.md has {usual}"


def differences_of_affinity(program):
    """Binds ditto-info to one PU, as OpenMP binds a program, and looks for the warnings."""
    pus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, pus[:1])
    bound = json.loads(run(program, ["--json"], OMP_PROC_BIND="true").stdout)
    os.sched_setaffinity(0, pus)
    said = " ".join(warning["what"] for warning in bound["warnings"])
    cpuset = bound["limits"]["cpuset_pus"]
    left_out = f"leaves out {cpuset - 1} of the cpuset's {cpuset} PUs"
    if (left_out in said) != (cpuset > 1) or "OMP_PROC_BIND lets OpenMP bind" not in said:
        yield f"bound to one PU, the warnings are {said!r}"
    if "affinity leaves out" in run(program, ["--cpus", str(pus[0])]).stdout and len(pus) == cpuset:
        yield "with --cpus, ditto-info says that the affinity leaves out PUs"


def differences_of_kinds(program):
    """Places replicas on a machine with four slow and four fast cores."""
    for words, leaders, remedy in ((["--replicas", "4"], "4567", "nothing"),
                                   (["--replicas", "5"], "45670", "--kinds 1"),
                                   (["--kinds", "1"], "4567", None)):
        found = json.loads(run(program, ["--json", "--topology",
                                         "tests/replicas/machine/machines/rk3588.xml", *words]).stdout)
        if [str(replica["devices"][0]["pu"]) for replica in found["replicas"]] != list(leaders):
            yield f"{words} places replicas on {found['replicas']}"
        said = [warning for warning in found["warnings"]
                if warning["what"] == "the cores are of 2 kinds, the fastest first: PUs 4-7; 0-3"]
        if [remedy in warning["remedy"] for warning in said] != ([True] if remedy else []):
            yield f"{words} warns {found['warnings']}"


def main(program, schema_path):
    schema = json.load(open(schema_path))
    found = []
    machines = "tests/replicas/machine/machines/"
    for words in (
        [], ["--measure"], ["--replicas", "5"], ["--per", "machine"], ["--per", "machine", "--no-helpers"],
        ["--synthetic", "pack:2 [numa] core:4 pu:2", "--pus", "4"],
        ["--topology", machines + "memoryless.xml"],
        ["--topology", machines + "cpuless.xml", "--per", "node"],
        ["--topology", machines + "hbm.xml", "--shape", "1,1,2,1", "--replicas", "2"],
        ["--synthetic", "pack:2 [numa] core:64 pu:2(indexes=2*128:128*1)", "--per", "llc", "--no-smt"],
        ["--synthetic", "pack:2 [numa] core:4 pu:1", "--cpus", "1-3,6", "--compact"],
    ):
        result = run(program, ["--json", *words])
        if result.returncode != 0:
            found.append(f"{words}: exit {result.returncode}: {result.stderr}")
            continue
        found += [f"{words}: {problem}" for problem in problems(json.loads(result.stdout), schema, "info")]
    for words in (["--shape", "1,2"], ["--cpus", "9-8"], ["--topology", "/nowhere.xml"]):
        result = run(program, words)
        if result.returncode != 1 or result.stderr == "":
            found.append(f"{words}: exit {result.returncode}, expected 1, stderr {result.stderr!r}")
    # hwloc 2.9 crashes when it reads this file. A later version may read it.
    result = run(program, ["--topology", machines + "no_complete_nodeset.xml"])
    says_why = result.stderr.startswith("ditto-info: ")
    if result.returncode not in (0, 1) or (result.returncode == 1 and not says_why):
        found.append(f"a file on which hwloc crashes: exit {result.returncode}, stderr {result.stderr!r}")
    text = run(program, ["--placement", "--per", "machine"])
    if not text.stdout.startswith("ditto-placement 1\n") or not text.stdout.endswith("end\n"):
        found.append(f"--placement printed {text.stdout!r}")
    for option in ("--shape", "--stride"):  # without a number, a strategy of such a placement has one replica
        text = run(program, ["--placement", "--synthetic", "pack:1 [numa] core:8 pu:1", option, "1,1,2,1"])
        if text.stdout.count("replica ") != 1:
            found.append(f"{option} without --replicas printed {text.stdout!r}")
    found += differences_of_variables(program, schema)
    found += differences_of_affinity(program)
    found += differences_of_kinds(program)
    active = run(program, [], DITTO_WAIT="active")
    for line in ("  DITTO_WAIT=active: ", " spin for 10 s, then sleep"):
        if line not in active.stdout:
            found.append(f"with DITTO_WAIT=active, {line!r} is not in {active.stdout!r}")
    for name, value in (("DITTO_WAIT", "lazy"), ("DITTO_PIN", "yes"), ("DITTO_PUS_PER_REPLICA", "0"),
                        ("DITTO_PUS_PER_REPLICA", "8192"), ("DITTO_PUS_PER_REPLICA", "two")):
        refused = run(program, [], **{name: value})
        if refused.returncode != 1 or name not in refused.stderr:
            found.append(f"with {name}={value}: exit {refused.returncode}, stderr {refused.stderr!r}")
    wide = json.loads(run(program, ["--json"], DITTO_PUS_PER_REPLICA="1").stdout)["replicas"]
    if [len(replica["devices"]) for replica in wide] != [1] * len(wide):
        found.append(f"with DITTO_PUS_PER_REPLICA=1, the replicas are {wide}")
    print("\n".join(found) if found else "the output of ditto-info follows its schema")
    return 1 if found else 0


sys.exit(main(*sys.argv[1:]))
