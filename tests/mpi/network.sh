#!/bin/sh
# Runs a program over MPICH on hosts that are network namespaces, behind links of 1 Gbit/s.
#   usage: tests/mpi/network.sh HOSTS COMMAND [ARGUMENTS]...
#   with PROGRAM as COMMAND, on all hosts: network.sh 2 build/bench/hosts-mpich 1048576
# Each host is a namespace with one end of a veth pair. The other ends are on a bridge in a namespace of its
# own, and both ends send at most 1 Gbit/s (tc tbf). It needs the rights of root, ip, tc and MPICH.
# LINK_DOWN=SECONDS takes the link of host 1 down after so many seconds.
set -eu
hosts=$1; shift
rate=${RATE:-1gbit}
name=ditto$$
clean_up() {
    for h in hub $(seq 0 $((hosts - 1))); do ip netns del "$name-$h" 2>/dev/null || true; done
}
trap clean_up EXIT INT TERM

ip netns add "$name-hub"
ip -n "$name-hub" link add hub type bridge
ip -n "$name-hub" link set hub up
run=
for h in $(seq 0 $((hosts - 1))); do
    ip netns add "$name-$h"
    ip -n "$name-$h" link set lo up
    ip link add name ditto0 netns "$name-$h" type veth peer name "port$h" netns "$name-hub"
    ip -n "$name-hub" link set "port$h" master hub up
    ip -n "$name-$h" addr add "10.77.0.$((h + 1))/24" dev ditto0
    ip -n "$name-$h" link set ditto0 up
    for end in "$name-$h ditto0" "$name-hub port$h"; do
        # shellcheck disable=SC2086 # two words
        set -- $end "$@"
        tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 256kb latency 100ms
        shift 2
    done
    run="$run${run:+ : }-n 1 ip netns exec $name-$h $*"
done
if [ -n "${LINK_DOWN:-}" ]; then
    (sleep "$LINK_DOWN"; ip -n "$name-hub" link set port1 down) &
fi
# The hosts share a machine, which MPICH and UCX must not notice.
export MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self UCX_NET_DEVICES=ditto0 DITTO_PART=off
export UCX_LOG_LEVEL="${UCX_LOG_LEVEL:-error}"
# shellcheck disable=SC2086 # a list of words
timeout "${LIMIT:-120}" mpiexec.mpich $run
