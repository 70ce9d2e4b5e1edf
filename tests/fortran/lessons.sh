#!/bin/sh
# tests/fortran/lessons.sh - runs the Fortran examples with several numbers of replicas, which give one
# result.
#     lessons.sh CONJUGATE_GRADIENTS TRAINING digits.csv
set -eu
fail() { echo "lessons.sh: $*" >&2; exit 1; }
said=$("$1")
[ "$said" = "100 iterations, norm 52287.697788" ] || fail "conjugate gradients: $said"
for n in 1 2 3 8; do
    said=$("$2" $n "$3" | tail -n 1)
    echo "$n replicas: $said"
    # Sums of other numbers of replicas may differ in the last bits.
    case $said in "epoch 5: loss .2472, right 172"?" of 1797") ;; *) fail "training: $said" ;; esac
done
said=$("$2" 2 nowhere.csv) && fail "rows that are not there were read"
case $said in *nowhere.csv*) ;; *) fail "no message: $said" ;; esac
