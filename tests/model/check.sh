#!/bin/sh
# Checks the model of every protocol exhaustively with spin, and that each of its broken mutants is rejected.
# ./run lint checks that the labels of the models are in the code (labels.sh).
set -eu
cd "$(dirname "$0")"
command -v spin >/dev/null || { echo "models: spin is missing (Debian: spin)"; exit 1; }

# verify MODEL DEFINES OPTIMIZATION: prints the number of errors and the number of states. If the search
# was not complete, it prints a word instead of the number of errors. DEFINES are joined by +.
verify() {
    scratch=$(mktemp -d)
    defines=$(echo "$2" | sed 's/[A-Z_]\{2,\}/-D&/g; s/+/ /g')
    cp "$1.pml" "$scratch/"
    # shellcheck disable=SC2086 # a list of words
    (cd "$scratch" && : >out && spin $defines -a "$1.pml" >/dev/null && gcc "$3" -DSAFETY -w -o pan pan.c &&
        ./pan -m100000 -w22 >out 2>&1 || true
        errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
        states=$(sed -n 's/ *\([0-9]*\) states, stored.*/\1/p' out)
        grep -q 'max search depth too small' out && errors=depth
        [ "$errors" != 0 ] || ! grep -q 'Search not completed' out || errors=unfinished
        echo "${errors:-none} ${states:-0}")
    rm -rf "$scratch"
}

# check_one MODEL WORD: WORD is = or =VARIANT, which must hold, or MUTANT, which must be rejected
check_one() {
    case $2 in
    =*)
        result=$(verify "$1" "${2#=}" -O1)
        echo "$1 ${2#=}: ${result#* } states, errors ${result% *}"
        [ "${result% *}" = 0 ] || { echo "models: $1 ${2#=} is broken" >&2; return 1; } ;;
    *)
        # -O0, because a mutant has few states until the first error, and compiling takes most of the time.
        result=$(verify "$1" "$2" -O0)
        case ${result% *} in
        0 | none | depth | unfinished) echo "models: $1 with $2 is not rejected (${result})" >&2; return 1 ;;
        *) echo "  $1 $2: rejected" ;;
        esac ;;
    esac
}
[ $# = 0 ] || { check_one "$1" "$2"; exit; } # called by xargs below

failed=0
# Each line has a MODEL, which must hold, =VARIANTs, which must hold too, and MUTANTs, which must be rejected.
while read model words; do
    for word in = $words; do echo "$model $word"; done
done <<'MODELS' | xargs -L 1 -P "$(nproc)" sh check.sh || failed=1
wait =OFTEN NO_HEAVY NO_S1 NO_W1 LATE_AWAITS OFTEN+NO_LIGHT OFTEN+NO_OWN OFTEN+NO_S1 OFTEN+NO_W1
access NO_HEAVY NO_I1 NO_I3
lock HELD_AFTER_SLEEP ONE_STORE WAKE_FIRST ANY_TAKES
meeting ONE_PARITY NO_WAIT LATE_READ EARLY_RELEASE EARLY_COUNT
rounds =UNEQUAL =FLAT ONE_PARITY SKIP_ROUND NO_WAIT LATE_READ FLAT+EARLY_SIGNAL FLAT+STOP_UNHEARD
exchange ONE_PARTIAL ONE_RESULT EARLY_C NO_B_WAIT A_TOO_EARLY EARLY_WORD NO_LEAVE_WAIT
pending =STOP =NO_NUMBER NO_RING_SPACE EARLY_CONSUME NO_SWAP EARLY_ANNOUNCEMENT OWN_SHARES STOP+NO_I1 \
    STOP+NO_I3
helper_work NO_TAG NO_DONE_WAIT EARLY_COPY NO_SWAP
divergence NO_ARRIVAL_SIGNAL NO_RETURN_SIGNAL
circle LOOK_FIRST SHALLOW MISSING_FIRST
stop NO_RETURNED_LOOK EARLY_READ
renew PLAIN_RENEW WAIT_STOPPED EARLY_READ
interrupt NO_HEAVY NOT_COUNTED NO_J1 LOOK_FIRST
gate LOOK_FIRST REFUSE_SHUT SHUT_ANYWAY LEAVE_SHUT NOT_KEPT CLOSE_FIRST WAITING_PRODUCER SHUT_CLOSED \
    FREE_ANYWAY LEAVE_FIRST
pause NO_MEETING NO_JOIN EARLY_RENEW SAME_RUN STALE_SEEN
refuse LATE_BEGUN LATE_REFUSAL NO_DECLINED NO_GO_LOOK NO_END_WAKE
queue =ONE_SLOT NO_FREE_LOOK EARLY_PUBLISH
order =TWO_SLOTS =THREE EARLY_NEXT ERROR_FIRST OWN_ALONE SAFE_TOO_FAR THREE+ANY_ERROR
queue_close =ALONE NO_T1 NO_WITHDRAW NO_CLOSE_SIGNAL NO_FAIL_SIGNAL NO_SPACE_SIGNAL NO_RETURN_SIGNAL \
    NO_FILL_SIGNAL TICKET_FIRST STALE_HEAD EARLY_FILL NO_MINIMUM SECOND_LOOK ALONE+NO_T1 ALONE+NO_HEAVY \
    ALONE+EARLY_CLOSED
crew LATE_GO NO_TASK_WAIT EARLY_DONE
hosts NO_DRAIN NO_LOOK OWN_ERROR NO_LAST NO_BREAK
failure_notices NO_EPOCH NO_FUTURE NO_AGE NO_LOCK NO_LATE_LOOK OWN_ORIGIN NO_BEGIN_LOOK
steps =CUBE =HOSTS=3+EXCHANGES=2+FAILURES=2 =HOSTS=3+EPOCHS=2+FAILURES=2 NO_FINISHED NO_ORDER NO_LAST \
    NO_EPOCH+EPOCHS=2
shares =FAIL NO_SWAP EARLY_POST NO_DONE_WAIT ANY_NUMBER NO_LATE_LOOK PLAIN_STORE FAIL+NO_CALLER_WAIT \
    FAIL+NO_I1
parameters =WORKERS=3+PUSHES=1 =WORKERS=3+PUSHES=1+ACCUMULATE=1 =PUSHES=2+FREE =COUNTS NO_LOCK NO_PULL_LOCK \
    NO_NUMBER_LOCK SPLIT_LOCK ONE_COUNT NO_CLEAR LATE_COUNT FREE+EARLY_COUNT FREE+LATE_VERSION \
    COUNTS+EARLY_UPDATE COUNTS+LATE_RESTORED COUNTS+PLAIN_RESTORED
functions LATE_IDLE NO_SWAP NO_FREE_LOOK EARLY_FINISH PUSHES_FIRST PLAIN_RETIRE PLAIN_BEGIN
steps_of_hosts NO_SECOND_QUESTION NO_SECOND_ANSWER ONLY_LAST LOOK_FIRST HEAR_FIRST
MODELS
[ $failed = 0 ] && echo "models: all hold, all mutants are rejected"
exit $failed
