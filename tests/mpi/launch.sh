#!/bin/sh
# tests/mpi/launch.sh - runs a program on several processes, with a limit of time.
#     launch.sh openmpi|mpich SECONDS PROCESSES PROGRAM [WORD...]
# Each run of Open MPI has a session folder of its own. Runs at the same time would share one, which the first
# that ends removes while another one makes its own in it: mpirun then fails in orte_session_dir, by chance.
set -eu
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_LOG_LEVEL=error DITTO_PART=off
mpi=$1 seconds=$2; shift 2
case $mpi in
openmpi)
    OMPI_MCA_orte_tmpdir_base=$(mktemp -d)
    export OMPI_MCA_orte_tmpdir_base
    trap 'rm -rf "$OMPI_MCA_orte_tmpdir_base"' EXIT
    # Open MPI refuses root, and binds each of two processes to one core by default.
    timeout "$seconds" mpirun.openmpi --oversubscribe --bind-to none -np "$@"
    ;;
mpich) timeout "$seconds" mpiexec.mpich -np "$@" ;;
esac
