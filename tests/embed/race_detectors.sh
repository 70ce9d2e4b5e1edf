#!/bin/sh
# The program of docs/guides.md, "Race detectors", has no report of ThreadSanitizer, and if there is valgrind,
# none of helgrind. If it does not meet, it has one.
# usage: race_detectors.sh SOURCES LIBRARIES COMPILER...
set -eu
sources=$1 libraries=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^## /{ inside = /Race detectors/; next } inside' "$sources/docs/guides.md" >"$folder/section"
awk '/^```c/{ inside = 1; next } /^```/{ inside = 0 } inside' "$folder/section" >"$folder/program.c"
awk '/^    [{]$/,/^    [}]$/' "$folder/section" >"$folder/suppressions"
sed 's/DITTO_TRY(ditto_barrier(self, NULL));//; s/DITTO_TRY(meet(self));//' "$folder/program.c" \
    >"$folder/wrong.c"

build() { # build PROGRAM FLAG COMPILER...
    name=$1 flag=$2
    shift 2
    "$@" -g -w -D_GNU_SOURCE "$flag" "-I$sources/include" "$folder/$name.c" -o "$folder/$name" \
        "-L$libraries" -lditto "-Wl,-rpath,$libraries"
}

build program -fsanitize=thread "$@"
"$folder/program"
build wrong -fsanitize=thread "$@"
status=0
"$folder/wrong" >"$folder/log" 2>&1 || status=$?
if [ $status != 66 ] || ! grep -q 'data race' "$folder/log"; then
    cat "$folder/log"
    echo "race_detectors: a missing barrier is not found (status $status)"
    exit 1
fi

if ! command -v valgrind >/dev/null ||
    ! printf '#include <valgrind/helgrind.h>\n' | "$@" -E -x c - >/dev/null 2>&1; then
    echo "race_detectors: without valgrind, helgrind is not tried"
    exit 0
fi
build program -DHELGRIND "$@"
valgrind --tool=helgrind "--suppressions=$folder/suppressions" --error-exitcode=66 -q "$folder/program"
