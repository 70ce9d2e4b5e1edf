#!/bin/sh
# Measures the all-reduce from 1 KiB to 16 MiB by factors of sqrt(2), in place and out of place, and prints
# for each size the microseconds of ditto and of the bound, and the bound's time over ditto's. It fails if a
# share is below 0.85, or if a size takes over 3 % more time than a larger one, in the same mode of the
# machine.
#     bench/curve.sh [WORDS]   WORDS are options of ditto-bench, like --replicas 4 --dtype bf16
# Two settings are compared by two calls: DITTO_TUNING=fetch_bytes=never sh bench/curve.sh
set -eu
cd "$(dirname "$0")/.."
sizes=$(awk 'BEGIN { for (i = 0; i <= 28; i++)
    printf "%d ", int(1024 * 2 ^ (i / 2) / 64 + 0.5) * 64 }')

# curve FORM WORDS: measures and prints one curve
curve() {
    form=$1
    shift
    for size in $sizes; do # a process each, so that the thresholds are measured in the machine's present mode
        build/bench/ditto-bench all-reduce --bytes "$size" --csv "$@" || bad=1
    done >"$rows"
    awk -F , -v form="$form" '
        /^bench,/ { for (i = 1; i <= NF; i++) column[$i] = i; next }
        /^#/ || $column["algorithm"] != "ditto" { next }
        { n++; bytes[n] = $column["bytes"]; ns[n] = $column["ns_median"]; bound[n] = $column["bound_ns"]
          mode[n] = $column["hand_over_ns"] }
        END {
            for (i = n; i > 0; i--) {
                share = bound[i] / ns[i] # 0 if there is no bound, as for MAX
                faults = share < 0.85 && bound[i] > 0 ? " below 0.85" : ""
                for (k = n; k > i; k--)
                    if (bytes[k] > bytes[i] && ns[i] > 1.03 * ns[k] && mode[i] < 1.5 * mode[k] &&
                        mode[k] < 1.5 * mode[i]) { faults = faults " slower than " bytes[k]; break }
                line[i] = sprintf("%-12s %9d %10.2f %10.2f %6.2f %4d%s", form, bytes[i], ns[i] / 1000,
                                  bound[i] / 1000, share, mode[i], faults)
                bad += faults != ""
            }
            for (i = 1; i <= n; i++) print line[i]
            exit n == 0 || bad > 0
        }' "$rows" || bad=1
}

printf '%-12s %9s %10s %10s %6s %4s\n' form bytes 'ditto us' 'bound us' share hop
bad=0 rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
curve in-place --in-place "$@"
curve out-of-place "$@"
exit $bad
