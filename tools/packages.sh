# tools/packages.sh - the packages of Debian and Ubuntu that ditto is built and checked with, and their
# installation. `./run` reads this file with `.`. tests/tools/check_packages.py compares the lists with
# debian/control, with the messages of meson.build, and with the pages.

# A library, its tools and the tests that need nothing else. `./run demo` and `./run build` install these.
build_packages="gcc g++ libc6-dev binutils meson ninja-build pkg-config libhwloc-dev libnuma-dev \
libjemalloc-dev libcmocka-dev libxxhash-dev zlib1g-dev"
# To compile a jemalloc that dlopen accepts from Debian's source.
jemalloc_packages="dpkg-dev make"

# What some tests need beyond that. `./run test --all` installs these.
numa_packages="qemu-system-x86 busybox-static cpio"
openmp_packages="clang libomp-dev"
mpi_packages="openmpi-bin libopenmpi-dev mpich libmpich-dev"
language_packages="gfortran python3-numpy mypy python3-typeshed"
hdf5_packages="libhdf5-dev hdf5-tools python3-h5py"
test_packages="$jemalloc_packages $numa_packages $openmp_packages $mpi_packages $language_packages \
$hdf5_packages gdb systemtap-sdt-dev libpfm4-dev iproute2"

# What the other verbs need.
peer_packages="$mpi_packages libgloo-dev libtbb-dev $openmp_packages gnuplot-nox"
bundle_packages="mpich libmpich-dev $openmp_packages"
docs_packages="doxygen python3-sphinx furo python3-myst-parser"
deb_packages="$jemalloc_packages $mpi_packages $docs_packages build-essential debhelper lintian git"
lint_packages="git clang clang-format clang-tidy cppcheck doxygen libopenmpi-dev abigail-tools"
browser_packages="chromium chromium-driver python3-selenium fonts-dejavu-core"
check_packages="$test_packages $lint_packages $docs_packages $browser_packages git cmake spin debootstrap \
ccache flit python3-venv"

is_debian() {
    [ -r /etc/debian_version ] && command -v dpkg-query >/dev/null && command -v apt-get >/dev/null
}

# missing_of PACKAGES...: prints those of the packages that are not installed.
missing_of() {
    is_debian || return 0
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
        sed -n 's/ installed$//p')
    for package in "$@"; do
        echo "$installed" | grep -qxF "$package" || printf '%s ' "$package"
    done
}

# Runs a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# An installation that was interrupted leaves packages that dpkg has unpacked and not configured. A source of
# packages of the machine may be out of reach, so only the last command must succeed.
install_packages() {
    as_root dpkg --configure -a || true
    as_root apt-get update || true
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# need PACKAGES...: installs the packages that are missing. If none is missing, the network is not used.
need() {
    step_number=$((step_number + 1))
    if ! is_debian; then
        for tool in cc meson ninja pkg-config; do
            command -v "$tool" >/dev/null ||
                fail "$tool is missing; ditto needs these packages (names of Debian): $*"
        done
        return 0
    fi
    missing=$(missing_of "$@")
    [ -n "$missing" ] || return 0
    # sudo asks for the password here, before the progress of the installation is shown.
    [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo true; } ||
        fail "packages are missing, and only root can install them. As root, type:
    apt-get update && apt-get install -y --no-install-recommends $missing"
    # shellcheck disable=SC2086 # a list of words
    step "installing packages" packages packages_done install_packages $missing || {
        grep -E '^(Err:|W: Failed|E:)' "$logs/packages.log" | cut -c1-200 | head -n 4 >&2
        fail "apt-get could not install these packages: $missing"
    }
}

# Prints how far an apt-get whose output is in file $1 is.
packages_done() {
    awk '/ newly installed, / { all = $3 } /^Get:/ { fetched++ } /^Unpacking / { unpacked++ }
        /^Setting up / { set_up++ }
        END {
            if (unpacked) printf "unpacked %d and set up %d of %d", unpacked, set_up, all
            else if (all) printf "fetched %d of %d", (fetched > all ? all : fetched), all
            else printf "reading lists"
        }' "$1"
}
