#!/bin/sh
# Runs programs over MPICH on hosts behind links of 1 Gbit/s (network.sh): the same bits, and in long checks a
# link that goes down. Skipped without the rights to make network namespaces.
#   usage: tests/mpi/check_network.sh PROGRAM TRAINER
set -u
program=$1 trainer=$2 failed=0
network="sh $(dirname "$0")/network.sh"
complain() { echo "network: $*" >&2; failed=1; }

LIMIT=20 $network 2 true >/dev/null 2>&1 || {
    echo "skipped: cannot make network namespaces (needs root, and the package iproute2)"
    exit 77
}
one=$(MPIR_CVAR_NOLOCAL=0 timeout 60 mpiexec.mpich -np 1 "$program" 8 2>/dev/null | grep '^hash')
[ -n "$one" ] || complain "one process printed no hash"
for hosts in 2 3; do
    found=$(LIMIT=60 $network $hosts "$program" 8 2>&1)
    echo "$found" | grep -q "^$one$" || complain "$hosts hosts: $found, but one process: $one"
done

# Keepalive and TCP_USER_TIMEOUT notice the cut within half a minute.
if [ "${DITTO_STRESS_SECONDS:-6}" -gt 6 ]; then
    output=$(LINK_DOWN=2 LIMIT=90 $network 2 "$trainer" --replicas 2 --epochs 100000 2>&1)
    for host in 0 1; do
        echo "$output" | grep -q "DITTO_ERR_LOST: host $host .* is gone" ||
            complain "the link went down, and nobody lost host $host: $(echo "$output" | tail -n 5)"
    done
fi
exit $failed
