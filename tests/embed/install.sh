#!/bin/sh
# Installs ditto into a scratch directory and builds programs as a user would: cc app.c $(pkg-config ...), and
# make in a copy of the examples. The programs are linked with the shared and the static library, by the
# commands of docs/guides.md. pkg-config finds only the packages of ditto.
#     install.sh [BUILD DIRECTORY]
set -eu
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
build=${1:-build}
[ -f "$build/build.ninja" ] || meson setup "$build" >/dev/null
ninja -C "$build" >/dev/null
DESTDIR=$scratch/whole meson install -C "$build" --no-rebuild --quiet
fail() { echo "install: $*" >&2; exit 1; }

lib=$(find "$scratch/whole" -name libditto.so)
lib=${lib%/*}
prefix=$(sed -n 's/^prefix=//p' "$lib/pkgconfig/ditto.pc")
sed -i "s,^prefix=,prefix=$scratch/whole," "$lib"/pkgconfig/*.pc
# This is a machine that has no development packages of other libraries.
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
export PKG_CONFIG_LIBDIR="$lib/pkgconfig"
# Programs start because the flags have the folder of the library, except in /usr.
[ "$prefix" != /usr ] || export LD_LIBRARY_PATH="$lib"

flags() {
    pkg-config "$@" || fail "pkg-config $*: it looks for packages that programs do not need"
}
static_flags() { flags --static --cflags --libs "$1" | sed 's/-l\(ditto[^ ]*\)/-l:lib\1.a/g'; }

cp tests/embed/app/*.c tests/embed/app/*.cpp "$scratch/"
cp tests/embed/app/app.c "$scratch/app.cpp" # the headers for C in C++

warnings="-Wall -Wextra -Wpedantic -Werror"
# shellcheck disable=SC2046,SC2086 # lists of words
{
    gcc -std=c11 $warnings -Wno-missing-field-initializers "$scratch/app.c" \
        $(flags --cflags --libs ditto) -o "$scratch/c"
    g++ -std=c++17 $warnings "$scratch/app.cpp" $(flags --cflags --libs ditto) -o "$scratch/cpp"
    g++ -std=c++17 $warnings "$scratch/face.cpp" $(flags --cflags --libs ditto) -o "$scratch/face"
    gcc -std=c11 "$scratch/app.c" $(static_flags ditto) -o "$scratch/static"
    gcc -D_GNU_SOURCE -DHOST_JEMALLOC=0 tests/embed/host.c \
        $(flags --cflags --libs ditto) -o "$scratch/host"
    gcc -D_GNU_SOURCE -DHOST_JEMALLOC=0 -Wl,--no-as-needed tests/embed/host.c \
        $(static_flags ditto) -o "$scratch/host_static"
}
programs="c cpp face static host host_static"
if [ -f "$lib/libditto-hdf5.so" ]; then
    # shellcheck disable=SC2046 # lists of words
    {
        gcc -std=c11 "$scratch/checkpoint.c" $(flags --cflags --libs ditto-hdf5) -o "$scratch/hdf5"
        gcc -std=c11 "$scratch/checkpoint.c" $(static_flags ditto-hdf5) \
            -o "$scratch/hdf5_static"
    }
    programs="$programs hdf5 hdf5_static"
fi
for program in $programs; do
    printed=$("$scratch/$program" "$scratch/$program.h5") || fail "$program: exit $?"
    echo "$program: $printed"
done

# The examples, as the tutorial says. What comes with them is enough.
cp -r "$scratch/whole$prefix/share/doc/ditto/examples" "$scratch/examples"
make -j 2 -C "$scratch/examples" >"$scratch/make.log" 2>&1 || { cat "$scratch/make.log"; fail "make"; }
for program in 01_hello "05_training 2" "train_digits --epochs 1" "fortran_training 2" "11_hosts-openmpi 2" \
    "11_hosts-mpich 2" "language_model/train Makefile --steps 2 --tensor 2"; do
    [ -f "$scratch/examples/${program%% *}" ] || continue
    # shellcheck disable=SC2086 # a list of words
    (cd "$scratch/examples" && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        ./$program >"$scratch/log" 2>&1) || { cat "$scratch/log"; fail "$program"; }
    echo "examples, $program: $(tail -n 1 "$scratch/log")"
done

# A program that cannot work gets one message, and no others from the depths of a header.
refused() {
    text=$1; shift
    # shellcheck disable=SC2046 # a list of words
    ! "$@" -fsyntax-only $(flags --cflags ditto) 2>"$scratch/log" || fail "$* was accepted"
    [ "$(grep -c 'error:' "$scratch/log")" = 2 ] && grep -q "error: #error.*$text" "$scratch/log" ||
        { cat "$scratch/log"; fail "$*: another message"; }
}
refused "needs C++17" g++ -std=c++14 "$scratch/face.cpp"
refused "needs C++11" g++ -std=c++98 "$scratch/app.cpp"
refused "needs Linux and a 64-bit" gcc -U__LP64__ "$scratch/app.c"

# The archive contains jemalloc's code under other names. If jemalloc were linked too, it would replace the
# program's malloc.
! flags --static --libs ditto | grep -q jemalloc || fail "--static links jemalloc"
for program in static host_static hdf5_static; do
    [ -f "$scratch/$program" ] || continue
    readelf -d "$scratch/$program" | grep NEEDED >"$scratch/needed"
    ! grep -qE 'ditto|jemalloc' "$scratch/needed" ||
        fail "$program needs $(grep -E 'ditto|jemalloc' "$scratch/needed")"
done
# A program that links the shared library needs none of the libraries that ditto uses.
readelf -d "$scratch/c" | grep NEEDED | grep -vE 'libditto|libc\.so|libgcc_s' >"$scratch/needed" || true
[ ! -s "$scratch/needed" ] || fail "a program with the shared library needs $(cat "$scratch/needed")"

[ -x "$(find "$scratch/whole" -name ditto-info)" ] || fail "ditto-info is not installed"
readelf -d "$lib/libditto.so" | grep -q 'SONAME.*libditto.so.0' || fail "no soname"
# The exported symbols are ditto_*, and the internal functions that libditto-hdf5 needs.
exports() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }'; }
private=$(exports "$lib/libditto.so" | grep -v '^ditto_.*@@DITTO_0.1$')
listed=$(sed -n '/^Of its internal functions/,/^$/p' docs/architecture.md | grep -o 'dti_[a-z_]*' | sort)
[ "$private" = "$(echo "$listed" | sed 's/$/@@DITTO_PRIVATE/')" ] ||
    fail "libditto exports other internal functions than docs/architecture.md lists: $private"
if [ -f "$lib/libditto-hdf5.so" ]; then
    needed=$(nm -D --undefined-only "$lib/libditto-hdf5.so" | sed -n 's/.* \(dti_.*\)@.*/\1/p')
    [ "$needed" = "$listed" ] ||
        fail "libditto-hdf5 needs other internal functions than docs/architecture.md lists: $needed"
    exported=$(exports "$lib/libditto-hdf5.so" |
        grep -vE '^ditto_(strategy_)?checkpoint.*@@DITTO_0.1$' || true)
    [ -z "$exported" ] || fail "libditto-hdf5 exports beside the checkpoint functions: $exported"
    ! readelf -d "$lib/libditto-hdf5.so" | grep NEEDED | grep -qE 'hdf5|xxhash' ||
        fail "libditto-hdf5 needs HDF5 or xxHash"
fi
