#!/bin/sh
# Builds programs against an installed ditto with CMake, and with ditto in the tree of a program of CMake or
# meson, as users do.
# The tree is moved after it was installed, and lies beside nothing of ditto's sources. pkg-config finds no
# package, except that of the MPI where a program needs it.
#     packages.sh [BUILD DIRECTORY]
set -eu
cd "$(dirname "$0")/../.."
source=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
build=${1:-build}
fail() { echo "packages: $*" >&2; exit 1; }
DESTDIR=$scratch/staged meson install -C "$build" --no-rebuild --quiet
prefix=$(sed -n 's/^prefix=//p' "$(find "$scratch/staged" -name ditto.pc)")
mv "$scratch/staged$prefix" "$scratch/moved"
! grep -rlF "$source" "$scratch/moved" --include='*.cmake' --include='*.pc' ||
    fail "a path of the sources is installed"
lib=$(dirname "$(find "$scratch/moved" -name libditto.so)")
cp -r tests/embed/app "$scratch/app"
cp examples/fortran/conjugate_gradients.f90 "$scratch/app/cg.f90"
cp tests/embed/app/app.c "$scratch/app/app.cpp" # the headers for C in C++

# expect WHAT TEXT PROGRAM...: runs a program, which must succeed and print the text.
expect() {
    what=$1 text=$2; shift 2
    printed=$(cd "$scratch" && "$@") || fail "$what: exit $? after: $printed"
    [ "$printed" = "$text" ] || fail "$what: printed \"$printed\", and not \"$text\""
    echo "$what: $printed"
}
mean="mean square over 2 replicas: 2.5"
solved="100 iterations, norm 52287.697788"

# cmake_app NAME SOURCE TARGET COMPONENTS TEXT WORDS...: builds a program, and runs it as `expect` does.
cmake_app() {
    name=$1 source_file=$2 target=$3 components=$4 text=$5; shift 5
    log=$scratch/$name.log
    {
        cmake -S "$scratch/app" -B "$scratch/cmake-$name" -DCMAKE_PREFIX_PATH="$scratch/moved" \
            -DNAME="$name" -DSOURCE="$source_file" -DTARGET="$target" -DCOMPONENTS="$components" \
            -DLANGUAGES="${LANGUAGES:-C;CXX}" "$@" && cmake --build "$scratch/cmake-$name"
    } >"$log" 2>&1 || { cat "$log"; fail "cmake $name"; }
    expect "cmake $name" "$text" "$scratch/cmake-$name/$name"
}
# A program that contains ditto.
contains() {
    ! readelf -d "$1" | grep -q 'NEEDED.*libditto' || fail "$1 needs a library of ditto"
}

# Nothing of these programs needs a package of pkg-config.
export PKG_CONFIG_LIBDIR="$scratch/none"
cmake_app c app.c ditto::ditto "" "$mean"
cmake_app cpp app.cpp ditto::ditto "" "$mean"
cmake_app face face.cpp ditto::ditto "" "$mean"
[ ! -f "$lib/libditto-hdf5.so" ] || cmake_app saves_cpp saves.cpp ditto::hdf5 hdf5 "saved and restored: 2.5"
[ ! -f "$lib/libditto-hdf5.so" ] || cmake_app hdf5 checkpoint.c ditto::hdf5 hdf5 \
    "saved and restored: 2.5"
cmake_app static app.c ditto::ditto "" "$mean" -Dditto_USE_STATIC_LIBS=ON
contains "$scratch/cmake-static/static"
if command -v gfortran >/dev/null; then
    LANGUAGES="C;Fortran" cmake_app fortran cg.f90 ditto::fortran fortran "$solved"
    [ ! -f "$lib/libditto-hdf5.so" ] || LANGUAGES="C;Fortran" cmake_app saves saves.f90 \
        "ditto::fortran;ditto::hdf5" "fortran;hdf5" "saved and restored: 2.5"
    pc=$(dirname "$(find "$scratch/moved" -name ditto.pc)")
    flags() { PKG_CONFIG_LIBDIR=$pc pkg-config --define-variable=prefix="$scratch/moved" "$@" ditto; }
    folder=$(flags --variable=fortran)
    # shellcheck disable=SC2046 # lists of words
    (cd "$scratch" && gcc -c $(flags --cflags) "$folder/ditto_fortran.c" &&
        gfortran -frecursive "$folder/ditto.f90" app/cg.f90 ditto_fortran.o $(flags --libs) -o cg) ||
        fail "gfortran with pkg-config"
    expect "gfortran and pkg-config" "$solved" env LD_LIBRARY_PATH="$lib" "$scratch/cg"
fi
# The Python package finds the library beside it.
if ! grep -q 'not for dlopen' "$build/meson-logs/meson-log.txt" &&
    /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    cat >"$scratch/app.py" <<'PYTHON'
import importlib.metadata

import ditto
import numpy

assert importlib.metadata.version("ditto") == ditto.__version__ == ditto.version
with ditto.Strategy(2) as strategy:
    squares = strategy.run(lambda self: self.all_reduce(numpy.array([(self.id + 1.0) ** 2]), "mean")[0])
    print(f"mean square over {strategy.num_replicas} replicas: {squares[0]}")
PYTHON
    expect python "$mean" env PYTHONPATH="$scratch/moved/share/ditto/python" /usr/bin/python3 app.py
    # pip installs the package alone, and the library is found by its path. mypy reads the hints.
    if /usr/bin/python3 -c 'import ensurepip, flit_core, mypy' 2>/dev/null; then
        /usr/bin/python3 -m venv --system-site-packages "$scratch/venv"
        "$scratch/venv/bin/pip" install --quiet --no-build-isolation ./python
        expect "pip" "$mean" env DITTO_LIBRARY_PATH="$lib" "$scratch/venv/bin/python" app.py
        cp tests/python/typed_program.py "$scratch"
        expect "mypy" "Success: no issues found in 1 source file" \
            "$scratch/venv/bin/python" -m mypy --strict typed_program.py
    fi
fi
unset PKG_CONFIG_LIBDIR
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for mpi in openmpi mpich; do
    [ ! -f "$lib/libditto-$mpi.so" ] ||
        cmake_app "$mpi" cluster.c "ditto::$mpi" "$mpi" "1 host"
done
# A project without cmake_minimum_required, which has the oldest policies of CMake.
sed -i '/^cmake_minimum_required/d' "$scratch/app/CMakeLists.txt"
cmake_app oldest app.c ditto::ditto "" "$mean"
# The library for another MPI refuses to work.
for pair in openmpi:mpich mpich:openmpi; do
    mpi=${pair%:*} other=${pair#*:}
    [ -f "$lib/libditto-$mpi.so" ] && [ -f "$lib/libditto-$other.so" ] &&
        command -v "mpicc.$mpi" >/dev/null || continue
    "mpicc.$mpi" "$scratch/app/cluster.c" "-I$scratch/moved/include" "-L$lib" "-Wl,-rpath,$lib" \
        "-lditto-$other" -lditto -o "$scratch/other"
    ! "$scratch/other" 2>"$scratch/log" || fail "$mpi works with ditto-$other"
    grep "link ditto-$mpi instead" "$scratch/log" || { cat "$scratch/log"; fail "$mpi with ditto-$other"; }
done
# The examples, in a copy of what is installed.
cp -r "$scratch/moved/share/doc/ditto/examples" "$scratch/examples"
{
    cmake -S "$scratch/examples" -B "$scratch/examples/b" -DCMAKE_PREFIX_PATH="$scratch/moved" &&
        cmake --build "$scratch/examples/b" -j 2
} >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "the examples with CMake"; }
(cd "$scratch/examples" && b/05_training 2 >"$scratch/log") || fail "05_training, built with CMake"
tail -n 1 "$scratch/log"

# What cannot be had is an error that says so.
wrong() {
    what=$1; shift
    ! cmake -S "$scratch/app" -B "$scratch/wrong" -DCMAKE_PREFIX_PATH="$scratch/moved" -DNAME=x \
        -DSOURCE=app.c -DTARGET=ditto::ditto "$@" >"$scratch/wrong.log" 2>&1 || fail "$what was accepted"
    rm -rf "$scratch/wrong"
}
wrong "a version that does not exist" -DVERSION=0.2
grep -q 'requested version "0.2"' "$scratch/wrong.log" ||
    { cat "$scratch/wrong.log"; fail "another message"; }
wrong "an unknown component" -DCOMPONENTS=nonesuch
grep -q nonesuch "$scratch/wrong.log" || { cat "$scratch/wrong.log"; fail "another message"; }

# In the tree of a program of CMake or meson. That of meson is installed, and starts without the build folder.
mkdir -p "$scratch/app/subprojects"
ln -s "$source" "$scratch/app/subprojects/ditto"
cmake_app tree app.c ditto::ditto "" "$mean" -DTREE=subprojects/ditto
contains "$scratch/cmake-tree/tree"
meson setup "$scratch/meson" "$scratch/app" --prefix "$scratch/prefix" >"$scratch/meson.log" 2>&1 ||
    { cat "$scratch/meson.log"; fail "meson setup"; }
targets="app face"
! command -v gfortran >/dev/null || targets="$targets cg"
for name in hdf5 openmpi; do
    [ ! -f "$lib/libditto-$name.so" ] || targets="$targets $name"
done
# shellcheck disable=SC2086 # a list of words
ninja -C "$scratch/meson" $targets >"$scratch/meson.log" 2>&1 ||
    { grep -v '^\[' "$scratch/meson.log"; fail "meson"; }
# No test and no bench is configured, and nothing of ditto gets into the prefix.
meson introspect --tests "$scratch/meson" | grep -q '^\[\]' || fail "the subproject has tests"
# The folder of this test has ditto in its own name.
! meson introspect --installed "$scratch/meson" | grep -o '/prefix/[^"]*' | grep ditto ||
    fail "the subproject installs files of ditto"
meson install -C "$scratch/meson" --no-rebuild --quiet
rm -rf "$scratch/meson"
for program in $targets; do
    case $program in
    cg) text=$solved ;;
    hdf5) text="saved and restored: 2.5" ;;
    openmpi) text="1 host" ;;
    *) text=$mean ;;
    esac
    expect "meson subproject, $program" "$text" "$scratch/prefix/bin/$program"
done
