#!/bin/sh
# examples/ports/compare.sh - builds each port and its original, and compares what they compute for equal
# numbers of parts.
#     compare.sh [--time] BUILD
# BUILD is a build folder of ditto. The residuals must have the same bits. With --time, larger problems are
# tried too, five times in turn, also with OpenMP, and the medians are printed.
set -eu
times=no
[ "${1:-}" != --time ] || { times=yes; shift; }
[ $# = 1 ] || { echo "usage: compare.sh [--time] BUILD" >&2; exit 2; }
build=$(cd "$1" 2>/dev/null && pwd) && [ -e "$build/src/libditto.so" ] ||
    { echo "compare.sh: $1 is not a build folder with src/libditto.so: type ./run build" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 1' INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_LOG_LEVEL=error

skip() { echo "skipped: $*"; exit 77; }
mpi=openmpi
command -v mpicxx.$mpi >/dev/null || mpi=mpich
command -v mpicxx.$mpi >/dev/null || skip "there is neither mpicxx.openmpi nor mpicxx.mpich"
with_mpi() { # with_mpi N PROGRAM WORDS...
    n=$1; shift
    if [ $mpi = openmpi ]; then
        mpirun.openmpi --oversubscribe -np "$n" "$@"
    else
        mpiexec.mpich -n "$n" "$@"
    fi
}

# The paths may have spaces.
with_ditto() { "$@" "-I$root/include" "-L$build/src" -lditto "-Wl,-rpath,$build/src"; }
cd "$out"
mpicxx.$mpi -O2 "$here/conjugate_gradients/mpi.cpp" -o cg-mpi
with_ditto g++ -O2 -std=c++17 "$here/conjugate_gradients/ditto.cpp" -pthread -o cg-ditto
g++ -O2 -fopenmp "$here/conjugate_gradients/openmp.cpp" -o cg-openmp
ports=cg
if command -v gfortran >/dev/null && command -v mpif90.$mpi >/dev/null; then
    ports="cg jacobi"
    mpif90.$mpi -O2 "$here/jacobi/mpi.f90" -o jacobi-mpi
    gcc -O2 -c "-I$root/include" "$root/src/fortran/ditto_fortran.c"
    with_ditto gfortran -O2 -frecursive "$root/src/fortran/ditto.f90" "$here/jacobi/ditto.f90" \
        ditto_fortran.o -o jacobi-ditto
    gfortran -O2 -fopenmp "$here/jacobi/openmp.f90" -o jacobi-openmp
else
    echo "compare.sh: without Fortran, the Jacobi port is left out"
fi

bits_of() { sed 's/,.*//' "$1"; }
failed=0
for port in $ports; do
    # Of odd sizes, so that the parts differ.
    words="13 7 21 30"
    [ $port = cg ] || words="37 30"
    for n in 1 2 3 4 8; do
        # shellcheck disable=SC2086
        with_mpi $n ./$port-mpi $words >mpi.txt
        # shellcheck disable=SC2086
        ./$port-ditto $words $n >ditto.txt
        echo "$port: $(bits_of ditto.txt)"
        [ "$(bits_of mpi.txt)" = "$(bits_of ditto.txt)" ] || {
            echo "compare.sh: $port over MPI: $(bits_of mpi.txt)" >&2
            failed=1
        }
    done
done
[ $failed = 0 ] || exit 1

# -- times --

[ $times = yes ] || exit 0
microseconds() { sed -n 's/.* \([0-9]*\) us for.*/\1/p' "$1"; }
median() { sort -n "$1" | sed -n 3p; }
compare_times() { # compare_times PORT N WORDS...
    port=$1 n=$2; shift 2
    rm -f mpi.us ditto.us openmp.us
    for _ in 1 2 3 4 5; do
        with_mpi "$n" ./"$port"-mpi "$@" >line; microseconds line >>mpi.us
        ./"$port"-ditto "$@" "$n" >line; microseconds line >>ditto.us
        OMP_NUM_THREADS=$n ./"$port"-openmp "$@" >line; microseconds line >>openmp.us
    done
    echo "| $port $* | $n | $(median ditto.us) | $(median mpi.us) | $(median openmp.us) |"
}
echo "| problem | parts | ditto, us | $mpi, us | OpenMP, us |"
echo "| --- | --- | --- | --- | --- |"
for n in 2 4 8; do
    compare_times cg $n 32 32 32 2000
    compare_times cg $n 96 96 96 800
    case $ports in *jacobi*)
        compare_times jacobi $n 256 4000
        compare_times jacobi $n 1500 1000 ;;
    esac
done
