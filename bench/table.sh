#!/bin/sh
# Measures and prints the table of `./run bench`.
#     [--peers] [--csv] [--samples] [--counters] [--patience SECONDS]
#                                   the rows for each release, with bounds and OpenMP, or with all peers
#     [--peers] NAME words          calls ditto-bench once
#     --graph FILE.svg [FILE.csv]   draws the time of all-reduce against its size. The data is read from
#                                   FILE.csv, or measured and written to it if the file does not exist.
set -u
cd "$(dirname "$0")/.." || exit
bench=build/bench/ditto-bench
peers='' csv='' graph='' counters='' patience=''
while [ $# -gt 0 ]; do
    case $1 in
    --peers) peers=--peers ;;
    --csv) csv=--csv ;;
    --samples) csv='--csv --samples' ;;
    --counters) counters=--counters ;;
    --patience) patience="--patience ${2:?--patience needs seconds}"; shift ;;
    --graph) graph=${2:?--graph needs a file}; shift ;;
    *) break ;;
    esac
    shift
done

worst=0 header=yes
# row WORDS: calls ditto-bench once and prints its rows. Only the first call prints a heading.
row() {
    log=$(mktemp)
    # shellcheck disable=SC2086 # words, or none
    "$bench" "$@" $peers $csv $counters $patience >"$log" || worst=$?
    if [ $header = yes ]; then cat "$log"; else grep -v -e '^#' -e '^bench[ ,]' "$log"; fi
    rm -f "$log"
    header=no
}

# The rows that are measured for each release.
table() {
    sizes=8,2K,32K,512K,8M
    row barrier
    row run
    row all-reduce --bytes $sizes,128M --in-place
    row all-reduce --bytes $sizes,128M
    row barrier --replicas 8
    row barrier --replicas 64
    row all-reduce --replicas 8 --bytes 8,32K,2M --in-place
    for name in all-gather broadcast reduce-scatter reduce gather scatter all-to-all; do
        row $name --bytes $sizes
    done
    for name in scan scan-exclusive; do row $name --bytes 8,2K,32K,1M; done
    for name in broadcast reduce; do row $name --bytes 8,2K,32K --turns; done
    for dtype in f32 f64 i32 bf16; do row all-reduce --dtype $dtype --bytes 1M --in-place; done
    row all-reduce --dtype bf16 --bytes 2K,32K,512K,8M --in-place # activations of language models
    row all-reduce --replicas 4 --groups 2 --alone --bytes 8,32K,1M --in-place
    for replicas in 4 8; do row all-reduce --replicas $replicas --groups 2 --bytes 8,32K,1M --in-place; done
    row list --bytes 400K --in-place
    row async --bytes $sizes --in-place
    row skew --bytes 32K --skew 0,20,200 --in-place
    row cg # the same grids for each number of replicas
    row cg --replicas 4 --bytes 96K,1M,32M
    row cg --replicas 8 --bytes 48K,512K,16M
    for replicas in 2 4 8; do row train --replicas $replicas; done
    row parallel-for --devices 2
    row parallel-for --devices 1
    for replicas in 1 2; do row generate --replicas $replicas; done
    for name in run-values reduce-values merge-call exchange dot trace; do row $name; done
    for name in run-values merge-call exchange; do row $name --replicas 8; done
    row create --replicas 8
    row rest --replicas 8
}

# Measures into a CSV file if it does not exist, and draws the picture.
draw() {
    data=${1:-build/bench/graph.csv}
    if [ ! -s "$data" ]; then
        csv=--csv
        { row all-reduce --in-place; row all-reduce; } >"$data.part" && mv "$data.part" "$data"
    fi
    gnuplot -e "data='$data'; picture='$graph'" bench/plot.gp || worst=$?
}

if [ -n "$graph" ]; then
    draw "$@"
elif [ $# -gt 0 ]; then
    row "$@"
else
    table
fi
exit $worst
