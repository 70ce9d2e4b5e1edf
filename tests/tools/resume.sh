#!/bin/sh
# train_digits, interrupted and resumed: resume.sh PROGRAM REPLICAS OTHER_REPLICAS
# At a border between passes: the same final hash as without interruption; with another number of replicas the same weights at the
# border, and it goes on. Killed in the middle, five times: resumed from the last border, the same final hash. Saved every few batches,
# killed at random places (twenty with two replicas, five with others), and resumed each time in the middle of a pass: the same final hash; and once with another number of
# replicas, which begin with the same weights.
set -eu
program=$1 replicas=$2 other=$3 epochs=6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "resume: $*" >&2
    exit 1
}
# train N EPOCHS WORDS...: its output in $folder/out, and the final hash
train() {
    n=$1 e=$2
    shift 2
    "$program" --replicas "$n" --epochs "$e" "$@" >"$folder/out" || fail "train_digits failed"
    sed -n 's/^weights: //p' "$folder/out"
}

whole=$(train "$replicas" $epochs)
half=$(train "$replicas" 3 --checkpoint "$folder/a")
resumed=$(train "$replicas" $epochs --checkpoint "$folder/a" --resume)
grep -q "^resumed after epoch 3, weights: $half" "$folder/out" || fail "the weights at the border are not $half"
[ "$resumed" = "$whole" ] || fail "$replicas replicas: $resumed after a resume, $whole without"
echo "$replicas replicas: $whole, resumed at a border: $resumed"

train "$replicas" 3 --checkpoint "$folder/b" >/dev/null
train "$other" $epochs --checkpoint "$folder/b" --resume >/dev/null
grep -q "^resumed after epoch 3, weights: $half" "$folder/out" || fail "$other replicas: the weights at the border are not $half"
echo "$other replicas: went on from the same weights"

for delay in 0.05 0.1 0.15 0.2 0.3; do
    "$program" --replicas "$replicas" --epochs 100000 --checkpoint "$folder/c" >/dev/null 2>&1 &
    sleep $delay
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    last=$(ls "$folder/c" 2>/dev/null | sed -n 's/^checkpoint-\([0-9]*\)\.h5$/\1/p' | sort -n | tail -n 1)
    end=$((${last:-0} + 2))
    killed=$(train "$replicas" $end --checkpoint "$folder/c" --resume)
    straight=$(train "$replicas" $end)
    [ "$killed" = "$straight" ] || fail "$replicas replicas: $killed after a kill, $straight without"
    echo "$replicas replicas: killed after ${last:-0} passes, resumed to $end: $killed"
    rm -rf "$folder/c"
done

kills=0 saved=0
[ "$replicas" = 2 ] && most=20 || most=5
while [ $kills -lt $most ]; do
    delay=$(awk "BEGIN { srand($kills * 7919 + $replicas); print 0.01 + 0.12 * rand() }")
    "$program" --replicas "$replicas" --epochs $epochs --checkpoint "$folder/d" --save-every 3 --resume >"$folder/killed" 2>&1 &
    sleep "$delay"
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    if [ "$(ls "$folder/d" 2>/dev/null | grep -c 'h5$')" != 0 ] && ! grep -q '^test accuracy' "$folder/killed"; then
        cp -r "$folder/d" "$folder/e" # from each place to the end, and on from it to the next
        end=$(train "$replicas" $epochs --checkpoint "$folder/e" --save-every 3 --resume)
        grep -q "and a part" "$folder/out" && saved=$((saved + 1))
        [ "$end" = "$whole" ] || fail "$replicas replicas: $end after a resume in the middle of a pass, $whole without"
        rm -rf "$folder/e"
    fi
    grep -q '^test accuracy' "$folder/killed" && rm -rf "$folder/d"
    kills=$((kills + 1))
done
echo "$replicas replicas: $kills kills, $saved times resumed in the middle of a pass: $whole each time"

rm -rf "$folder/d"
train "$replicas" 1 --checkpoint "$folder/d" --save-every 20 >/dev/null
rm -f "$folder"/d/checkpoint-4[0-9].h5 # the last one in the middle of the pass is the newest
middle=$(train "$replicas" 2 --checkpoint "$folder/d" --resume; grep '^resumed' "$folder/out")
train "$other" 2 --checkpoint "$folder/d" --resume >/dev/null
grep '^resumed' "$folder/out" >"$folder/other"
case $middle in *"$(cat "$folder/other")"*) ;; *) fail "$other replicas: $(cat "$folder/other"), not as $replicas: $middle" ;; esac
echo "$other replicas: $(cat "$folder/other")"
