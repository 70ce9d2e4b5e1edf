#!/bin/sh
# Writes the figures and predictions of docs/performance.md, between its markers, and docs/all-reduce.svg: nobody copies numbers.
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

text=$(mktemp)
# fill NAME: what stands between the page's markers of this name becomes the text
fill() {
    awk -v text="$text" -v name="$1" '
        $0 ~ "<!-- " name ": end -->" { inside = 0 }
        !inside { print }
        $0 ~ "<!-- " name ": begin" { inside = 1; while ((getline line < text) > 0) print line }
    ' "$page" >"$page.part"
    mv "$page.part" "$page"
}
build/tests/test_plans >"$text.plans" 2>/dev/null
awk -f bench/performance.awk "$table" >"$text"
fill figures
grep '^|' "$text.plans" >"$text"
fill predictions
rm -f "$text" "$text.plans"
