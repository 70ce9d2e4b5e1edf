#!/bin/sh
# The table of `./run bench`: with words, one ditto-bench call; without, the rows that every release is judged by.
# Every row stands beside its bound and beside OpenMP; --peers is accepted for peers that need installing (MPI, gloo), of
# which there is none yet.
set -u
cd "$(dirname "$0")/.."
bench=build/bench/ditto-bench
if [ "${1:-}" = --peers ]; then
    echo "# peers: OpenMP; MPI and gloo are not measured by this version"
    shift
fi
[ $# -eq 0 ] || exec "$bench" "$@"

worst=0 header=yes
# row WORDS: without the heading, after the first
row() {
    log=$(mktemp)
    "$bench" "$@" >"$log" || worst=$?
    if [ $header = yes ]; then cat "$log"; else grep -v -e '^#' -e '^bench ' "$log"; fi
    rm -f "$log"
    header=no
}
sizes=8,2K,32K,512K,8M,128M
row barrier --replicas 2
row run --replicas 2
row all-reduce --replicas 2 --bytes $sizes --in-place
row all-reduce --replicas 2 --bytes $sizes
row barrier --replicas 8
row barrier --replicas 64
row all-reduce --replicas 8 --bytes 8,32K,2M --in-place
row parallel-for --devices 2
row parallel-for --devices 1
row create --replicas 8
row rest --replicas 8
exit $worst
