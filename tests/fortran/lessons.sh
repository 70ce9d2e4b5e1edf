#!/bin/sh
# tests/fortran/lessons.sh - runs the Fortran examples with several numbers of replicas or workers, which give
# one result.
#     lessons.sh CONJUGATE_GRADIENTS TRAINING WORKERS digits.csv
set -eu
fail() { echo "lessons.sh: $*" >&2; exit 1; }
said=$("$1")
[ "$said" = "100 iterations, norm 52287.697788" ] || fail "conjugate gradients: $said"
for n in 1 2 3 8; do
    said=$("$3" $n)
    echo "$n workers: $said"
    # Another library's sin may lead to other intervals.
    case $said in "integral .504066498 from 6"*" values") ;; *) fail "workers: $said" ;; esac
    said=$("$2" $n "$4" | tail -n 1)
    echo "$n replicas: $said"
    # Sums of other numbers of replicas may differ in the last bits.
    case $said in "epoch 5: loss .2472, right 172"?" of 1797") ;; *) fail "training: $said" ;; esac
done
said=$("$2" 2 nowhere.csv) && fail "rows that are not there were read"
case $said in *nowhere.csv*) ;; *) fail "no message: $said" ;; esac
