#!/bin/sh
# Installs the Debian packages of build-deb (./run deb) in a fresh Debian, and builds and runs programs there
# in C, C++, Fortran and Python, with pkg-config and with CMake. The fresh Debian has nothing of ditto's
# sources, and no packages but those that the packages depend on. Its mirror is that of this machine's apt.
#     chroot.sh        as root; ./run check --long calls it
set -eu
cd "$(dirname "$0")/../.."
fail() { echo "chroot: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "only root can make a chroot"
ls build-deb/libditto0_*.deb >/dev/null 2>&1 || fail "build-deb has no packages: type ./run deb first"

# One line for each place of packages: its address, its suite, the name of the release.
places=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(CODENAME)' 'Created-By: Packages' | sort -u)
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(echo "$places" | awk -v release="$release" '$2 == release || $3 == release { print $1; exit }')
[ -n "$mirror" ] || fail "apt names no mirror of $release"

root=$(mktemp -d)
log=$(mktemp)
# shellcheck disable=SC2317 # called by the trap
clean() {
    umount "$root/sys" "$root/proc" 2>/dev/null || true
    rm -f "$log"
    # A folder that is still mounted must not be emptied.
    grep -q " $root/" /proc/mounts || rm -rf "$root"
}
trap clean EXIT
trap 'exit 1' INT TERM
debootstrap --variant=minbase "$release" "$root" "$mirror" >"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; fail "debootstrap from $mirror failed"; }
mount -t proc proc "$root/proc"
mount --bind /sys "$root/sys"
mkdir "$root/packages" "$root/app"
cp build-deb/*.deb "$root/packages"
rm -f "$root"/packages/*-dbgsym_*
cp tests/embed/app/* "$root/app"
cp examples/fortran/conjugate_gradients.f90 "$root/app/cg.f90"
in_chroot() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root "$@"; }
install="apt-get install -y --no-install-recommends"
in_chroot sh -c "apt-get update && $install gcc g++ gfortran cmake make pkg-config libc6-dev python3 &&
    $install /packages/*.deb" >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; fail "the packages cannot be installed"; }
in_chroot sh -c '! dpkg -l | grep -qE "libhwloc-dev|libnuma-dev|libjemalloc-dev"' ||
    echo "chroot: the MPIs brought development packages of hwloc with them"

# expect WHAT TEXT COMMAND: runs a command of the shell in /app.
expect() {
    printed=$(in_chroot sh -c "cd /app && $3" 2>"$log") || { cat "$log" >&2; fail "$1 failed: $printed"; }
    [ "$printed" = "$2" ] || fail "$1: printed \"$printed\", and not \"$2\""
    echo "$1: $printed"
}
flags='$(pkg-config --cflags --libs ditto)'
mean="mean square over 2 replicas: 2.5"
solved="100 iterations, norm 52287.697788"
expect "C, pkg-config" "$mean" "gcc app.c $flags -o c && ./c"
expect "C++, pkg-config" "$mean" "g++ -std=c++17 face.cpp $flags -o cpp && ./cpp"
expect "Fortran, pkg-config" "$solved" "d=\$(pkg-config --variable=fortran ditto) &&
    gcc -c \$(pkg-config --cflags ditto) \$d/ditto_fortran.c &&
    gfortran -frecursive \$d/ditto.f90 cg.f90 ditto_fortran.o $flags -o cg && ./cg"
cmake() { # cmake WHAT TEXT SOURCE TARGET COMPONENTS LANGUAGES
    expect "$1, CMake" "$2" "cmake -S . -B b-$3 -DNAME=x -DSOURCE=$3 -DTARGET='$4' -DCOMPONENTS='$5' \
        -DLANGUAGES='$6' >b.log 2>&1 && cmake --build b-$3 >>b.log 2>&1 || { cat b.log; false; } && b-$3/x"
}
cmake C "$mean" app.c ditto::ditto "" "C;CXX"
cmake C++ "$mean" face.cpp ditto::ditto "" "C;CXX"
cmake Fortran "$solved" cg.f90 ditto::fortran fortran "C;Fortran"
cmake "Fortran with workers" "sum of 2 workers: 5050.0" sums.f90 ditto::fortran fortran "C;Fortran"
saved="saved and restored: 2.5"
cmake "C with checkpoints" "$saved" checkpoint.c ditto::hdf5 hdf5 "C;CXX"
cmake "C++ with checkpoints" "$saved" saves.cpp ditto::hdf5 hdf5 "C;CXX"
cmake "Fortran with checkpoints" "$saved" saves.f90 "ditto::fortran;ditto::hdf5" "fortran;hdf5" "C;Fortran"
expect Python "$mean" "python3 -c '
import ditto, numpy
with ditto.Strategy(2) as s:
    squares = s.run(lambda self: self.all_reduce(numpy.array([(self.id + 1.0) ** 2]), \"mean\")[0])
    print(f\"mean square over {s.num_replicas} replicas: {squares[0]}\")'"
expect "ditto-info" "ditto 0.1.0" "ditto-info | head -n 1"
