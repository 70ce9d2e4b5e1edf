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
# over_tcp HOSTS: the workers of so many processes. The ports are below those that the system chooses.
port=$((20000 + $$ * 61 % 11000))
over_tcp() {
    list='' h=0
    while [ $h -lt "$1" ]; do
        list="$list${list:+,}localhost:$((port + h))" h=$((h + 1))
    done
    port=$((port + h))
    while [ $((h -= 1)) -gt 0 ]; do
        DITTO_HOSTS=$list DITTO_HOST=$h timeout 100 "$workers" 2 &
    done
    DITTO_HOSTS=$list DITTO_HOST=0 timeout 100 "$workers" 2
    wait
}
workers=$3
for hosts in 2 3; do
    said=$(over_tcp $hosts 2>&1)
    echo "$hosts processes: $said"
    case $said in "integral .504066498 from 6"*" values") ;; *) fail "workers: $said" ;; esac
done
said=$("$2" 2 nowhere.csv) && fail "rows that are not there were read"
case $said in *nowhere.csv*) ;; *) fail "no message: $said" ;; esac
