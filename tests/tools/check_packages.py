"""Compares the lists of packages in tools/packages.sh with everything else that names packages:
debian/control, the messages of meson.build and of skipped tests, the table of tools/tests.py, and the pages.
With a build that was made with all packages, it also compares the names of tests.

usage: check_packages.py [BUILD FOLDER]"""
import json
import os
import re
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, "tools")
import tests as run_test

complaints = []


def complain(*words):
    complaints.append(" ".join(words))


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def compare(what, found, expected):
    if found != expected:
        complain(f"{what}: has not {sorted(expected - found)}, but {sorted(found - expected)}")


names = re.findall(r"^(\w+)_packages=", read("tools/packages.sh"), re.MULTILINE)
lists = {name: set(printed("sh", "-c", f'. tools/packages.sh; echo "${name}_packages"').split())
         for name in names}
known = set.union(*lists.values())


# -- debian/control --

def depends(field):
    text = re.search(rf"^{field}:((?:.|\n )*)", read("debian/control"), re.MULTILINE).group(1)
    return {word.split()[0] for word in text.split(",")}


# Packages are built with build-essential, and without tests.
essential = {"gcc", "g++", "libc6-dev", "binutils", "ninja-build"}
mpis = {name for name in lists["mpi"] if name.endswith("-dev")}
compare("Build-Depends", depends("Build-Depends"),
        lists["build"] - essential - {"libcmocka-dev"} | mpis | {"debhelper-compat"})
compare("Build-Depends-Indep", depends("Build-Depends-Indep"), lists["docs"])

# -- messages and pages --
for name in printed("git", "ls-files").splitlines():
    if name.endswith("meson.build"):
        for words in re.findall(r"apt-get install ([\w. +-]+)", read(name)):
            for package in set(words.split()) - lists["build"]:
                complain(f"{name}: {package} is not in build_packages")
    elif name.startswith("tests/") and name.endswith((".sh", ".py")):
        for words in re.findall(r'"skipped, needs packages ([^$"]+)"', read(name)):
            for package in set(words.split()) - lists["test"]:
                complain(f"{name}: {package} is not in test_packages")
    elif name.endswith(".md") and not name.startswith("CHANGELOG"):
        for package in set(re.findall(r"\blib[a-z0-9]+(?:-[a-z0-9]+)*-dev\b", read(name))) - known:
            if not package.startswith("libditto"):
                complain(f"{name}: {package} is in no list of tools/packages.sh")
for _, packages, tests in run_test.OPTIONAL:
    for package in set(packages.split()) - lists["test"]:
        complain(f"tools/tests.py: {package} is not in test_packages")

# -- names of tests --
if len(sys.argv) > 1:
    there = {test["name"] for test in json.loads(printed("meson", "introspect", sys.argv[1], "--tests"))}
    for _, packages, tests in run_test.OPTIONAL:
        for test in set(tests.split()) - there:
            complain(f"tools/tests.py: there is no test {test}, although all packages are installed")
    for test in printed("sh", "tools/unknown_tests.sh", *there, "nosuchtest").split():
        if test != "nosuchtest":
            complain(f"tools/unknown_tests.sh: {test} is a test")
    if not printed("sh", "tools/unknown_tests.sh", "nosuchtest"):
        complain("tools/unknown_tests.sh: nosuchtest is no test")

for complaint in complaints:
    print("packages:", complaint, file=sys.stderr)
sys.exit(1 if complaints else 0)
