#!/bin/sh
# Tries the first commands of a user in a bare Debian (debootstrap, variant minbase), with a clone of the
# present commit. As root; the part "bare machine" of ./run check.
#     bare.sh first    a user without sudo gets the command for root; ./run demo as root, in a folder with a
#                      space in its name; ./run test --suite unit by the user
#     bare.sh deb      ./run deb, and programs of an installation of its packages in a second bare Debian
#     bare.sh bundle   the folder of ./run bundle, which is made on this machine, and measures for a minute
# The bare system is made once, and kept in .bare/RELEASE. An exit status of 77 means that the test was
# skipped, which is a failure in CI. The reason is printed.
set -eu
cd "$(dirname "$0")/../.."
fail() { echo "bare: $*" >&2; exit 1; }
skip() {
    [ -z "${CI:-}" ] || fail "$*"
    echo "skipped: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "only root can make a chroot"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
case ${1:-} in first | deb | bundle) ;; *) echo "usage: bare.sh first|deb|bundle" >&2; exit 2 ;; esac

mkdir -p .bare
work=$PWD/.bare/work.$$
trap 'rm -rf "$work" "$work.base"' EXIT
trap 'exit 1' INT TERM
log=$PWD/.bare/log

# The bare system comes from this machine's mirror.
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
base=.bare/$release
if [ ! -d "$base" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(CODENAME)' 'Created-By: Packages' |
        awk -v release="$release" '$2 == release || $3 == release { print $1; exit }')
    [ -n "$mirror" ] || skip "apt names no mirror of $release"
    debootstrap --variant=minbase "$release" "$work.base" "$mirror" >"$log" 2>&1 ||
        { tail -n 5 "$log" >&2; skip "debootstrap from $mirror failed"; }
    mv "$work.base" "$base"
fi

# Makes a copy of the bare system, with the settings by which apt of this machine reaches the mirror.
make_root() {
    cp -a "$base" "$work/root"
    apt-config dump | grep -E '^Acquire::(http|https|Check)' \
        >"$work/root/etc/apt/apt.conf.d/90machine" || true
    in_bare "$work/root" apt-get update -o APT::Update::Error-Mode=any >"$log" 2>&1 ||
        { tail -n 5 "$log" >&2; skip "a bare system cannot be entered, or has no network"; }
}

# in_bare FOLDER COMMAND...: runs a command in a bare system. Mounts and processes end with the command, and
# no folder of this machine is visible but /sys, which cannot be written.
in_bare() {
    folder=$1; shift
    # shellcheck disable=SC2016 # the shell inside expands them
    unshare --mount --pid --fork --kill-child sh -c 'root=$1; shift
        mount -t proc proc "$root/proc" && mount --rbind -o ro /sys "$root/sys" &&
        mount -t tmpfs tmpfs "$root/dev/shm" && mount -t devpts devpts "$root/dev/pts" &&
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" \
            "$@"' in_bare "$folder" "$@" </dev/null
}
mkdir "$work"

if [ "$1" = first ]; then
    make_root
    in_bare "$work/root" useradd --create-home ann
    place="/home/ann/a new ditto"
    git clone --quiet --no-hardlinks . "$work/root$place"
    # as_ann COMMAND: a line for the shell.
    as_ann() { in_bare "$work/root" su ann -s /bin/sh -c "cd '$place' && $1"; }

    # Ann may not install packages. She is told which command root must type, and nothing else happens.
    in_bare "$work/root" chown -R ann "$place"
    ! as_ann "./run demo" >"$log" 2>&1 || fail "a user without sudo installed packages"
    [ "$(wc -l <"$log")" -le 10 ] || { cat "$log"; fail "the error has more than ten lines"; }
    grep -q 'apt-get install -y .*libhwloc-dev' "$log" || { cat "$log"; fail "no command for root"; }

    # Root has the right to read Ann's folder, and ./run installs what is missing.
    begin=$(date +%s)
    in_bare "$work/root" sh -c "cd '$place' && ./run demo --epochs 3" >"$log" 2>&1 ||
        { tail -n 8 "$log" >&2; fail "./run demo failed"; }
    grep -q '^test accuracy: 0\.9' "$log" || { cat "$log"; fail "./run demo printed no accuracy"; }
    echo "./run demo, nothing installed: $(($(date +%s) - begin)) s, $(grep '^test accuracy' "$log")"
    in_bare "$work/root" chown -R ann "$place"
    as_ann "./run test --suite unit" >"$log" 2>&1 || { tail -n 60 "$log" >&2; fail "the unit tests failed"; }
    sed -n '/^Ok:/,$p' "$log"
    left=$(ls "$work/root/tmp")
    [ -z "$left" ] || fail "these stay in the temporary folder: $left"
    exit 0
fi

if [ "$1" = bundle ]; then
    cp -a "$base" "$work/root"
    in_bare "$work/root" true 2>"$log" || { tail -n 5 "$log" >&2; skip "a bare system cannot be entered"; }
    sh tools/bundle.sh "$work/bundle" >"$log" 2>&1 || { tail -n 8 "$log" >&2; fail "tools/bundle.sh failed"; }
    tail -n 1 "$log"
    mv "$work/bundle" "$work/root/bundle"
    # as_root COMMAND: a line for the shell.
    as_root() { in_bare "$work/root" sh -c "cd /root && $1" >"$log" 2>&1; }
    as_root "/bundle/ditto-info" || { tail -n 8 "$log" >&2; fail "ditto-info failed"; }

    # It is killed when the first rows are there, and they can be read. With 100 minutes, a row has 300 s,
    # which is enough on a loaded machine.
    as_root "{ /bundle/measure 100 & } && until grep -qs '^barrier,mpich,' *.csv; do
        kill -0 \$! && [ \$((k += 1)) -le 300 ] && sleep 1 || exit 1; done; kill -KILL \$!" ||
        { tail -n 8 "$log" >&2; fail "measure wrote no row of MPICH"; }
    python3 bench/figures.py all "$work"/root/root/*.csv >"$log" || fail "bench/figures.py failed"
    grep -E '^\| barrier \| 2 \| ([0-9.]+ \| ){2}\w' "$log" ||
        { cat "$log"; fail "figures of ditto or its bound are missing"; }

    ! as_root "/bundle/measure 1" || fail "measure has overwritten figures"
    rm "$work"/root/root/*.csv
    # In a minute, it also ends in an orderly way if the machine has been too slow for a row.
    as_root "/bundle/measure 1" || { tail -n 8 "$log" >&2; fail "measure failed"; }
    grep '^[0-9]* rows are in' "$log" || { cat "$log"; fail "measure has not said how many rows there are"; }
    exit 0
fi

# -- the packages --

make_root
git clone --quiet --no-hardlinks . "$work/root/ditto"
in_bare "$work/root" sh -c "cd /ditto && ./run deb" >"$log" 2>&1 ||
    { tail -n 8 "$log" >&2; fail "./run deb failed"; }
grep '\.deb$' "$log"

# The second system has nothing of ditto's sources, and no packages but those that ditto's depend on.
mv "$work/root" "$work/maker"
make_root
mkdir "$work/root/packages" "$work/root/app"
cp "$work"/maker/ditto/build-deb/*.deb "$work/root/packages"
rm -f "$work"/root/packages/*-dbgsym_*
rm -rf "$work/maker"
cp tests/embed/app/* "$work/root/app"
cp examples/fortran/conjugate_gradients.f90 "$work/root/app/cg.f90"
install="apt-get install -y --no-install-recommends"
without_mpi=$(cd "$work/root" && ls packages/*.deb | grep -vE 'openmpi|mpich' | sed 's,^,/,' | tr '\n' ' ')
in_bare "$work/root" sh -c "apt-get update && $install gcc g++ gfortran cmake make pkg-config libc6-dev \
    python3 && $install $without_mpi" >"$log" 2>&1 ||
    { tail -n 8 "$log" >&2; fail "the packages cannot be installed"; }
found=$(in_bare "$work/root" dpkg-query -W -f '${Package}\n' |
    grep -E '^lib(hwloc|numa|jemalloc)-dev$' || true)
[ -z "$found" ] || fail "programs do not need $found, but the packages depend on it"

# expect WHAT TEXT COMMAND: runs a command of the shell in /app.
expect() {
    printed=$(in_bare "$work/root" sh -c "cd /app && $3" 2>"$log") ||
        { cat "$log" >&2; fail "$1 failed: $printed"; }
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
saved="saved and restored: 2.5"
cmake "C with checkpoints" "$saved" checkpoint.c ditto::hdf5 hdf5 "C;CXX"
cmake "C++ with checkpoints" "$saved" saves.cpp ditto::hdf5 hdf5 "C;CXX"
cmake "Fortran with checkpoints" "$saved" saves.f90 "ditto::fortran;ditto::hdf5" "fortran;hdf5" "C;Fortran"
expect Python "$mean" "python3 -c '
import ditto, importlib.metadata, numpy
assert importlib.metadata.version(\"ditto\") == ditto.__version__
with ditto.Strategy(2) as s:
    squares = s.run(lambda self: self.all_reduce(numpy.array([(self.id + 1.0) ** 2]), \"mean\")[0])
    print(f\"mean square over {s.num_replicas} replicas: {squares[0]}\")'"
expect "the examples" "epoch 5" "cp -r /usr/share/doc/libditto-dev/examples . &&
    make -C examples >make.log 2>&1 && cd examples && ./05_training 2 | tail -n 1 | cut -d: -f1"
expect "the folder of the Python package" "__init__.py" \
    "ls \$(pkg-config --variable=python ditto)/ditto | grep -x __init__.py"
expect "ditto-info" "ditto 0.1.0" "ditto-info | head -n 1"
# The MPIs come with development packages of hwloc, so they are installed last.
in_bare "$work/root" sh -c "$install /packages/*.deb" >"$log" 2>&1 ||
    { tail -n 8 "$log" >&2; fail "the packages for MPI cannot be installed"; }
