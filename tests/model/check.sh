#!/bin/sh
# Checks every protocol's small model exhaustively with spin, and that each of its broken mutants is rejected.
set -eu
cd "$(dirname "$0")"
command -v spin >/dev/null || { echo "models: spin is missing (Debian: spin)"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# verify MODEL DEFINES OPTIMIZATION: prints "errors states"; DEFINES are joined by +
verify() {
    defines=$(echo "$2" | sed 's/[A-Z_]\{2,\}/-D&/g; s/+/ /g')
    cp "$1.pml" "$scratch/"
    # shellcheck disable=SC2086 # a list of words
    (cd "$scratch" && rm -f pan* && : >out && spin $defines -a "$1.pml" >/dev/null && gcc "$3" -DSAFETY -w -o pan pan.c &&
        ./pan -m100000 -w22 >out 2>&1 || true
        errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out) states=$(sed -n 's/ *\([0-9]*\) states, stored.*/\1/p' out)
        grep -q 'max search depth too small' out && errors=depth
        [ "$errors" != 0 ] || ! grep -q 'Search not completed' out || errors=unfinished
        echo "${errors:-none} ${states:-0}")
}

failed=0
# MODEL, =VARIANT that holds as well, MUTANT that is rejected
for entry in "wait NO_HEAVY NO_S1 NO_W1 LATE_AWAITS" "leave NO_HEAVY NO_I1 NO_I3" \
    "meeting ONE_PARITY NO_WAIT LATE_READ EARLY_RELEASE EARLY_COUNT" \
    "rounds =UNEQUAL =FLAT ONE_PARITY SKIP_ROUND NO_WAIT LATE_READ FLAT+EARLY_SIGNAL FLAT+STOP_UNHEARD" \
    "exchange ONE_PARTIAL ONE_RESULT EARLY_C NO_B_WAIT A_TOO_EARLY EARLY_WORD NO_LEAVE_WAIT" \
    "async =STOP =NO_NUMBER NO_ROOM EARLY_CONSUME NO_SWAP EARLY_POST OWN_SHARES STOP+NO_I1 STOP+NO_I3" \
    "aid NO_TAG NO_DONE_WAIT EARLY_COPY NO_SWAP" "divergence NO_ARRIVAL_SIGNAL NO_RETURN_SIGNAL" "stop NO_RETURNED_LOOK EARLY_READ" \
    "pause NO_MEETING NO_JOIN EARLY_RENEW SAME_RUN STALE_SEEN" "refuse LATE_BEGUN LATE_REFUSAL NO_DECLINED NO_GO_LOOK" \
    "queue NO_FREE_LOOK EARLY_PUBLISH" "crew LATE_GO NO_SLOT_WAIT EARLY_DONE"; do
    # shellcheck disable=SC2086 # a list of words
    set -- $entry
    model=$1; shift
    for defines in = "$@"; do
        case $defines in
        =*)
            defines=${defines#=}
            result=$(verify "$model" "$defines" -O1)
            echo "$model${defines:+ $defines}: ${result#* } states, errors ${result% *}"
            [ "${result% *}" = 0 ] || { echo "models: $model${defines:+ $defines} is broken" >&2; failed=1; }
            continue ;;
        esac
        result=$(verify "$model" "$defines" -O0) # most of the time is the compiler's: few states until the first error
        case ${result% *} in
        0 | none | depth | unfinished) echo "models: $model with $defines is not rejected (${result})" >&2; failed=1 ;;
        *) echo "  $defines: rejected" ;;
        esac
    done
done
sh labels.sh || failed=1
[ $failed = 0 ] && echo "models: all hold, all mutants are rejected"
exit $failed
