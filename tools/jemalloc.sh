#!/bin/sh
# Builds the jemalloc that ditto contains, so that programs may load libditto with dlopen.
#   usage: tools/jemalloc.sh FOLDER
# Gets Debian's source of jemalloc with apt-get, and makes FOLDER/libjemalloc_pic.a and FOLDER/include from
# it. The thread-local variables of Debian's own archive are in the static TLS block, in which dlopen finds no
# room for them (docs/adr/0002-a-private-jemalloc.md). FOLDER is made only if all of it succeeds. It needs
# apt-get, dpkg-source and make.
set -eu
[ $# = 1 ] || { echo "usage: tools/jemalloc.sh FOLDER" >&2; exit 1; }
if [ -e "$1" ] && [ ! -f "$1/libjemalloc_pic.a" ] && [ -n "$(ls -A "$1")" ]; then
    echo "jemalloc: $1 exists, and is not a folder that this script has made: give another one" >&2
    exit 1
fi
mkdir -p "$(dirname "$1")"
folder=$(realpath -m "$1")
[ ! -f "$folder/libjemalloc_pic.a" ] || exit 0
for tool in apt-get dpkg-source make; do
    command -v "$tool" >/dev/null || { echo "jemalloc: $tool is missing" >&2; exit 1; }
done
scratch=$(mktemp -d)
partial=$folder.partial.$$
trap 'rm -rf "$scratch" "$partial"' EXIT
trap 'exit 1' INT TERM

# The machine's own package sources, as sources of source packages, in a configuration of apt that exists only
# here. So no right of root is needed, and nothing of the machine changes.
mkdir -p "$scratch/apt/sources.list.d" "$scratch/apt/lists/partial" "$scratch/apt/cache/archives/partial"
: >"$scratch/apt/sources.list"
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -f "$list" ] || continue
    case $list in
    *.list) sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$list" \
        >"$scratch/apt/sources.list.d/$(basename "$list")" ;;
    *) sed 's/^Types:.*/Types: deb-src/' "$list" >"$scratch/apt/sources.list.d/$(basename "$list")" ;;
    esac
done
set -- -qq -o "Dir::Etc::sourcelist=$scratch/apt/sources.list" \
    -o "Dir::Etc::sourceparts=$scratch/apt/sources.list.d" -o "Dir::State::lists=$scratch/apt/lists" \
    -o "Dir::Cache=$scratch/apt/cache" -o APT::Sandbox::User= -o APT::Update::Post-Invoke::= \
    -o APT::Update::Post-Invoke-Success::= -o Acquire::Languages=none -o Acquire::Retries=0

# Another package source of the machine may be out of reach, so only the last command must succeed.
quietly() {
    "$@" >"$scratch/log" 2>&1 || { tail -n 20 "$scratch/log" >&2; return 1; }
}
cd "$scratch"
echo "fetching jemalloc's source"
apt-get "$@" update >update.log 2>&1 || true
apt-get "$@" source jemalloc >source.log 2>&1 || {
    # Without lists of sources, apt-get asks for deb-src lines, which are there.
    cat update.log source.log >&2
    echo "jemalloc: apt-get could not fetch its source: $(grep -hE '^(E|W|Err)' update.log source.log |
        head -n 1)" >&2
    exit 1
}
cd jemalloc-*/
echo "configuring jemalloc"
# The prefix is ditto's own, so that the settings of a program's jemalloc (MALLOC_CONF) do not reach this one.
quietly ./configure --disable-initial-exec-tls --disable-cxx --enable-static \
    --disable-shared --with-jemalloc-prefix=dti_je_ --with-private-namespace=dti_je_private_ \
    EXTRA_CFLAGS="-fvisibility=hidden -g0" || { echo "jemalloc: configure failed" >&2; exit 1; }
echo "compiling jemalloc"
quietly make -j "$(nproc)" lib/libjemalloc_pic.a || { echo "jemalloc: make failed" >&2; exit 1; }
mkdir -p "$scratch/made/include/jemalloc"
cp lib/libjemalloc_pic.a COPYING "$scratch/made/"
cp include/jemalloc/jemalloc.h "$scratch/made/include/jemalloc/"
# Complete or not at all, also if the scratch folder is on another file system.
cp -r "$scratch/made" "$partial"
[ ! -d "$folder" ] || rmdir "$folder"
mv "$partial" "$folder"
