#!/bin/sh
# tests/fortran/mpi.sh - runs a Fortran program over MPI on 1, 2 and 3 processes.
#     mpi.sh openmpi|mpich PROGRAM
set -eu
for hosts in 1 2 3; do
    said=$(sh "$(dirname "$0")/../mpi/launch.sh" "$1" 120 $hosts "$2" 2>&1)
    [ "$said" = "sum 28" ] || { echo "mpi.sh: $hosts processes: $said" >&2; exit 1; }
done
