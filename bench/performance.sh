#!/bin/sh
# Writes the figures and predictions between the markers of docs/performance.md and README.md, and
# docs/all-reduce.svg, so that no numbers are copied by hand.
#     bench/performance.sh                        measures all rows, which takes 20 minutes on a quiet machine
#     bench/performance.sh TABLE.csv GRAPH.csv    uses earlier measurements, which are kept in build/bench/
# TABLE.csv contains the lines of `ditto-bench machine`, and then the output of `./run bench --peers --csv`.
set -eu
cd "$(dirname "$0")/.."
table=${1:-build/bench/performance.csv}
graph=${2:-build/bench/graph.csv}
if [ $# -eq 0 ]; then
    ./run build
    rm -f "$graph"
    build/bench/ditto-bench machine >"$table"
    ./run bench --peers --csv >>"$table" ||
        echo "performance: ditto-bench complained; its figures follow anyway" >&2
fi
sh bench/table.sh --peers --graph docs/all-reduce.svg "$graph" ||
    echo "performance: ditto-bench complained; the graph follows anyway" >&2

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
awk -f bench/performance.awk "$table" >"$text.all"
# The README gets the main rows, with the columns work, replicas, ditto, bound, and the ratios to bound, MPI
# and OpenMP.
awk -F ' [|] ' '/^[|] work [|] replicas/ { rows = 1 } /^$/ { rows = 0 }
    rows && /^[|] (work|---|barrier|run|all-reduce [^,]*,|parallel-for)/ && !/MiB (f64|i32|bf16)|1 MiB/ {
        sub(/^[|] /, "", $1)
        print "| " $1 " | " $2 " | " $3 " | " $4 " | " $11 " | " $12 " | " $13 " |"
    }' "$text.all" >"$text.main"
build/tests/test_plans 2>/dev/null >"$text.plans"
grep '^|' "$text.plans" >"$text"
fill docs/performance.md figures "$text.all"
fill docs/performance.md predictions "$text"
fill README.md figures "$text.main"
rm -f "$text" "$text.all" "$text.main" "$text.plans"
