#!/bin/sh
# Ports examples that use the old public names, with tools/renames.sed alone. Builds them and runs some.
#   usage: renames.sh SOURCE BUILD CC...
set -eu
source=$1 build=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
tar -xzf "$source/tests/renames/examples.tar.gz" -C "$folder"
sed -i -f "$source/tools/renames.sed" "$folder"/*.c "$folder"/*.h

compile() { # compile PROGRAM FILES AND FLAGS...
    program=$1
    shift
    (cd "$folder" && "$@" -o "$program" -lditto -lm -lpthread)
}

set -- "$@" -std=c11 -Wall -Wextra -Werror -Wno-unknown-pragmas -D_GNU_SOURCE -I "$source/include" \
    -L "$build/src" "-Wl,-rpath,$build/src"
for lesson in 01_hello 02_all_reduce 03_variables 04_dataset 06_merge_call 07_embedding \
    08_conjugate_gradients 10_input; do
    compile $lesson "$@" $lesson.c lesson.c
done
compile 05_training "$@" 05_training.c lesson.c network.c
compile train_digits "$@" train_digits.c network.c
if [ -e "$build/src/libditto-hdf5.so" ]; then
    compile 09_optimizer "$@" 09_optimizer.c lesson.c -lditto-hdf5
    compile train_digits_hdf5 "$@" -DWITH_CHECKPOINTS train_digits.c network.c -lditto-hdf5
fi

cd "$source"
for lesson in 01_hello 02_all_reduce 04_dataset 05_training; do
    "$folder/$lesson" 2 >"$folder/output" || { cat "$folder/output"; exit 1; }
done
