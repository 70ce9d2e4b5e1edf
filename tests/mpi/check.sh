#!/bin/sh
# Runs programs over MPI on 1, 2 and 3 processes: the same bits, and faults that end on all hosts.
#   usage: tests/mpi/check.sh openmpi|mpich HOSTS ENDS, which are hosts.c and ends.c
set -u
mpi=$1 program=$2 ends=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
complain() { echo "mpi: $*" | tee -a "$folder/complaints" >&2; }
start() { sh "$(dirname "$0")/launch.sh" "$mpi" 120 "$@" 2>&1; }

# ends HOW HOSTS: what a program has written is not lost, and a cluster that is destroyed too late is an
# error. These programs wait for most of their time, so they run beside the others.
ends() {
    mkdir "$folder/$1"
    output=$(start "$2" "$ends" "$folder/$1" "$1")
    found=$(cat "$folder/$1"/*)
    case $1 in
    late) [ "$(echo "$found" | grep -c '^DITTO_ERR_INVALID: MPI was finalized')" = "$2" ] ;;
    locked) echo "$output" | grep -q 'ends without it' ;;
    *) [ "$found" = "$(seq -f 'result %g' 0 $(($2 - 1)))" ] ;;
    esac || complain "ends $1: the files have \"$found\"; $output"
}
ends hangs 2 &
ends locked 2 &
# The launcher may kill another process before that one has written its file.
ends aborts 1
ends late 2

# The hash of the results of eight replicas does not depend on the hosts.
one=$(start 1 "$program" 8 | grep '^hash')
[ -n "$one" ] || complain "one process printed no hash"
for hosts in 2 3; do
    found=$(start $hosts "$program" 8 | grep '^hash')
    [ "$found" = "$one" ] || complain "$hosts processes: $found, but one process: $one"
done

# On more than 16 hosts, headers go in steps, and 2^k hosts combine what they pass on.
for hosts in 18 32; do
    one=$(start 1 "$program" $hosts | grep '^hash')
    found=$(start $hosts "$program" $hosts | grep '^hash' | sort -u)
    [ "$found" = "$one" ] || complain "$hosts processes: $found, but one process: $one"
done
output=$(start 18 "$program" 18 late)
[ "$(echo "$output" | grep -c '^host .*: DITTO_ERR_TIMED_OUT: .* for host 1 ([^)]*) ([^)]*)$')" = 18 ] &&
    [ "$(echo "$output" | grep -c ': then DITTO_OK')" = 18 ] ||
    complain "late: 18 processes do not name host 1, or do not go on: $output"

# fault FAULT STATUS TEXT: both hosts return this error, and the next run works.
fault() {
    output=$(start 2 "$program" 4 "$1")
    for host in 0 1; do
        echo "$output" | grep -q "^host $host: $2: .*$3" ||
            complain "$1: host $host did not return $2: $output"
        echo "$output" | grep -q "^host $host: then DITTO_OK" ||
            complain "$1: the next run failed on host $host: $output"
    done
}
fault error DITTO_ERR_USER 'host 1 does not want to go on'
fault diverged DITTO_ERR_DIVERGED 'every host must make the same calls'
fault early DITTO_ERR_DIVERGED 'the end of the run'
# Host 0 waits for host 1, and replica 3 for its neighbour, which is late. One of them is first.
fault late DITTO_ERR_TIMED_OUT 'for \(host 1\|replica 2\) '

# gone FAULT STATUS TEXT: the process of host 1 ends or stops, and the launcher leaves the others alone. They
# return this error. UCX aborts a process that reads the memory of one that has ended, so it must not do that
# here. If a process of MPICH was killed by a signal, its launcher kills the others too, before or after they
# have returned from the call, or fails itself when it writes to the process that is gone.
gone() {
    case $mpi in
    openmpi) output=$(start 3 -mca orte_abort_on_non_zero_status 0 "$program" 6 "$1") ;;
    mpich) output=$(UCX_TLS=^cma start 3 -disable-auto-cleanup "$program" 6 "$1") ;;
    esac
    for host in 0 2; do
        echo "$output" | grep -q "^host $host: $2: .*$3" && continue
        [ "$mpi $1" = "mpich kill" ] &&
            echo "$output" | grep -qE 'YOUR APPLICATION TERMINATED|^\[proxy.*write error' &&
            ! echo "$output" | grep -q "^host $host:" && continue
        complain "$1: host $host did not return $2: $(echo "$output" | head -n 5)"
    done
}
gone exit DITTO_ERR_LOST 'host 1 .* is gone' &
gone kill DITTO_ERR_LOST 'host 1 .* is gone'
gone stop DITTO_ERR_TIMED_OUT 'for host 1'
wait
[ ! -e "$folder/complaints" ]
