#!/bin/sh
# Boots a small machine with two packages and two NUMA nodes (qemu, emulated) and runs there: the numa tests, and training
# with two replicas, whose weights must have the same bits as here.
#   usage: guest.sh BUILD_DIRECTORY CACHE_DIRECTORY
# Exit 77: skipped, with the reason.
set -eu
build=$(realpath "$1") cache=$2
root=$(cd "$(dirname "$0")/../.." && pwd)

skip() { echo "skipped: $*"; exit 77; }
for tool in qemu-system-x86_64 cpio gzip; do
    command -v $tool >/dev/null || skip "$tool is not installed (./run test installs it)"
done
[ -x /bin/busybox ] || skip "busybox-static is not installed (./run test installs it)"

# The kernel of Debian's cloud image, by package name: only its file is taken, nothing is installed.
fetch_kernel() {
    mkdir -p "$cache"
    command -v apt-get >/dev/null || skip "no apt-get to fetch a kernel with"
    scratch=$(mktemp -d)
    if ! apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1; then
        apt-get update >/dev/null 2>&1 || skip "apt-get update failed"
    fi
    name=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
    (cd "$scratch" && apt-get download "$name" >/dev/null 2>&1) || skip "the package $name could not be fetched"
    dpkg-deb -x "$scratch"/*.deb "$scratch/files"
    cp "$scratch"/files/boot/vmlinuz-* "$cache/vmlinuz"
    rm -rf "$scratch"
}
[ -s "$cache/vmlinuz" ] || fetch_kernel

# What the guest runs, with the libraries that ldd names.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/bin" "$tree/proc" "$tree/sys" "$tree/dev" "$tree/tmp"
cp /bin/busybox "$tree/bin/busybox"
cp "$build/tests/test_numa" "$build/examples/train_digits" "$tree/bin"
cp "$root/examples/data/digits.csv" "$tree/digits.csv"
LD_LIBRARY_PATH=$build/src ldd "$tree/bin/test_numa" "$tree/bin/train_digits" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*\).*/\1/p' |
    grep -v ':$' | sort -u | while read -r library; do
    mkdir -p "$tree$(dirname "$library")"
    cp -L "$library" "$tree$library"
done
cat >"$tree/init" <<INIT
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
export LD_LIBRARY_PATH=$build/src
/bin/test_numa
echo "numa tests: exit \$?"
/bin/train_digits --data /digits.csv --replicas 2 --epochs 3
echo "training: exit \$?"
/bin/busybox poweroff -f
INIT
chmod +x "$tree/init"
(cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"$tree.cpio"

log=$build/numa-guest.log
timeout 240 qemu-system-x86_64 -accel tcg,thread=multi -cpu Nehalem -m 2G -smp 4,sockets=2,cores=2 \
    -object memory-backend-ram,size=1G,id=m0 -object memory-backend-ram,size=1G,id=m1 \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 -numa dist,src=0,dst=1,val=21 \
    -kernel "$cache/vmlinuz" -initrd "$tree.cpio" -append "console=ttyS0 quiet panic=-1" \
    -nographic -no-reboot -nic none </dev/null >"$log" 2>&1 || { cat "$log"; rm -f "$tree.cpio"; exit 1; }
rm -f "$tree.cpio"
tr -d '\r' <"$log"

here=$(LD_LIBRARY_PATH=$build/src "$build/examples/train_digits" --data "$root/examples/data/digits.csv" --replicas 2 --epochs 3 |
    grep '^weights:')
there=$(tr -d '\r' <"$log" | grep '^weights:' || true)
echo "here:  $here"
echo "guest: $there"
grep -q 'numa tests: exit 0' "$log" || { echo "the numa tests failed in the guest"; exit 1; }
grep -q 'training: exit 0' "$log" || { echo "training failed in the guest"; exit 1; }
[ "$here" = "$there" ] || { echo "the guest's weights have other bits"; exit 1; }
