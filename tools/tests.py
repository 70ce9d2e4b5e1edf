"""Answers questions of `./run test` and tools/check.sh about the tests of a build folder.

    tests.py FOLDER targets WORDS
                             prints what ninja must build for the tests that `meson test WORDS` would run. The
                             words are names of tests, and `--suite NAME`. Fails if a word stands for no test.
    tests.py FOLDER not-run WORDS
                             prints those of these tests that did not run, because they were not built or
                             because they skipped, and what they need
"""
import json
import os
import re
import subprocess
import sys


FOLDER = sys.argv[1] if len(sys.argv) > 1 else "build"


def introspect(what):
    found = subprocess.run(["meson", "introspect", FOLDER, what], check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def chosen(words):
    """The tests that meson would run, as meson describes them."""
    tests = introspect("--tests")
    suites = {words[i + 1] for i, word in enumerate(words[:-1]) if word == "--suite"}
    names = set(words) - suites - {"--suite"}
    for name in names - {test["name"] for test in tests}:
        needs = [packages for _, packages, optional in OPTIONAL if name in optional.split()]
        sys.exit(f"run: the test \"{name}\" was not built; it needs the packages {needs[0]}: "
                 f"type ./run test --all {name}" if needs else
                 f"run: there is no test \"{name}\"; `meson test -C build --list` lists them")
    in_suite = {"ditto:" + suite for suite in suites} | suites
    return [test for test in tests
            if (not names or test["name"] in names) and (not suites or in_suite & set(test["suite"]))]


def print_targets(words):
    files = {target["id"]: target["filename"] for target in introspect("--targets")}
    needed = {name for test in chosen(words) for target in test["depends"] for name in files[target]}
    print(*sorted(os.path.relpath(name, FOLDER) for name in needed))


# Tests that meson leaves out if something is missing: the suite, the packages that they need, and their
# names.
# tests/tools/check_packages.py compares the names and the packages with others.
OPTIONAL = [
    ("semantics", "gfortran", "fortran fortran_training fortran_lessons"),
    ("semantics", "gfortran openmpi-bin libopenmpi-dev", "fortran_hosts_openmpi"),
    ("semantics", "gfortran mpich libmpich-dev", "fortran_hosts_mpich"),
    ("fault", "openmpi-bin libopenmpi-dev", "hosts_openmpi"),
    ("fault", "mpich libmpich-dev", "hosts_mpich"),
    ("semantics", "openmpi-bin libopenmpi-dev",
     "hosts_golden_openmpi merge_on_openmpi optimizer_on_openmpi reduce_on_openmpi"),
    ("semantics", "mpich libmpich-dev",
     "hosts_golden_mpich merge_on_mpich optimizer_on_mpich reduce_on_mpich"),
    ("cluster", "mpich libmpich-dev", "hosts_network"),
    ("semantics", "openmpi-bin libopenmpi-dev mpich libmpich-dev", "ports"),
    ("fault", "libhdf5-dev", "checkpoint_faults"),
    ("unit", "libhdf5-dev", "hdf5"),
    ("semantics", "clang libomp-dev", "openmp_libomp"),
    ("semantics", "python3-numpy", "python"),
    ("unit", "python3-numpy mypy python3-typeshed", "python_types"),
]


def missing_packages(names):
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names],
                           check=False, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if f"{name} installed" not in found]


def print_not_run(words):
    """A test that skips prints `skipped, needs packages NAMES`, or `skipped: REASON`."""
    there = {test["name"] for test in introspect("--tests")}
    suites = {words[i + 1] for i, word in enumerate(words[:-1]) if word == "--suite"}
    reasons = {}
    for suite, packages, names in OPTIONAL:
        absent = set(names.split()) - there
        if absent and (suite in suites or not words):
            missing = missing_packages(packages.split())
            reason = "packages " + " ".join(missing) if missing else "more (see meson's log)"
            if not missing and absent == {"python"}:
                reason = "a library that dlopen loads (./run build makes it)"
            reasons.setdefault(reason, set()).update(absent)
    path = os.path.join(FOLDER, "meson-logs/testlog.json")
    if os.path.exists(path):
        for line in open(path, encoding="utf-8"):
            test = json.loads(line)
            name, said = test["name"].split(" / ")[-1], test.get("stdout", "")
            if test["result"] == "SKIP":
                why = re.findall(r"^skipped(?:, needs |: )(.*)", said, re.MULTILINE)
                reasons.setdefault(why[-1] if why else "the test does not say why", set()).add(name)
            for case in re.findall(r"^\[ *SKIPPED *\] (\w+)$", said, re.MULTILINE):
                reasons.setdefault("something that is not here (single cases)", set()).add(f"{name}:{case}")
    if reasons:
        print("Tests that did not run here, and what they need:")
        for reason, names in sorted(reasons.items()):
            print(f"    {reason}: {' '.join(sorted(names))}")
        if any(reason.startswith("packages") for reason in reasons):
            print("`./run test --all` installs the packages first.")


if __name__ == "__main__":
    if sys.argv[2:3] == ["targets"]:
        print_targets(sys.argv[3:])
    elif sys.argv[2:3] == ["not-run"]:
        print_not_run(sys.argv[3:])
    else:
        sys.exit(__doc__)
