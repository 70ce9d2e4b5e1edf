#!/bin/sh
# usage: rename_jemalloc.sh ARCHIVE OUTPUT.o SCRATCH_DIR
#
# Makes ditto's own jemalloc from the distribution's libjemalloc_pic.a, or from that of tools/jemalloc.sh. The
# result is one object, in which everything is local except the symbols in the list below, which arena.c uses.
# These get ditto's prefix, unless they have it already. A program that links ditto therefore keeps its own
# malloc.
set -eu
archive=$1 output=$2 scratch=$3
[ -f "$archive" ] || {
    echo "ditto needs $archive (Debian: libjemalloc-dev); see -Djemalloc_archive" >&2
    exit 1
}
archive=$(realpath "$archive") output=$(realpath -m "$output")
rm -rf "$scratch"; mkdir -p "$scratch"; cd "$scratch"
ar x "$archive"
rm -f jemalloc_cpp*.o # defines operator new and delete
ld -r -o whole.o ./*.o
: >keep; : >names
for symbol in mallocx dallocx mallctl mallctlnametomib mallctlbymib malloc_conf; do
    echo "$symbol" >>keep; echo "dti_je_$symbol" >>keep; echo "$symbol dti_je_$symbol" >>names
done
objcopy --keep-global-symbols=keep whole.o local.o
objcopy --redefine-syms=names local.o renamed.o
# The host's MALLOC_CONF and /etc/malloc.conf are not meant for this copy. It gets other names of the same
# length, so that no offset moves.
LC_ALL=C sed -e 's/MALLOC_CONF/DITTOJ_CONF/g' -e 's|/etc/malloc\.conf|/etc/dittoj.conf|g' renamed.o >"$output"
