#!/bin/sh
# The golden test of several hosts over MPI: the training of examples/train_digits has the same bits with
# eight replicas on 1, 2 and 8 processes as in one process that is alone, and the conjugate gradients of
# lesson 8 on 3 processes. A training that is stopped on 4 processes continues on 3.
#   usage: tests/mpi/golden.sh openmpi|mpich TRAIN SOLVE TRAIN_WITH_MPI SOLVE_WITH_MPI DIGITS
set -u
mpi=$1 train=$2 solve=$3 mpi_train=$4 mpi_solve=$5 digits=$6 failed=0
complain() { echo "golden: $*" >&2; failed=1; }
start() { sh "$(dirname "$0")/launch.sh" "$mpi" 300 "$@" 2>&1; }

weights() { sed -n 's/^weights: //p'; }
residual() { awk '$1 == 8 { print $2, $5 }'; }

arguments="--replicas 8 --epochs 2 --data $digits"
# shellcheck disable=SC2086 # a list of words
one=$("$train" $arguments | weights)
[ -n "$one" ] || complain "one process without MPI printed no weights"
echo "weights on one host: $one"
for hosts in 1 2 8; do
    # shellcheck disable=SC2086
    found=$(start $hosts "$mpi_train" $arguments)
    [ "$(echo "$found" | weights)" = "$one" ] || complain "train_digits on $hosts processes: $found"
done

one=$("$solve" 8 | residual)
[ -n "$one" ] || complain "lesson 8 printed no residual"
found=$(start 3 "$mpi_solve" 8)
[ "$(echo "$found" | residual)" = "$one" ] || complain "lesson 8 on 3 processes: $found"

# A run of two epochs on four processes continues on three, and then in one without MPI.
folder=$(mktemp -d)
# shellcheck disable=SC2086
whole=$("$train" --replicas 8 --epochs 4 --data "$digits" | weights)
start 4 "$mpi_train" --replicas 8 --epochs 2 --data "$digits" --checkpoint "$folder/c" >"$folder/out" ||
    complain "with checkpoints on four processes: $(cat "$folder/out")"
start 3 "$mpi_train" --replicas 8 --epochs 3 --data "$digits" --checkpoint "$folder/c" --resume \
    >"$folder/out" ||
    complain "resumed on three processes: $(cat "$folder/out")"
found=$("$train" --replicas 8 --epochs 4 --data "$digits" --checkpoint "$folder/c" --resume 2>&1)
[ "$(echo "$found" | weights)" = "$whole" ] || complain "4, 3 and 1 processes: $found, but at once: $whole"
rm -rf "$folder"
exit $failed
