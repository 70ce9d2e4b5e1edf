#!/bin/sh
# Makes a folder that measures ditto on another machine. `./run bundle` calls it.
#   usage: tools/bundle.sh FOLDER
# FOLDER gets the program `measure` (bench/measure.sh), ditto-bench with the bounds and the peers for three
# kinds of processors, ditto-info, libgomp, libomp, MPICH with its launcher, their libraries and licences. It
# is made only if all of it succeeds. The other machine needs a Linux for x86-64 and the C library that is
# named at the end. Programs are built in build-bundle.
set -eu
[ $# = 1 ] || { echo "usage: tools/bundle.sh FOLDER" >&2; exit 1; }
folder=$(realpath -m "$1")
cd "$(dirname "$0")/.."
fail() { echo "bundle: $*" >&2; exit 1; }
[ "$(uname -m)" = x86_64 ] || fail "bundles are for x86-64, but this machine is $(uname -m)"
[ ! -e "$folder" ] || [ -z "$(ls -A "$folder")" ] || fail "$folder is not empty: give another name"
mkdir -p "$(dirname "$folder")"
part=$folder.part.$$
trap 'rm -rf "$part"' EXIT
trap 'exit 1' INT TERM
mkdir "$part" "$part/bin" "$part/lib" "$part/licences"

build=build-bundle
[ -f $build/build.ninja ] || {
    rm -rf $build/meson-private # of a meson that was interrupted
    meson setup $build -Dtests=false -Dhdf5=disabled -Dmpi=disabled -Dfortran=disabled
}
benches="ditto-bench peer-libgomp peer-libomp peer-mpich peer-shared-memory"
for kind in x86-64 x86-64-v3 x86-64-v4; do
    meson configure $build -Dbench_cpu=$kind
    # shellcheck disable=SC2046,SC2086 # lists of words
    ninja -C $build tools/ditto-info $(printf 'bench/%s ' $benches)
    mkdir "$part/$kind"
    for name in $benches; do cp "$build/bench/$name" "$part/$kind"; done
done
cp $build/tools/ditto-info "$part/bin"
cp "$(command -v mpiexec.hydra)" "$part/bin/mpirun.mpich"
cp "$(command -v hydra_pmi_proxy)" "$part/bin"
for name in measure ditto-bench ditto-info; do cp bench/measure.sh "$part/$name"; done
chmod 755 "$part/measure" "$part/ditto-bench" "$part/ditto-info"

# The libraries of all programs, but for the C library. They are found under the names that programs ask for.
LD_LIBRARY_PATH=$PWD/$build/src ldd "$part"/bin/* "$part"/x86-64/* |
    sed -n 's/ (0x[0-9a-f]*)$//; s/^\t\([^ ]*\) => /\1 /p' |
    grep -Ev '^(libc|libm|libmvec|libresolv|libpthread|libdl|librt)\.so' | sort -u >"$part/libraries"
while read -r name path; do
    [ -f "$path" ] || fail "the library $name is missing"
    cp -L "$path" "$part/lib/$name"
done <"$part/libraries"

# The licences, and the packages, whose sources are Debian's.
cp LICENSE THIRD-PARTY "$part/licences"
{ grep -vF " $PWD/" "$part/libraries"; echo "launcher $(command -v mpiexec.hydra)"; } |
    while read -r _ path; do
        path=$(realpath "$path")
        # A package may name its file with or without the /usr that is now before it.
        dpkg -S "$path" 2>/dev/null || dpkg -S "${path#/usr}" 2>/dev/null || fail "no package has $path"
    done >"$part/owners"
for package in $(cut -d : -f 1 "$part/owners" | sort -u); do
    cp "/usr/share/doc/$package/copyright" "$part/licences/$package" || fail "$package has no licence"
    dpkg-query -W -f '${Package} ${Version}, source ${source:Package} ${source:Version}\n' "$package"
done >"$part/licences/packages"
rm "$part/libraries" "$part/owners"

library=$(objdump -T "$part"/bin/* "$part"/lib/* "$part"/x86-64*/* 2>/dev/null |
    grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
size=$(du -sm --apparent-size "$part" | cut -f 1)
[ "$size" -le 60 ] || fail "the folder would have $size MiB, but at most 60 are allowed"
[ ! -d "$folder" ] || rmdir "$folder"
mv "$part" "$folder"
echo "$folder has $size MiB, and needs a C library with $library; on the other machine, type" \
    "${folder##*/}/measure --help"
