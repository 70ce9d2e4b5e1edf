#!/bin/sh
# Installs into a scratch directory and builds outside programs as a user would: cc app.c $(pkg-config ...), C and C++, shared
# and static.
set -eu
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
build=${1:-build}
[ -f "$build/build.ninja" ] || meson setup "$build" >/dev/null
ninja -C "$build" >/dev/null
DESTDIR=$scratch meson install -C "$build" --no-rebuild --quiet
pc=$(find "$scratch" -name ditto.pc)
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$scratch"
lib=$(find "$scratch" -name libditto.so)
lib=${lib%/*}
cat >"$scratch/app.c" <<'APP'
#include <ditto.h>
#include <stdio.h>

static ditto_status mean_square(ditto_replica *self, void *unused)
{
    double x = ditto_replica_id(self) + 1.0, y = x * x;
    (void)unused;
    DITTO_TRY(ditto_all_reduce(self, &y, &y, 1, DITTO_F64, DITTO_MEAN, NULL));
    if (ditto_replica_id(self) == 0)
        printf("mean square over %u replicas: %g\n", ditto_num_replicas(self), y);
    return DITTO_OK;
}

int main(void)
{
    ditto_strategy *strategy;
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    options.replicas = 2;
    if (ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) != DITTO_OK ||
        ditto_strategy_run(strategy, mean_square, NULL) != DITTO_OK)
        return fprintf(stderr, "%s\n", ditto_last_error()->message), 1;
    return ditto_strategy_destroy(strategy) == DITTO_OK ? 0 : 1;
}
APP
cp "$scratch/app.c" "$scratch/app.cpp"
zlib=$(sed -n 's/^Requires.private:.*zlib.*/-lz/p' "$pc") # pkg-config --static would bring what hwloc's plugins need, too
# shellcheck disable=SC2046 # lists of words
{
    gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers "$scratch/app.c" $(pkg-config --cflags --libs ditto) -o "$scratch/c"
    g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "$scratch/app.cpp" $(pkg-config --cflags --libs ditto) -o "$scratch/cpp"
    gcc -std=c11 "$scratch/app.c" $(pkg-config --cflags ditto) "$lib/libditto.a" -lhwloc -lnuma $zlib -lpthread -lm -o "$scratch/static"
}
for program in c cpp static; do
    echo "$program: $(LD_LIBRARY_PATH=$lib "$scratch/$program")"
done
[ -x "$(find "$scratch" -name ditto-info)" ] || { echo "ditto-info is not installed"; exit 1; }
readelf -d "$lib/libditto.so" | grep -q 'SONAME.*libditto.so.0' || { echo "no soname"; exit 1; }
# Beside ditto_* only what src/ditto.map names, for libraries that stand beside this one.
source=$(dirname "$0")/../../src
exported=$(nm -D --defined-only "$lib/libditto.so" | awk '{print $3}' | grep -v '^ditto_' |
    while read -r symbol; do grep -qw "$symbol" "$source/ditto.map" || echo "$symbol"; done)
[ -z "$exported" ] || { echo "exported, and neither ditto_* nor in src/ditto.map: $exported"; exit 1; }
if [ -f "$lib/libditto-hdf5.so" ]; then
    exported=$(nm -D --defined-only "$lib/libditto-hdf5.so" | awk '{print $3}' | grep -v '^ditto_checkpoint' || true)
    [ -z "$exported" ] || { echo "libditto-hdf5 exports beside ditto_checkpoint*: $exported"; exit 1; }
fi
