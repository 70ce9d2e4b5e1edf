#!/bin/sh
# Checks every protocol's small model exhaustively with spin, and that each of its broken mutants is rejected.
set -eu
cd "$(dirname "$0")"
command -v spin >/dev/null || { echo "models: spin is missing (Debian: spin)"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# verify MODEL [MUTANT]: prints "errors states"
verify() {
    cp "$1.pml" "$scratch/"
    (cd "$scratch" && rm -f pan* && spin ${2:+-D"$2"} -a "$1.pml" >/dev/null && gcc -O2 -DSAFETY -w -o pan pan.c &&
        ./pan -m100000 >out 2>&1 || true
        errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out) states=$(sed -n 's/ *\([0-9]*\) states, stored.*/\1/p' out)
        grep -q 'max search depth too small' out && errors=depth
        echo "${errors:-none} ${states:-0}")
}

failed=0
for entry in "wait NO_HEAVY NO_S1 NO_W1" "leave NO_HEAVY NO_I1 NO_I3" "meeting ONE_PARITY NO_WAIT" \
    "stop NO_RETURNED_LOOK EARLY_READ" "queue NO_FREE_LOOK EARLY_PUBLISH" \
    "crew LATE_GO NO_SLOT_WAIT EARLY_DONE"; do
    # shellcheck disable=SC2086 # a list of words
    set -- $entry
    model=$1; shift
    result=$(verify "$model")
    echo "$model: ${result#* } states, errors ${result% *}"
    [ "${result% *}" = 0 ] || { echo "models: $model is broken" >&2; failed=1; }
    for mutant in "$@"; do
        result=$(verify "$model" "$mutant")
        case ${result% *} in
        0 | none | depth) echo "models: $model with $mutant is not rejected (${result})" >&2; failed=1 ;;
        *) echo "  $mutant: rejected" ;;
        esac
    done
done
[ $failed = 0 ] && echo "models: all hold, all mutants are rejected"
exit $failed
