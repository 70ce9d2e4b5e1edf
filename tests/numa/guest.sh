#!/bin/sh
# Boots a small emulated machine (qemu) with its own NUMA nodes, and runs the numa tests on it. Some machines
# also run them under conditions, for example in a cpuset that takes only a part of a node, with mbind refused
# by seccomp, or with an inherited memory policy. The machines `two`, `four` and `eight` also run the tests of
# collectives in the groups of the machine. The machine `four` also trains with one replica per node. Its
# weights must have the same bits as those of four replicas on this machine.
#   usage: guest.sh BUILD_DIRECTORY CACHE_DIRECTORY one|two|four|eight|unequal|memoryless|cpuless
# An exit status of 77 means that the test was skipped. The reason is printed.
set -eu
build=$(realpath "$1") cache=$2 machine=$3
root=$(cd "$(dirname "$0")/../.." && pwd)

skip() { echo "skipped: $*"; exit 77; }
for tool in qemu-system-x86_64 cpio gzip busybox; do
    command -v $tool >/dev/null ||
        { echo "skipped, needs packages qemu-system-x86 busybox-static cpio"; exit 77; }
done

# Fetches the kernel of Debian's cloud image. The package is unpacked and not installed.
fetch_kernel() {
    mkdir -p "$cache"
    command -v apt-get >/dev/null || skip "no apt-get to fetch a kernel with"
    scratch=$(mktemp -d)
    if ! apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1; then
        apt-get update >/dev/null 2>&1 || skip "apt-get update failed"
    fi
    name=$(apt-cache depends linux-image-cloud-amd64 |
        sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
    (cd "$scratch" && apt-get download "$name" >/dev/null 2>&1) ||
        skip "the package $name could not be fetched"
    dpkg-deb -x "$scratch"/*.deb "$scratch/files"
    cp "$scratch"/files/boot/vmlinuz-* "$cache/vmlinuz.$$"
    mv "$cache/vmlinuz.$$" "$cache/vmlinuz" # atomically, because other guests may be starting
    rm -rf "$scratch"
}
[ -s "$cache/vmlinuz" ] || fetch_kernel

# -- The machines, with the arguments of qemu and the cases that run inside --

# memory N: N backends m0, m1, ... of 384 MiB each. qemu requires their sum as -m.
memory() {
    echo "-m $((384 * $1))M"
    i=0
    while [ $i -lt "$1" ]; do
        echo "-object memory-backend-ram,size=384M,id=m$i"
        i=$((i + 1))
    done
}

cases="plain"
case $machine in
one)
    qemu="-smp 2,sockets=1,cores=2 $(memory 1) -numa node,nodeid=0,cpus=0-1,memdev=m0"
    cases="plain no-mbind"
    ;;
two)
    qemu="-smp 4,sockets=2,cores=2 $(memory 2) -numa node,nodeid=0,cpus=0-1,memdev=m0
        -numa node,nodeid=1,cpus=2-3,memdev=m1 -numa dist,src=0,dst=1,val=21"
    cases="plain collectives no-mbind interleave bind-1 cpuset:0-2:0-1 cpuset:0-3:0 cpuset:1,3:1 hidden:0-3:1"
    ;;
four)
    qemu="-smp 4,sockets=2,cores=2 $(memory 4) -numa node,nodeid=0,cpus=0,memdev=m0
        -numa node,nodeid=1,cpus=1,memdev=m1 -numa node,nodeid=2,cpus=2,memdev=m2
        -numa node,nodeid=3,cpus=3,memdev=m3"
    cases="plain collectives"
    ;;
eight)
    qemu="-smp 8,sockets=4,cores=2 $(memory 8)"
    cases="plain collectives"
    for i in 0 1 2 3 4 5 6 7; do qemu="$qemu -numa node,nodeid=$i,cpus=$i,memdev=m$i"; done
    ;;
unequal)
    qemu="-smp 4,sockets=1,cores=4 $(memory 2) -numa node,nodeid=0,cpus=0-2,memdev=m0
        -numa node,nodeid=1,cpus=3,memdev=m1"
    ;;
memoryless)
    qemu="-smp 4,sockets=2,cores=2 $(memory 2) -numa node,nodeid=0,cpus=0-1,memdev=m0
        -numa node,nodeid=1,cpus=2 -numa node,nodeid=2,cpus=3,memdev=m1
        -numa dist,src=0,dst=1,val=31 -numa dist,src=0,dst=2,val=31 -numa dist,src=1,dst=2,val=21"
    ;;
cpuless)
    qemu="-smp 4,sockets=2,cores=2 $(memory 2) -numa node,nodeid=0,cpus=0-3,memdev=m0
        -numa node,nodeid=1,memdev=m1"
    ;;
*) echo "guest.sh: no machine is called $machine" >&2; exit 2 ;;
esac

# Prints the command line of a case. The tests run by themselves, in a cpuset, or started by `under`.
command_of() {
    case $1 in
    plain) echo "/bin/test_numa plain" ;;
    # Emulated machines are slow, so the tests run in their short form.
    collectives) echo "DITTO_TEST_SHORT=yes /bin/test_collectives here" ;;
    cpuset:*)
        cpus=${1#cpuset:}
        echo "in_cpuset ${cpus%%:*} ${cpus#*:} /bin/test_numa cpuset"
        ;;
    # The cpuset applies, but its files are not visible, as in some containers. This case must come last,
    # because the files are then missing for all later cases.
    hidden:*)
        cpus=${1#hidden:}
        hide="/bin/busybox umount -l /sys/fs/cgroup"
        echo "in_cpuset ${cpus%%:*} ${cpus#*:} /bin/busybox sh -c '$hide; exec /bin/test_numa cpuset'"
        ;;
    *) echo "/bin/under $1 /bin/test_numa $1" ;;
    esac
}

# -- The files of the guest, with the libraries that ldd names --

tree=$(mktemp -d)
trap 'rm -rf "$tree" "$tree.cpio"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$tree/bin" "$tree/proc" "$tree/sys" "$tree/dev" "$tree/tmp"
cp /bin/busybox "$tree/bin/busybox"
programs="tests/numa/test_numa_memory tests/numa/test_numa_variables tests/test_collectives tests/numa/under
    tools/ditto-info"
# Only one guest has train_digits, because it needs the many libraries of HDF5.
[ "$machine" != four ] || programs="$programs examples/train_digits"
for program in $programs; do cp "$build/$program" "$tree/bin"; done
cp "$root/examples/data/digits.csv" "$tree/digits.csv"
cat >"$tree/bin/test_numa" <<'SCRIPT'
#!/bin/busybox sh
/bin/test_numa_memory "$1" && /bin/test_numa_variables "$1"
SCRIPT
chmod +x "$tree/bin/test_numa"
for program in $programs; do LD_LIBRARY_PATH=$build/src ldd "$build/$program"; done |
    sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*\).*/\1/p' | grep -v ':$' | sort -u |
    while read -r library; do
        mkdir -p "$tree$(dirname "$library")"
        cp -L "$library" "$tree$library"
    done
{
    cat <<INIT
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox mount -t cgroup2 none /sys/fs/cgroup
echo "guest: up"
# Otherwise the kernel moves pages that are not bound and that several nodes use.
echo 0 >/proc/sys/kernel/numa_balancing
export LD_LIBRARY_PATH=$build/src
# in_cpuset CPUS MEMS PROGRAM...
in_cpuset() {
    group=/sys/fs/cgroup/cut
    echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
    /bin/busybox mkdir -p \$group
    echo \$1 >\$group/cpuset.cpus
    echo \$2 >\$group/cpuset.mems
    shift 2
    (echo 0 >\$group/cgroup.procs && exec "\$@")
}
INIT
    for case in $cases; do
        echo "$(command_of "$case")"
        echo "echo \"case $case: exit \$?\""
    done
    [ "$machine" != four ] || {
        echo "/bin/train_digits --data /digits.csv --per node --epochs 3"
        echo "echo \"training: exit \$?\""
        echo "/bin/ditto-info"
        echo "/bin/ditto-info --json --per node"
    }
    echo "/bin/busybox poweroff -f"
} >"$tree/init"
chmod +x "$tree/init"
(cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"$tree.cpio"

log=$build/numa-guest-$machine.log
# One thread emulates all CPUs in turn (thread=single), and goes to the next CPU at each PAUSE instruction, so
# a replica that waits costs nothing. With one thread for each CPU, the spinning ones take the real CPUs from
# those that have work, and the tests take eight to ten times as long.
#
# An emulated machine usually passes its firmware in 3 s, but sometimes it never does. `boot SECONDS` returns
# 2 if /init of the guest has not begun after so many seconds, and the machine is then started again. The
# limits grow, because on a busy machine the emulated one may be slow.
boot() {
    : >"$log"
    # shellcheck disable=SC2086 # lists of words
    timeout 800 qemu-system-x86_64 -accel tcg,thread=single -cpu Nehalem $qemu \
        -kernel "$cache/vmlinuz" -initrd "$tree.cpio" -append "console=ttyS0 quiet panic=-1" \
        -nographic -no-reboot -nic none </dev/null >"$log" 2>&1 &
    guest=$!
    for _ in $(seq "$1"); do
        if grep -q 'guest: up' "$log" || ! kill -0 "$guest" 2>/dev/null; then break; fi
        sleep 1
    done
    if ! grep -q 'guest: up' "$log" && kill "$guest" 2>/dev/null; then
        wait "$guest" && return
        return 2
    fi
    wait "$guest"
}
booted=0
for seconds in 40 120 400; do
    booted=0
    boot "$seconds" || booted=$?
    [ "$booted" = 2 ] || break
done
[ "$booted" = 0 ] || { cat "$log"; exit 1; }
tr -d '\r' <"$log"

# -- The results --

for case in $cases; do
    grep -q "case $case: exit 0" "$log" && ! grep "case $case: exit" "$log" | grep -qv "exit 0" || {
        echo "the numa tests failed in the guest $machine, case $case"
        exit 1
    }
done
echo "not tested in any guest: real latencies and bandwidths, HBM and CXL memory, hybrid cores," \
    "migration by numa_balancing"
[ "$machine" = four ] || exit 0
here=$(LD_LIBRARY_PATH=$build/src "$build/examples/train_digits" --data "$root/examples/data/digits.csv" \
    --replicas 4 --epochs 3 | grep '^weights:')
there=$(tr -d '\r' <"$log" | grep '^weights:' || true)
echo "four replicas on this machine:    $here"
echo "one replica per node, in guest:   $there"
grep -q 'training: exit 0' "$log" || { echo "training failed in the guest"; exit 1; }
[ "$here" = "$there" ] || { echo "the guest's weights have other bits"; exit 1; }
