#!/bin/sh
# Measures ditto, its bounds and its peers on the PUs, caches, nodes and packages of this machine. It is the
# program `measure` of the folder that `./run bundle` makes. Under the names ditto-bench and ditto-info, it
# starts these programs of the folder. It needs a shell, coreutils, awk, grep, sed and taskset, which each
# Debian has.
set -eu
usage() {
    cat <<'TEXT'
usage: measure [MINUTES]
Measures for at most so many minutes (30), the most important rows first, and
writes them into CPU.csv in the present folder, where CPU is the kind of this
processor. The figures of a row are there as soon as it has been measured.
Rows "on siblings" have both PUs of each core. Those "on caches", "on nodes"
and "on packages" have their PUs in as many of these as possible. All others
have one PU of each core, in as few caches, nodes and packages as possible.
TEXT
}
complain() { echo "measure: $*" >&2; }
folder=$(CDPATH='' cd -- "$(dirname "$(readlink -f "$0")")" && pwd)
case $folder in
*:*) complain "$folder has a colon in its name, at which lists of folders are divided: rename it"; exit 1 ;;
esac

# The bounds and the peers were compiled for several kinds of processors.
flags=" $(sed -n '/^flags/ { s/.*: //; p; q; }' /proc/cpuinfo) "
has() {
    for flag in "$@"; do
        case $flags in *" $flag "*) ;; *) return 1 ;; esac
    done
}
kind=x86-64
! has avx2 bmi1 bmi2 f16c fma abm movbe || kind=x86-64-v3
[ $kind = x86-64 ] || ! has avx512f avx512bw avx512cd avx512dq avx512vl || kind=x86-64-v4

# start LAUNCHER COMMAND...: becomes the command, which finds the programs and the libraries of the folder.
# LAUNCHER has the words of a program of this machine that starts it, and has this machine's libraries. The
# variables that are unset would give the threads of the peers other PUs than those of ditto.
start() {
    launcher=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    exec $launcher env -u OMP_PLACES -u GOMP_CPU_AFFINITY -u KMP_AFFINITY -u OMP_NUM_THREADS \
        "PATH=$folder/$kind:$folder/bin:$PATH" \
        "LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
}
case ${0##*/} in ditto-*) start '' "${0##*/}" "$@" ;; esac

case ${1:-30} in
--help | -h) usage; exit ;;
'' | 0* | *[!0-9]* | ????*) complain "\"$1\" is no number of minutes from 1 to 999"; usage >&2; exit 2 ;;
esac
[ $# -le 1 ] || { usage >&2; exit 2; }
for tool in awk grep sed taskset timeout; do
    command -v $tool >/dev/null || { complain "the program $tool is missing: install it"; exit 1; }
done
begin=$(date +%s)
end=$((begin + ${1:-30} * 60))
# A row that takes more seconds than that is ended, so that it does not take the time of others.
limit=$(((end - begin) / 20))
[ $limit -ge 20 ] || limit=20

# -- the PUs --

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

# A line for each PU that this process may use: its number, package, node, last-level cache and core, and its
# number in its core. What the kernel does not tell is 0. Caches and cores have the number of their first PU.
awk '
    function line_of(file, otherwise,    line) {
        if ((getline line <file) <= 0) line = otherwise
        close(file)
        return line
    }
    function numbers(list, out,    parts, ends, count, i, n) { # reads a list like 0-3,8
        count = split(list, parts, ",")
        for (i = 1; i <= count; i++) {
            split(parts[i] "-" parts[i], ends, "-")
            for (n = ends[1] + 0; n <= ends[2] + 0; n++) out[++out[0]] = n
        }
    }
    /^Cpus_allowed_list/ {
        numbers(line_of("/sys/devices/system/node/online", "0"), nodes)
        for (i = 1; i <= nodes[0]; i++) {
            split("", members)
            numbers(line_of("/sys/devices/system/node/node" nodes[i] "/cpulist", ""), members)
            for (k = 1; k <= members[0]; k++) node[members[k]] = nodes[i]
        }
        numbers($2, pus)
        for (i = 1; i <= pus[0]; i++) {
            here = "/sys/devices/system/cpu/cpu" pus[i]
            package = line_of(here "/topology/physical_package_id", 0) + 0
            core = line_of(here "/topology/thread_siblings_list", pus[i]) + 0
            cache = 0
            for (k = 0; (shared = line_of(here "/cache/index" k "/shared_cpu_list", "")) != ""; k++)
                cache = shared + 0
            print pus[i], package, node[pus[i]] + 0, cache, core, thread[core]++ + 0
        }
    }' /proc/self/status >"$scratch/pus"
num_pus=$(wc -l <"$scratch/pus")
cores=$(grep -c ' 0$' "$scratch/pus")
[ "$num_pus" -gt 1 ] || { complain "needs two PUs, but this process may use only one"; exit 1; }

# In these files, the PUs are in the order in which replicas get them.
sort -k6,6n -k2,2n -k3,3n -k4,4n -k5,5n "$scratch/pus" >"$scratch/cores"
sort -k2,2n -k3,3n -k4,4n -k5,5n -k6,6n "$scratch/pus" >"$scratch/siblings"
column=1
for part in packages nodes caches; do # the first PU of each, then the second one of each, and so on
    column=$((column + 1))
    awk -v column=$column '{ print $6, count[$6, $column]++, NR, $0 }' "$scratch/cores" |
        sort -k1,1n -k2,2n -k3,3n | cut -d ' ' -f 4- >"$scratch/$part"
done

# -- the plan --

# The MiB that may be used: those that are available, but not more than a control group (version 2) allows.
# They are 0 if the kernel tells nothing.
memory=$({
    awk '/^MemAvailable/ { print $2 * 1024 }' /proc/meminfo
    group=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
    while cat "/sys/fs/cgroup$group/memory.max" 2>/dev/null || true; [ -n "$group" ]; do
        group=${group%/*}
    done
} | awk '/^[0-9]/ && (least == "" || $1 + 0 < least) { least = $1 + 0 } END { print int(least / 1048576) }')

# each ORDER WORDS: prints a line for each number of replicas, the most important ones first. Some may be
# there twice. Messages of 8 MiB need much memory, because each contender has its own: 18 times their bytes
# have been seen.
most=$((cores > 1 ? cores : 2)) # replicas for which PUs of other cores are taken first
counts="2 $most $num_pus"
n=4
while [ $n -lt "$num_pus" ]; do counts="$counts $n" n=$((2 * n)); done
each() {
    for n in $counts; do
        [ "${2%8M*}" = "$2" ] || [ $((n * 8 * 24)) -lt "$memory" ] || continue
        echo "$1 $n $2"
    done
}
# The same grids for each number of replicas, in whole planes of 8 KiB.
cg() {
    for n in $counts; do
        words=
        for planes in "$@"; do words="$words,$(((planes + n - 1) / n * 8))K"; done
        echo "cores $n cg --bytes ${words#,}"
    done
}
plan() {
    each cores barrier
    each cores run
    each cores "all-reduce --in-place --bytes 8,32K,512K"
    for order in siblings packages nodes caches; do
        each $order barrier
        each $order "all-reduce --in-place --bytes 8,32K,512K"
    done
    each cores "all-reduce --in-place --bytes 2K,128K,8M"
    each cores "broadcast --bytes 8,32K,512K"
    each cores "train --bytes 64K,512K"
    cg 48 512
    each cores "parallel-for --bytes 0,8M"
    each cores merge-call
    echo "cores $most queue"
    echo "cores $most functions"
    each cores "all-reduce --bytes 8,32K,512K"
    each cores "all-reduce --in-place --bytes 64K,256K,1M,2M"
    each cores "all-reduce --in-place --bytes 512,1K,4K,8K,16K"
    for order in siblings packages nodes caches; do
        each $order "all-reduce --in-place --bytes 2K,128K,8M"
        each $order "broadcast --bytes 8,32K,512K"
    done
    each cores "broadcast --bytes 2K,128K,8M"
    each cores "all-reduce --bytes 2K,128K,8M"
    each cores "train --bytes 4M"
    [ "$memory" -lt 8192 ] || cg 16384
    each cores "parallel-for --bytes 256M"
}

# -- measuring --

# write_rows ORDER: writes each line of ditto-bench when it is complete.
write_rows() {
    while IFS= read -r line; do
        case $line in
        "#"*) ;;
        bench,*) grep -q '^bench,' "$csv" || echo "$line" >>"$csv" ;;
        *)
            [ "$1" = cores ] || line="${line%%,*} on $1,${line#*,}"
            echo "$line" >>"$csv"
            ;;
        esac
    done
}

# measure ORDER PUS SECONDS WORDS...: calls ditto-bench in the background, because a signal to the shell ends
# the command `wait` at once, but not a pipeline.
running=
mkfifo "$scratch/lines"
measure() {
    order=$1 pus=$2 seconds=$3 status=0
    shift 3
    write_rows "$order" <"$scratch/lines" &
    writer=$!
    (start "timeout --foreground -s KILL $seconds taskset -c $pus" \
        ditto-bench "$@" --peers --csv --patience 5) </dev/null >"$scratch/lines" &
    running=$!
    wait $running || status=$?
    running=
    wait $writer
    case $status in
    0 | 1) ;; # ditto-bench has said why
    137) complain "$* was ended after $seconds s, or because memory was short" ;;
    *) complain "ditto-bench $* ended with status $status" ;;
    esac
}

# Shells start programs in the background with SIGINT ignored, so ditto-bench is ended here.
interrupt() {
    trap '' INT TERM HUP
    [ -z "$running" ] || kill "$running" || true
    wait
    complain "interrupted; what has been measured is in $csv"
    exit 130
}

csv=$(awk -F ': ' '/^vendor_id/ { v = $2 } /^cpu family/ { f = $2 } /^model\t/ { m = $2 }
    /^$/ { exit } END { print v "-" f "-" m }' /proc/cpuinfo).csv
[ ! -e "$csv" ] || { complain "$csv exists, and has earlier figures: move it away"; exit 1; }
allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
quota=$( (start '' ditto-info) | sed -n 's/^ *\(CPU quota: .*\)/\1/p')
(start '' ditto-bench machine) >"$scratch/csv"
awk -v text="a bundle, compiled for $kind; PUs: $allowed; $quota; cores: $cores" '
    BEGIN { split("? packages nodes caches", name, " ") }
    { for (i = 2; i <= 4; i++) if (!seen[i, $i]++) first[i] = first[i] " " $1 }
    END {
        for (i = 2; i <= 4; i++) text = text "; first PUs of " name[i] ":" first[i]
        print "# " text
    }' "$scratch/pus" >>"$scratch/csv"
cp "$scratch/csv" "$csv"

trap interrupt INT TERM HUP
plan >"$scratch/plan"
before='' left=0
while read -r order n words; do
    pus=$(head -n "$n" "$scratch/$order" | sort -n | awk '
        NR > 1 && $1 == last + 1 { last = $1; next }
        { if (NR > 1) printf "%s,", last == first ? last : first "-" last; first = last = $1 }
        END { print last == first ? last : first "-" last }')
    case $before in *"|$pus $words|"*) continue ;; esac
    before="$before|$pus $words|"
    now=$(date +%s)
    [ "$now" -lt "$end" ] || { left=$((left + 1)); continue; }
    echo "$((now - begin)) s: $words on $n PUs: $pus"
    case $words in
    queue | functions) ;;
    parallel-for*) words="$words --devices $n" ;;
    *) words="$words --replicas $n" ;;
    esac
    seconds=$(($(echo "$words" | tr , '\n' | wc -l) * limit))
    # shellcheck disable=SC2086 # a list of words
    measure "$order" "$pus" $((end - now < seconds ? end - now : seconds)) $words
done <"$scratch/plan"
echo "$(grep -c ',ditto,' "$csv") rows are in $csv; calls of ditto-bench that did not begin in time: $left"
