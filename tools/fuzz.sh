#!/bin/sh
# Runs each fuzz target for SECONDS under libFuzzer, with address and undefined behaviour sanitizers. Then
# prints the number of inputs that were tried, and the percentage of the reader's lines that they reached.
#   usage: tools/fuzz.sh SECONDS [target...]
set -eu
cd "$(dirname "$0")/.."
seconds=$1; shift
[ $# -gt 0 ] || set -- placement csv tfrecord fixed npy headers life_line state hdf5
for tool in clang llvm-profdata llvm-cov; do
    command -v $tool >/dev/null || { echo "fuzz: $tool is missing (Debian: clang, llvm)" >&2; exit 1; }
done
folder=build-fuzz
[ -f $folder/build.ninja ] ||
    CC=clang CXX=clang++ meson setup $folder -Dbench=false -Dfuzzer=true -Dbuildtype=debugoptimized \
        -Db_lundef=false -Db_sanitize=address,undefined \
        -Dc_args='-fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping' \
        -Dc_link_args='-fprofile-instr-generate' >$folder.setup.log
rm -f $folder.setup.log
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# The source files that a target tests.
files_of() {
    case $1 in
    placement) echo src/replicas/placement/placement_text.c ;;
    csv)
        echo src/input/sources/text/csv.c src/input/sources/text/csv_field.c \
            src/input/sources/text/text_lines.c
        ;;
    tfrecord)
        echo src/input/sources/records/tfrecord.c src/input/sources/records/tfrecord_plain.c \
            src/input/sources/records/tfrecord_packed.c src/input/sources/files/gzip.c
        ;;
    fixed) echo src/input/sources/records/fixed.c ;;
    npy) echo src/input/sources/records/npy.c src/input/sources/records/npy_header.c ;;
    headers) echo src/cluster/header.c src/cluster/header_steps.c src/cluster/last_words.c ;;
    life_line) echo src/cluster/life_line.c ;;
    state) echo src/input/sources/files/file_row.c src/input/transforms/*.c ;;
    hdf5) echo src/vars/checkpoint/hdf5/hdf5_read.c ;;
    esac
}

for target in "$@"; do
    ninja -C $folder tests/fuzz/fuzz_"$target" tests/fuzz/libfuzzer_"$target" >/dev/null
    corpus=$folder/corpus-$target
    mkdir -p "$corpus"
    LLVM_PROFILE_FILE=/dev/null $folder/tests/fuzz/fuzz_"$target" --write-seeds "$corpus"
    LLVM_PROFILE_FILE=$folder/$target.profraw $folder/tests/fuzz/libfuzzer_"$target" \
        -max_total_time="$seconds" -max_len=4096 -timeout=20 \
        -artifact_prefix=$folder/ "$corpus" >$folder/"$target".log 2>&1 ||
        { tail -n 30 $folder/"$target".log; echo "fuzz: $target: see $folder/$target.log" >&2; exit 1; }
    llvm-profdata merge -o $folder/"$target".profdata $folder/"$target".profraw
    summary='s/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 executions in \2 s, nothing found/p'
    echo "$target: $(sed -n "$summary" $folder/"$target".log)"
    llvm-cov report $folder/tests/fuzz/libfuzzer_"$target" -instr-profile=$folder/"$target".profdata |
        awk -v files="$(files_of "$target")" 'BEGIN { n = split(files, file) }
            { for (i = 1; i <= n; i++) if ($1 == file[i]) printf "  %-40s %s of its lines\n", $1, $10 }'
done
