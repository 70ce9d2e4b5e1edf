#!/bin/sh
# tests/fortran/mpi.sh - runs a Fortran program over MPI on 1, 2 and 3 processes.
#     mpi.sh openmpi|mpich PROGRAM
set -eu
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_LOG_LEVEL=error DITTO_PART=off
for hosts in 1 2 3; do
    case $1 in
    openmpi) said=$(timeout 120 mpirun.openmpi --oversubscribe --bind-to none -np $hosts "$2" 2>&1) ;;
    mpich) said=$(timeout 120 mpiexec.mpich -np $hosts "$2" 2>&1) ;;
    esac
    [ "$said" = "sum 28" ] || { echo "mpi.sh: $hosts processes: $said" >&2; exit 1; }
done
