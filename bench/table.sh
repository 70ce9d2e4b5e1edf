#!/bin/sh
# The table of `./run bench`: with words, one ditto-bench call; without, the rows that every release is judged by.
set -eu
cd "$(dirname "$0")/.."
bench=build/bench/ditto-bench
if [ $# -gt 0 ]; then
    exec "$bench" "$@"
fi
sizes=8,2K,32K,512K,8M,128M
$bench barrier --replicas 2
$bench run --replicas 2 | tail -n 1
$bench all-reduce --replicas 2 --bytes $sizes --in-place | tail -n +4
$bench all-reduce --replicas 2 --bytes $sizes | tail -n +4
$bench barrier --replicas 8 | tail -n 1
$bench barrier --replicas 64 | tail -n 1
$bench all-reduce --replicas 8 --bytes 8,32K,2M --in-place | tail -n +4
$bench create --replicas 8
$bench rest --replicas 8
