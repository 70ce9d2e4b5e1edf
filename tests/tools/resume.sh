#!/bin/sh
# Interrupts and resumes train_digits, and compares the hash of its weights with that of an uninterrupted
# training.
#   usage: resume.sh PROGRAM REPLICAS OTHER_REPLICAS
#
# A training that is resumed after a pass ends with the same hash. With another number of replicas the weights
# after this pass are the same, and the training continues. Three trainings are killed after different times
# and resumed after the last complete pass. They end with the same hash as uninterrupted ones. A training that
# is saved every three batches is killed at random times (five times with two replicas, three times
# otherwise). A copy of it is resumed each time, mostly in the middle of a pass, and ends with the same hash.
# A training that is resumed in the middle of a pass by another number of replicas has the same weights at the
# resume.
set -eu
program=$1 replicas=$2 other=$3 epochs=6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM

fail() {
    echo "resume: $*" >&2
    exit 1
}
# train N EPOCHS OPTIONS...: stores the output in $folder/out, and prints the final hash.
train() {
    n=$1 e=$2
    shift 2
    "$program" --replicas "$n" --epochs "$e" "$@" >"$folder/out" || fail "train_digits failed"
    sed -n 's/^weights: //p' "$folder/out"
}

whole=$(train "$replicas" $epochs)
half=$(train "$replicas" 3 --checkpoint "$folder/a")
resumed=$(train "$replicas" $epochs --checkpoint "$folder/a" --resume)
grep -q "^resumed after epoch 3, weights: $half" "$folder/out" ||
    fail "the weights after the third pass are not $half"
[ "$resumed" = "$whole" ] || fail "$replicas replicas: $resumed after a resume, $whole without"
echo "$replicas replicas: $whole, resumed after a pass: $resumed"

train "$replicas" 3 --checkpoint "$folder/b" >/dev/null
train "$other" $epochs --checkpoint "$folder/b" --resume >/dev/null
grep -q "^resumed after epoch 3, weights: $half" "$folder/out" ||
    fail "$other replicas: the weights after the third pass are not $half"
echo "$other replicas: continued with the same weights"

for delay in 0.05 0.15 0.3; do
    "$program" --replicas "$replicas" --epochs 100000 --checkpoint "$folder/c" >/dev/null 2>&1 &
    sleep $delay
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    last=$(ls "$folder/c" 2>/dev/null | sed -n 's/^checkpoint-\([0-9]*\)\.h5$/\1/p' | sort -n | tail -n 1)
    passes=$((${last:-0} / 45)) # the step of a checkpoint is the number of batches, 45 in a pass
    end=$((passes + 2))
    killed=$(train "$replicas" $end --checkpoint "$folder/c" --resume)
    straight=$(train "$replicas" $end)
    [ "$killed" = "$straight" ] || fail "$replicas replicas: $killed after a kill, $straight without"
    echo "$replicas replicas: killed after $passes passes, resumed to $end: $killed"
    rm -rf "$folder/c"
done

# The trainings are killed at random times of the duration that an uninterrupted one has. If none was resumed
# in the middle of a pass, more trainings are killed.
begin=$(date +%s%N)
train "$replicas" $epochs --checkpoint "$folder/m" --save-every 3 >/dev/null
duration=$(($(date +%s%N) - begin))
rm -rf "$folder/m"
kills=0 in_pass=0
[ "$replicas" = 2 ] && most=5 || most=3
while [ $kills -lt $most ] || { [ $in_pass = 0 ] && [ $kills -lt 100 ]; }; do
    delay=$(awk "BEGIN { srand($kills * 7919 + $replicas); print (0.05 + 0.9 * rand()) * $duration / 1e9 }")
    "$program" --replicas "$replicas" --epochs $epochs --checkpoint "$folder/d" --save-every 3 --resume \
        >"$folder/killed" 2>&1 &
    sleep "$delay"
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    checkpoints=$(ls "$folder/d" 2>/dev/null | grep -c 'h5$' || true)
    if [ "$checkpoints" != 0 ] && ! grep -q '^test accuracy' "$folder/killed"; then
        # A copy is trained to the end. The next round continues with the original.
        cp -r "$folder/d" "$folder/e"
        end=$(train "$replicas" $epochs --checkpoint "$folder/e" --save-every 3 --resume)
        grep -q "and a part" "$folder/out" && in_pass=$((in_pass + 1))
        [ "$end" = "$whole" ] ||
            fail "$replicas replicas: $end after a resume in the middle of a pass, $whole without"
        rm -rf "$folder/e"
    fi
    grep -q '^test accuracy' "$folder/killed" && rm -rf "$folder/d"
    kills=$((kills + 1))
done
[ $in_pass -gt 0 ] || fail "$replicas replicas: $kills kills, and none in the middle of a pass"
echo "$replicas replicas: $kills kills, $in_pass times resumed in the middle of a pass: $whole each time"

rm -rf "$folder/d"
train "$replicas" 1 --checkpoint "$folder/d" --save-every 20 >/dev/null
# The pass has 45 batches. Of the checkpoints 20, 40 and 45 only the first one stays, which is in its middle.
rm -f "$folder"/d/checkpoint-4[0-9].h5
cp -r "$folder/d" "$folder/e"
middle=$(train "$replicas" 2 --checkpoint "$folder/d" --resume; grep '^resumed' "$folder/out")
case $middle in
*"and a part"*) ;;
*) fail "$replicas replicas: not resumed in the middle of the pass: $middle" ;;
esac
train "$other" 2 --checkpoint "$folder/e" --resume >/dev/null
grep '^resumed' "$folder/out" >"$folder/other"
case $middle in
*"$(cat "$folder/other")"*) ;;
*) fail "$other replicas: $(cat "$folder/other"), not as with $replicas replicas: $middle" ;;
esac
echo "$other replicas: $(cat "$folder/other")"

# A training that is saved more often, and then only after each pass, continues from its last checkpoint.
train "$replicas" 3 --checkpoint "$folder/d" --resume --save-every 20 >/dev/null
train "$replicas" 4 --checkpoint "$folder/d" --resume >/dev/null
train "$replicas" 5 --checkpoint "$folder/d" --resume >/dev/null
grep -q "^resumed after epoch 4, " "$folder/out" ||
    fail "$replicas replicas: after 4 epochs: $(grep '^resumed' "$folder/out")"
# With fewer epochs than the checkpoint has, nothing is trained, and the test rows are complete.
rm -f "$folder"/d/checkpoint-225.h5
train "$replicas" 5 --checkpoint "$folder/d" --resume --save-every 20 >/dev/null
rm -f "$folder"/d/checkpoint-225.h5
train "$replicas" 1 --checkpoint "$folder/d" --resume >/dev/null
grep -q "^resumed after epoch 4 and a part, " "$folder/out" ||
    fail "$replicas replicas: not resumed in the fifth epoch: $(grep '^resumed' "$folder/out")"
echo "$replicas replicas: a training that was in its fifth epoch, with --epochs 1: tested"
