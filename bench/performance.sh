#!/bin/sh
# Writes the figures of docs/performance.md, between its markers, and docs/all-reduce.svg: nobody copies numbers.
#     bench/performance.sh                        measures everything: about half an hour on a quiet machine
#     bench/performance.sh TABLE.csv GRAPH.csv    from what was measured before (kept in build/bench/)
# TABLE.csv is what `./run bench --peers --csv` prints, after the lines of `ditto-bench machine`.
set -eu
cd "$(dirname "$0")/.."
page=docs/performance.md
table=${1:-build/bench/performance.csv}
graph=${2:-build/bench/graph.csv}
if [ $# -eq 0 ]; then
    ./run build
    rm -f "$graph"
    build/bench/ditto-bench machine >"$table"
    ./run bench --peers --csv >>"$table" || echo "performance: ditto-bench complained; its figures follow anyway" >&2
fi
sh bench/table.sh --peers --graph docs/all-reduce.svg "$graph"

figures=$(mktemp)
awk -f bench/performance.awk "$table" >"$figures"
awk -v figures="$figures" '
    /<!-- figures: end -->/ { inside = 0 }
    !inside { print }
    /<!-- figures: begin/ { inside = 1; while ((getline line < figures) > 0) print line }
' "$page" >"$page.part"
mv "$page.part" "$page"
rm -f "$figures"
