#!/bin/sh
# Measures all rows on this machine, and writes the figures and predictions between the markers of
# docs/performance.md, and docs/all-reduce.svg, so that no numbers are copied by hand. README.md gets some
# rows of this machine.
#     bench/performance.sh [RUNS [SECONDS]]   measures RUNS times (1); a row waits for another mode of the
#                                             machine for at most SECONDS (60)
#     bench/performance.sh 0                  uses the measurements that are there
# The measurements of this kind of processor replace those in docs/figures/CPU.csv. The tables are made of all
# files in that folder, so the figures of other machines stay. The data of the graph is in build/bench/.
set -eu
cd "$(dirname "$0")/.."
runs=${1:-1} patience=${2:-60}
graph=build/bench/graph.csv

# The vendor, family and model of the processor, or its architecture where the kernel does not say them.
processor=$(awk -F ': ' '/^vendor_id/ { v = $2 } /^cpu family/ { f = $2 } /^model\t/ { m = $2 }
    /^$/ { exit } END { if (v != "") print v "-" f "-" m }' /proc/cpuinfo)
table=docs/figures/${processor:-$(uname -m)}.csv

if [ "$runs" -gt 0 ]; then
    ./run build
    rm -f "$graph"
    build/bench/ditto-bench machine >"$table.part"
    for run in $(seq "$runs"); do
        echo "performance: run $run of $runs" >&2
        ./run bench --peers --csv --patience "$patience" >>"$table.part" ||
            echo "performance: ditto-bench complained; its figures follow anyway" >&2
    done
    # See "Waiting" in docs/performance.md. This takes an hour.
    groups=$(sysctl -n kernel.sched_autogroup_enabled 2>/dev/null || true)
    [ "$groups" != 1 ] || trap 'sysctl -q kernel.sched_autogroup_enabled=1' EXIT
    [ "$groups" != 1 ] || sysctl -q kernel.sched_autogroup_enabled=0 ||
        echo "performance: autogroups stay on, so the rows with load compare unequal shares" >&2
    for load in 0 1 2 4 16; do
        build/bench/ditto-bench wait --peers --csv --load "$load" >>"$table.part" ||
            echo "performance: ditto-bench wait --load $load failed; its figures are missing" >&2
    done
    mv "$table.part" "$table"
    sh bench/table.sh --peers --patience "$patience" --graph docs/all-reduce.svg "$graph" ||
        echo "performance: ditto-bench complained; the graph follows anyway" >&2
fi

text=$(mktemp)
# fill PAGE NAME TEXT: replaces the lines between the page's markers of this name with the text
fill() {
    awk -v name="$2" -v text="$3" '
        $0 ~ "<!-- " name ": end -->" { inside = 0 }
        !inside { print }
        $0 ~ "<!-- " name ": begin" { inside = 1; while ((getline line < text) > 0) print line }
    ' "$1" >"$1.part"
    mv "$1.part" "$1"
}
python3 bench/figures.py all docs/figures/*.csv >"$text"
fill docs/performance.md figures "$text"
if [ -f "$table" ]; then
    python3 bench/figures.py main "$table" >"$text"
    fill README.md figures "$text"
fi
build/tests/test_plans 2>/dev/null | grep '^|' >"$text"
fill docs/performance.md predictions "$text"
rm -f "$text"
