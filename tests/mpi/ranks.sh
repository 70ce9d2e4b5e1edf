#!/bin/sh
# tests/mpi/ranks.sh - runs a test program on three ranks, each of which is a host.
#   usage: tests/mpi/ranks.sh openmpi|mpich PROGRAM
set -eu
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_LOG_LEVEL=error DITTO_PART=off
case $1 in
openmpi) timeout 500 mpirun.openmpi --oversubscribe --bind-to none -np 3 "$2" ;;
mpich) timeout 500 mpiexec.mpich -np 3 "$2" ;;
esac
