#!/bin/sh
# Compares the binary interface of the libraries with the kept one, in src/abi/. A program that was linked
# against the kept libraries must go on working: no function, type or member may go away or change. New
# functions are allowed, and new members at the end of structs with struct_size (src/abi/allowed.suppress).
#     tools/abi.sh           compares; exit status 1 names what a program would miss
#     tools/abi.sh --renew   keeps the present interface, at a release (docs/releasing.md)
set -eu
cd "$(dirname "$0")/.."
folder=build-abi # its libraries have debug information, from which abidw reads the types
log=$(mktemp)
trap 'rm -f "$log" "$log".*' EXIT
trap 'exit 1' INT TERM
command -v abidw >/dev/null || { echo "abi: abidw is missing: install abigail-tools" >&2; exit 1; }
libraries="libditto libditto-hdf5"
[ "$(uname -m)" = x86_64 ] || { echo "abi: skipped, because the kept interface is that of x86-64"; exit 0; }

{
    [ -f $folder/build.ninja ] ||
        meson setup $folder -Dbuildtype=debug -Doptimization=0 -Dtests=false -Dbench=false -Dmpi=disabled \
            -Dfortran=disabled
    # The files have the version in their names. Nothing else is built.
    # shellcheck disable=SC2046 # a list of words
    ninja -C $folder $(ninja -C $folder -t targets all |
        sed -n 's/^\(src\/libditto[^:]*\.so\.[0-9.]*\):.*/\1/p')
} >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }

dump() { # dump LIBRARY FILE
    abidw --headers-dir include --drop-private-types --exported-interfaces-only --no-show-locs \
        --no-corpus-path --no-comp-dir-path --no-parameter-names --no-write-default-sizes \
        $folder/src/"$1".so --out-file "$2"
}

failed=0
for library in $libraries; do
    kept=src/abi/$library.abi
    if [ "${1:-}" = --renew ]; then
        mkdir -p src/abi
        dump "$library" "$kept"
        continue
    fi
    dump "$library" "$log.$library"
    abidiff --no-added-syms --suppressions src/abi/allowed.suppress "$kept" "$log.$library" >"$log" 2>&1 || {
        cat "$log" >&2
        echo "abi: $library.so has changed: see above. If it must, docs/releasing.md says how" >&2
        failed=1
    }
    # abidiff also allows a struct that has grown inside another one, whose later members move then.
    sed '/struct that begins with its size/,/^$/d' src/abi/allowed.suppress >"$log.pointers"
    abidiff --no-added-syms --suppressions "$log.pointers" "$kept" "$log.$library" >"$log" 2>&1 || true
    if grep 'offset changed' "$log" >&2; then
        echo "abi: members of $library.so have moved: add new ones at the end of the outer struct" >&2
        failed=1
    fi
done
exit $failed
