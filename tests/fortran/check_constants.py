"""Compares the constants of the Fortran modules with the C headers.

Each constant ditto_... has the value of the enumerator or macro of the same name in C. All enumerators of an
enum have constants if one of them has, or if a component of a public type has the type of the enum in C.

usage: check_constants.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGEST = {"UINT32_MAX": 2**32 - 1, "UINT64_MAX": 2**64 - 1}


def number(text):
    return LARGEST[text] if text in LARGEST else int(text.rstrip("u"), 0)


c = "".join(path.read_text() for path in (ROOT / "include/ditto").glob("*.h"))
c = re.sub(r"/\*.*?\*/", "", c, flags=re.S)
enums = {}  # name -> its enumerators and their values
for name, body in re.findall(r"typedef enum (\w+) \{(.*?)\n\}", c, re.S):
    made = re.search(r"(\w+_LIST)\(", body)
    if made:  # from a list of X(NAME, VALUE, ...)
        text = re.search(rf"#define {made[1]}\(X\)((.*\\\n)*.*)", c)[1]
        items = re.findall(r"X\((\w+), (-?\w+)", text)
    else:
        items = re.findall(r"(\w+)(?: = (\w+))?,", body)
    enums[name] = {item: number(value) for item, value in items}
values = {item: value for items in enums.values() for item, value in items.items()}
for item, value in re.findall(rf"#define (DITTO_\w+) (\d+u?|{'|'.join(LARGEST)})\n", c):
    values[item] = number(value)

errors = []
constants = {}  # name as in C -> value and number of bits
needed = set()  # names of enums
for path in sorted((ROOT / "src/fortran").glob("*.f90")):
    # The statements without comments, one on each line.
    source = re.sub(r"&\s*\n\s*", "", re.sub(r" *!.*", "", path.read_text()))
    for kind, items in re.findall(r"integer\((c_int\w*)\), parameter, public :: (.*)", source):
        for item, value in re.findall(r"(\w+) = (-?\d+)", items):
            constants[item.upper()] = int(value), 64 if kind == "c_int64_t" else 32
    public = set(re.findall(r"\w+", " ".join(re.findall(r"public :: (.*)", source))))
    for name in public.intersection(re.findall(r"type, bind\(c\) :: (\w+)", source)):
        # In Fortran a type cannot have the name of an argument, which is `group`.
        c_name = "group" if name == "replica_group" else name
        struct = re.search(rf"typedef struct ditto_{c_name} \{{(.*?)\n\}}", c, re.S)
        if struct:
            needed.update(re.findall(r"^ +(ditto_\w+) \w+;", struct[1], re.M))
        else:
            errors.append(f"{path.name}: C has no ditto_{c_name}")

for name, items in sorted(enums.items()):
    missing = items.keys() - constants.keys()
    if missing and (name in needed or missing != items.keys()):
        errors.append(f"{name}: the modules have no {', '.join(sorted(missing)).lower()}")
for item, (value, bits) in constants.items():
    if item not in values:
        errors.append(f"{item.lower()}: C has no {item}")
    elif (value - values[item]) % 2**bits != 0:
        errors.append(f"{item.lower()} is {value}, and {item} is {values[item]}")
print(f"{len(constants)} constants, {len(enums)} enums of C")
sys.exit("\n".join(errors) or 0)
