#!/bin/sh
# Prints those of its words that are not names of tests. `./run test` refuses them before meson is installed,
# so this reads the names of files, and what stands in quotes in the meson.build files. There a string that
# ends with _ is the beginning of a name. tests/tools/check_packages.py compares it with meson's own list.
#     unknown_tests.sh WORD...
set -eu
cd "$(dirname "$0")/.."
for word in "$@"; do
    echo "$word"
done | awk -v names="$(
    find tests \( -name 'test_*.c' -o -name 'fuzz_*.c' \) | sed 's,.*/,,; s,^test_,,; s,\.c$,,'
    # Neither suites nor programs are names, and "test_" is the beginning of files.
    find tests -name meson.build \
        -exec sed -E "s/(suite|import|find_program)[ :(]+\\[?('[a-z_]*'(, )?)*//g" {} + |
        grep -oE "'[a-z][a-z0-9_]*'" | tr -d "'" | \
        grep -vxE 'test_|golden_|unit|semantics|fault|numa|cluster|long|once|on_hosts|one_thread|ditto|fs|sh'
)" 'BEGIN { count = split(names, name, "\n") }
    {
        stem = $0
        sub(/_(on_hosts|in_steps|on_openmpi|on_mpich)$/, "", stem)
        known = 0
        for (i = 1; i <= count; i++)
            if (stem == name[i] || (name[i] ~ /_$/ && index(stem, name[i]) == 1)) known = 1
        if (!known) print
    }'
