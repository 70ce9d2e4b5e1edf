#!/bin/sh
# Runs all checks of CI. `./run check` calls it. Parts that test nothing that has changed since the last
# commit that passed (tools/last_green.sh) are skipped, and named at the end. Each part has a time budget in
# seconds, which is at least twice what the part takes on two cores after the parts before it. Only a part
# that hangs or has become much slower exceeds it.
#   --long  runs all parts, all trials of tests instead of a third, the stress tests for hours instead of
#           seconds, and the tests of the suite long
set -euf
cd "$(dirname "$0")/.."
[ "${1:-}" = --long ] && stress=3600 || stress=6
# --long gives each reader more mutated inputs, and a minute under libFuzzer.
[ "$stress" = 6 ] || export DITTO_FUZZ_EXECUTIONS=1000000
case ${1:-} in "" | --long) ;; *) echo "check: unknown word $1" >&2; exit 2 ;; esac

[ "$stress" = 6 ] || export DITTO_CHECK_BASE=none DITTO_TEST_LONG=yes
base=$(sh tools/last_green.sh)
# has_changed PATHS...: is true if one of them, or the check itself, has changed, or if the base is not known.
has_changed() {
    [ -z "$base" ] || ! git diff --quiet "$base" -- tools/check.sh tools/packages.sh "$@" ||
        [ -n "$(git ls-files --others --exclude-standard -- "$@")" ]
}

skipped=
# part BUDGET NAME PATHS COMMAND...: runs the command if one of the paths has changed, and prints its time.
# Fails if the command fails or exceeds the budget.
part() {
    budget=$1 name=$2 paths=$3; shift 3
    # shellcheck disable=SC2086 # a list of words
    has_changed $paths || { skipped="$skipped $name (unchanged);"; return 0; }
    begin=$(date +%s)
    echo "== $name"
    [ "$stress" = 6 ] || budget=$((budget + 20 * stress))
    timeout "$budget" "$@" || {
        code=$?
        [ $code != 77 ] || { echo "== $name: skipped"; skipped="$skipped $name;"; return 0; }
        echo "check: $name failed (exit $code; budget ${budget}s)" >&2
        exit 1
    }
    echo "== $name: $(($(date +%s) - begin)) s of $budget"
}

# build_in DIRECTORY [meson options]: configures and builds $targets, or everything. Warnings are errors.
targets=
build_in() {
    directory=$1; shift
    [ -f "$directory/build.ninja" ] ||
        meson setup "$directory" -Dwerror=true "$@" >"$directory.setup.log" 2>&1 ||
        { cat "$directory.setup.log"; return 1; }
    rm -f "$directory.setup.log"
    # shellcheck disable=SC2086 # a list of words
    ninja -C "$directory" $targets >"$directory/compile.log" 2>&1 ||
        { grep -v '^\[' "$directory/compile.log"; return 1; }
}
test_in() {
    directory=$1; shift
    DITTO_STRESS_SECONDS=$stress meson test -C "$directory" --no-rebuild --print-errorlogs \
        -t "$(( stress / 6 ))" --num-processes "$(( $(nproc) + 1 ))" "$@"
}
# The hosts of the tests on_hosts are processes, whose races the thread sanitizer does not see. tests/hosts
# plays hosts in one process. With --long they run under the sanitizers, too.
left_out="--no-suite numa --no-suite once"
[ "$stress" != 6 ] || left_out="$left_out --no-suite on_hosts --no-suite long"
run_sanitized() {
    directory=$1; shift
    build_in "$directory" -Dbench=false -Dbuildtype=debugoptimized -Db_lundef=false "$@"
    DITTO_FUZZ_EXECUTIONS=20000 DITTO_TEST_SHORT=yes test_in "$directory" $left_out
}

# hwloc's plugins find devices, which ditto does not use. Each strategy would load them again, which takes a
# quarter of the time of its creation.
export HWLOC_PLUGINS_PATH=$PWD/none
# meson compiles with ccache. Its hits do not depend on where this tree is.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=yes
export ASAN_OPTIONS=allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# The deadlock detector handles at most 64 locks, and jemalloc takes more than that at fork.
export TSAN_OPTIONS=allocator_may_return_null=1:detect_deadlocks=0:suppressions=$PWD/tests/tsan.supp

# Everything but pages, of which only three tests and the documentation are made.
code=". :!docs :!*.md"
case ${DITTO_CHECK_PART:-} in # `part` calls this script again for one part
plain)
    build_in build-check
    [ "$stress" != 6 ] && long='' || long='--no-suite long'
    tests='' # all, if they are not named
    # shellcheck disable=SC2086 # lists of words
    has_changed $code || tests="snippets pages ditto_info"
    # Many tests wait for time limits, and leave their CPU idle meanwhile.
    # shellcheck disable=SC2086
    test_in build-check --num-processes "$((2 * $(nproc)))" ${tests:-$long}
    # shellcheck disable=SC2086
    python3 tools/tests.py build-check not-run $tests
    python3 tests/tools/check_packages.py build-check
    exit
    ;;
clang)
    # The whole library, and the tests of what a compiler can change: arithmetic, and the order of accesses to
    # memory.
    tests="kernels all_reduce collectives pending queue waiting optimizer"
    targets="bench/ditto-bench $(printf 'tests/test_%s ' $tests)"
    # Also with the distribution's jemalloc, which another build does not use.
    archive=$(pkg-config --variable=libdir jemalloc)/libjemalloc_pic.a
    CC=clang build_in build-check-clang -Djemalloc_archive="$archive"
    # shellcheck disable=SC2086
    DITTO_TEST_SHORT=yes test_in build-check-clang $tests
    exit
    ;;
asan)
    run_sanitized build-check-asan -Db_sanitize=address,undefined
    exit
    ;;
tsan)
    left_out="$left_out --no-suite one_thread"
    run_sanitized build-check-tsan -Db_sanitize=thread
    exit
    ;;
esac

packaging="debian meson.build meson_options.txt include src/meson.build src/mpi src/fortran python run
    tools/meson.build tools/steps.sh tools/jemalloc.sh tools/cmake tools/docs.sh docs/site tests/embed"
pages="*.md docs include run tools/docs.sh tools/doxygen_xml.py tools/man_pages.py tests/docs"
part 600 "bare machine" "run tools meson.build meson_options.txt tests/embed" sh tests/embed/bare.sh first
part 1500 "plain build and tests" . env DITTO_CHECK_PART=plain sh "$0" "$@"
part 300 "clang build" "$code" env DITTO_CHECK_PART=clang sh "$0" "$@"
part 720 "address and undefined behaviour sanitizers" "$code" env DITTO_CHECK_PART=asan sh "$0" "$@"
part 840 "thread sanitizer" "$code" env DITTO_CHECK_PART=tsan sh "$0" "$@"
part 600 "lint" . ./run lint
part 260 "models" tests/model sh tests/model/check.sh
part 120 "install" "$packaging" sh tests/embed/install.sh build-check
part 240 "packages" "$packaging" sh tests/embed/packages.sh build-check
part 900 "Debian packages" "$packaging" sh tests/embed/bare.sh deb
part 1200 "bundle" "bench examples/command_line.c src/meson.build tools/meson.build tools/ditto_info.c
    tools/survey.c tools/bundle.sh meson.build meson_options.txt run tests/embed/bare.sh" \
    sh tests/embed/bare.sh bundle
part 120 "site and man pages" "$pages" ./run docs build-docs
part 480 "site in a browser" "$pages" /usr/bin/python3 tests/docs/site.py build-docs/html
part 300 "bench report in a browser" "bench docs/figures tests/docs" \
    /usr/bin/python3 tests/docs/bench_report.py
[ "$stress" = 6 ] || part 1200 "fuzzing" . sh tools/fuzz.sh 60
# Each scenario for a minute, with seeds that were not tried before (docs/reliability.md).
[ "$stress" = 6 ] || part 14400 "schedules" . build-check/tests/schedules/test_schedules --seconds 60 \
    --totals schedules.totals
echo "check: all parts passed${skipped:+, without these, which were skipped:$skipped}"
