#!/bin/sh
# tests/embed/gdb.sh - asks a program that hangs for its replicas in gdb, as docs/cookbook.md describes it.
# usage: gdb.sh PROGRAM, which is tests/embed/hangs.c
set -eu
skip() { echo "skipped: $*"; exit 77; }
command -v gdb >/dev/null || { echo "skipped, needs packages gdb"; exit 77; }
gdb -nx -batch -ex run /bin/true 2>&1 | grep -q 'exited normally' || skip "gdb may not run a program here"

# The frame above is that of watch, which has the strategy.
said=$(gdb -nx -batch -ex 'set breakpoint pending on' -ex 'break hangs_here' -ex run -ex up \
    -ex 'printf "%s", (char *)ditto_strategy_diagnose(strategy)' -ex 'info threads' -ex continue "$1" 2>&1) ||
    { echo "gdb.sh: gdb failed: $said"; exit 1; }
expect() {
    echo "$said" | grep -q "$1" || { echo "gdb.sh: gdb did not say: $1"; echo "$said"; exit 1; }
}
expect '^2 replicas, run '
expect '^replica 0: in ditto_barrier #1$'
expect '^replica 1: in no collective yet$'
expect '"ditto-r1"'
expect 'exited normally'
echo "$said" | grep '^replica'
