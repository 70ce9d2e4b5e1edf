#!/bin/sh
# Runs simulated.c on networks of 2 to 64 hosts, or of the given numbers (at most 256), and prints a table.
# Each line has the best of three sets of algorithms for MPI_Allreduce (of MPICH, Open MPI and MVAPICH2).
#     bench/simulated/run.sh [HOSTS...]
# MOST_BYTES limits the size of messages: 256 hosts with all sizes take hours.
# It needs SimGrid (Debian: libsimgrid-dev), and libditto in build/ (./run build).
set -eu
cd "$(dirname "$0")/../.."
command -v smpicc >/dev/null || { echo "simulated: SimGrid is missing (Debian: libsimgrid-dev)" >&2; exit 1; }
[ $# -gt 0 ] || set -- 2 3 4 8 16 32 64
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM

flags="-std=c11 -O2 -D_GNU_SOURCE -Iinclude -Isrc"
# shellcheck disable=SC2086 # a list of words
{
    smpicc $flags -include bench/simulated/gaps.h -c src/mpi/mpi_wire.c -o "$folder/wire.o"
    smpicc $flags bench/simulated/simulated.c src/sync/plans/volume.c src/sync/kernels/tree.c \
        src/cluster/ranges.c "$folder/wire.o" -o "$folder/simulated" -Lbuild/src -lditto
}

# A fat tree of 16 x 16 hosts with links of 100 Gbit/s and 0.5 us. Each message takes 0.3 us of the processor
# that sends it, and of the one that receives it (smpi/os, ois, or). A test of a message takes 10 ns, as with
# MPICH in shared memory (MPI_Testsome of 64 receives: 0.6 us; Open MPI: 0.07 us).
cat >"$folder/platform.xml" <<'XML'
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node" suffix="" radical="0-255" speed="10Gf" bw="12.5GBps" lat="500ns"
           topology="FAT_TREE" topo_parameters="2;16,16;1,16;1,1" loopback_bw="20GBps" loopback_lat="100ns"/>
</platform>
XML
seq 0 255 | sed 's/^/node/' >"$folder/hosts"

# Each host is a thread, because ditto has variables of threads. libditto is loaded beforehand: the space for
# such variables is used up when SimGrid loads the program. One CPU is enough, because one host works at a
# time.
simulate() { # HOSTS SELECTOR WORDS
    LD_PRELOAD=build/src/libditto.so taskset -c 0 smpirun -np "$1" -platform "$folder/platform.xml" \
        -hostfile "$folder/hosts" --cfg=contexts/factory:thread --cfg=contexts/stack-size:256 \
        --cfg=smpi/simulate-computation:no --cfg=smpi/test:1e-8 --cfg=smpi/grow-injected-times:no \
        --cfg=smpi/os:0:3e-7:0 --cfg=smpi/ois:0:3e-7:0 --cfg=smpi/or:0:3e-7:0 \
        --cfg="smpi/coll-selector:$2" --log=root.thres:error \
        "$folder/simulated" "${MOST_BYTES:-8388608}" ${3:+"$3"} | grep '^[0-9]*,'
}

echo "hosts,bytes,messages,predicted,sent bytes,predicted,ditto us,MPI us"
for hosts in "$@"; do
    {
        simulate "$hosts" mpich ""
        simulate "$hosts" ompi mpi
        simulate "$hosts" mvapich2 mpi
    } | awk -F, -v OFS=, '!($2 in best) { best[$2] = $8; row[$2] = $0; size[++sizes] = $2 }
        $8 < best[$2] { best[$2] = $8 }
        END { for (i = 1; i <= sizes; i++) { $0 = row[size[i]]; $8 = best[size[i]]; print } }'
done
