#!/bin/sh
# Checks format, layering and public headers, and runs static analysis. `./run lint` calls it after
# configuring build/.
set -eu
cd "$(dirname "$0")/.."
failed=0
complain() { echo "lint: $*" >&2; failed=1; }

ours=$(git ls-files --cached --others --exclude-standard 'include/*.h' 'src/*.[ch]' 'tests/*.[ch]' \
    'bench/*.[ch]' 'examples/*.[ch]' 'tools/*.[ch]')

echo "lint: clang-format"
# shellcheck disable=SC2086 # a list of words
clang-format --dry-run -Werror $ours \
    $(git ls-files 'include/*.hpp' 'tests/cpp/*.cpp' 'bench/*.cpp' 'tests/embed/app/*.cpp' \
        'examples/ports/*.cpp') ||
    complain "clang-format: run clang-format -i on the files above"

echo "lint: public headers alone, as C11 and as C++17"
# ditto/mpi.h needs an MPI.
mpi=$(pkg-config --cflags ompi-c 2>/dev/null || pkg-config --cflags mpich 2>/dev/null || true)
mpi=$(echo "$mpi" | sed 's/-I/-isystem /g')
for header in $(git ls-files --cached --others --exclude-standard 'include/*.h'); do
    [ -n "$mpi" ] || [ "$header" != include/ditto/mpi.h ] || continue
    # shellcheck disable=SC2086 # a list of words
    gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude $mpi -fsyntax-only -x c "$header" \
        2>/dev/null ||
        complain "$header does not compile alone as C11"
    # shellcheck disable=SC2086
    g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude $mpi -fsyntax-only -x c++ "$header" \
        2>/dev/null ||
        complain "$header does not compile alone as C++17"
done

echo "lint: modules include what they may"
# module -> the modules whose headers it may include
may_include() {
    case $1 in
    base) echo base ;;
    replicas) echo base replicas ;;
    cluster) echo base cluster ;;
    sync) echo base replicas cluster sync ;;
    vars) echo base replicas cluster sync vars ;;
    input) echo base replicas cluster sync input ;;
    values) echo base replicas sync vars values ;;
    strategy) echo base replicas cluster sync vars input values strategy ;;
    coordinator) echo base replicas cluster sync vars input values strategy coordinator ;;
    mpi) echo mpi ;; # public headers only, because users compile it for other MPIs
    esac
}
# module -> its folders, from bottom to top. A folder includes only its own headers and those of folders
# before.
folders() { sed -n "s/^    $1: //p" docs/architecture.md; }
# module -> its headers that other modules may include (all of base)
shown_headers() {
    case $1 in
    replicas) echo helpers/crew.h helpers/remote_memory.h jobs/jobs.h jobs/pause.h jobs/team_life.h \
        machine/affinity.h machine/limits.h machine/mask.h machine/numa_node.h machine/thread.h \
        machine/topology.h memory/arena.h placement/placement.h team/context.h team/dependent.h \
        team/recorder.h team/replica.h team/servers.h team/stopping.h team/team.h team/turn.h ;;
    cluster) echo cluster.h function.h header.h life_line.h ranges.h ;;
    sync) echo sync.h grouping/grouping.h hosts/cross.h hosts/hosts.h kernels/kernel.h \
        kernels/local_reduction.h kernels/merge_rows.h kernels/tree.h meeting/access.h ;;
    vars) echo vars.h elements/elements.h ;;
    input) echo input.h dataset.h distribute/rebatch.h ;;
    values) echo values.h buffer_pool.h make_value.h reductions/reductions.h ;;
    strategy) echo strategy.h ;;
    esac
}
for file in $(git ls-files --cached --others --exclude-standard 'src/*.[ch]'); do
    module=$(echo "$file" | cut -d/ -f2)
    order=$(folders "$module")
    for included in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$file"); do
        target=$(echo "$included" | cut -d/ -f1)
        echo " $(may_include "$module") " | grep -q " $target " ||
            complain "$file: $module may not include $target ($included)"
        case $included in
        *_private.h) [ "$(dirname "$included")" = "$(dirname "${file#src/}")" ] ||
            complain "$file: $included is for the files of its own folder" ;;
        esac
        # The folders without the module's name. The module's own folder has only that.
        here=$(dirname "${file#src/}") && here=${here#"$module"/}
        there=$(dirname "$included") && there=${there#"$module"/}
        [ "$target" != "$module" ] || [ "$here" = "$there" ] ||
            echo " $order " | grep -qE " $there (.* )?$here " ||
            complain "$file: $here may not include $there. The order in $module is: $order"
        [ "$target" = "$module" ] || [ "$target" = base ] ||
            echo " $(shown_headers "$target") " | grep -q " ${included#*/} " ||
            complain "$file: $included is for $target alone. It shows $(shown_headers "$target")"
    done
done

echo "lint: internal headers alone"
alone="gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -Isrc -fsyntax-only -x c"
for header in $(git ls-files --cached --others --exclude-standard 'src/*.h' | grep -v '_of_type\.h$'); do
    $alone "$header" 2>/dev/null ||
        complain "$header does not compile alone: it must include what it uses"
done

echo "lint: labels of protocols are in the code and in models"
sh tests/model/labels.sh || complain "labels of protocols"

echo "lint: every tag stands for one thing"
for tag in $(git ls-files --cached --others --exclude-standard 'src/*.[ch]' |
    xargs sed -nE 's/^[^*]*\b(struct|enum|union) ([a-z_0-9]+) \{.*/\2/p' | sort | uniq -d); do
    complain "the tag $tag is defined twice under src/"
done

code=$(git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.hpp' '*.cpp' '*.cc' '*.f90' '*.pml' \
    '*.py' '*.sh' '*.in' '*meson.build' run)
pages=$(git ls-files --cached --others --exclude-standard '*.md')

echo "lint: dtypes are not ordered"
# A new dtype lies outside every range. Loops end at DTI_NUM_DTYPES, and dti_dtype_class_of says what it is.
dtypes=$(sed -n 's/^ *X(\(DITTO_[A-Z0-9]*\), [0-9]*, [0-9]*, ".*/\1/p' include/ditto/dtype.h | paste -sd '|')
[ -n "$dtypes" ] || complain "no dtypes were found in include/ditto/dtype.h"
# shellcheck disable=SC2086
for place in $(grep -nE "([<>]=?|%) ?($dtypes)\b|($dtypes) [-+]" $ours |
    cut -d: -f1,2); do
    complain "$place: takes dtypes by their numbers: use DTI_NUM_DTYPES or dti_dtype_class_of"
done

echo "lint: at most 110 columns"
# shellcheck disable=SC2086 # lists of words
wide=$(LC_ALL=C.UTF-8 awk 'length > 110 && !/https?:/ { print FILENAME ":" FNR }' $code)
# In pages, tables, blocks of code or output, and links to sections may be wider.
# shellcheck disable=SC2086
wide="$wide $(LC_ALL=C.UTF-8 awk 'FNR == 1 { block = 0 } /^ *```/ { block = !block }
    length > 110 && !block && !/^(\||    )/ && !/https?:|\]\(#/ { print FILENAME ":" FNR }' $pages)"
for place in $wide; do complain "$place has more than 110 columns"; done

echo "lint: rules that tests name are in docs/semantics.md"
stated=$(grep -oE '\([0-9]+\.[0-9]+(, [0-9]+\.[0-9]+)*\)' docs/semantics.md | tr -s '(), ' '\n')
# The names of tests have numbers such as rule_9_1 and rules_9_1_to_9_6, and comments have "rule 9.1" and
# "rules 9.1 to 9.6".
# shellcheck disable=SC2086
for rule in $(grep -ohE '\b[Rr]ules?[ _][0-9]+[._][0-9]+\w*((,| to| and) [0-9]+\.[0-9]+)*' $code |
    grep -oE '[0-9]+[._][0-9]+' | tr _ . | sort -u); do
    echo "$stated" | grep -qxF "$rule" || complain "docs/semantics.md has no rule ($rule)"
done

echo "lint: paragraphs of docs/semantics.md have at most 120 words"
long=$(awk '/^$|^[|#]|^- |^    / { words = 0 } /^[^|#]/ { words += NF }
    words > 120 { print FNR; words = 0 }' \
    docs/semantics.md)
for line in $long; do complain "docs/semantics.md:$line: a paragraph of more than 120 words ends here"; done

echo "lint: no declaration is torn"
# Lines that end in "=", or consist of a type and a name alone.
# shellcheck disable=SC2086
torn=$(grep -nE '^[a-z ].* =$|^ +([a-z]\w* )*[a-z]\w* \*?[a-z]\w*$|^ +\*?[a-z]\w*$' $ours |
    grep -vE ':[0-9]+: +(else|do|return|\*( .*)?)$' | cut -d: -f1,2 || true)
for place in $torn; do complain "$place: a declaration is torn"; done

echo "lint: pages that are made from the code"
python3 tools/file_table.py --check || complain "docs/architecture.md: run tools/file_table.py"
archives=build-check
if [ ! -e $archives/src/libditto.a ]; then
    archives=build
    ninja -C build src/libditto.a src/libditto-hdf5.a >/dev/null
fi
python3 tools/process_state.py $archives ||
    complain "docs/architecture.md: the table of process-wide state is wrong"

echo "lint: all pages are in the site"
for page in docs/*.md; do
    grep -q "^${page%.md}$" docs/site/index.md || complain "docs/site/index.md does not list $page"
done

echo "lint: the documentation of the public headers is complete"
warnings=$(doxygen tools/Doxyfile 2>&1)
[ -z "$warnings" ] || complain "doxygen: $warnings"

# sources: prints the sources of the library that have changed since the last commit that passed, and those
# that include changed headers, also through other headers. Prints all sources if that commit is not known, or
# if the rules have changed.
base=$(sh tools/last_green.sh)
sources() {
    if [ -z "$base" ] || ! git diff --quiet "$base" -- .clang-tidy tools/lint.sh; then
        git ls-files --cached --others --exclude-standard 'src/*.c'
        return
    fi
    found=$(git diff --name-only --diff-filter=d "$base" -- src include
        git ls-files --others --exclude-standard src include)
    before=
    while [ "$found" != "$before" ]; do
        before=$found
        included=$(echo "$found" | sed -n 's,^[a-z]*/\(.*\.h\)$,#include [<"]\1,p')
        found=$({ echo "$found"; [ -z "$included" ] || git grep -l -e "$included" -- src include; } | sort -u)
    done
    echo "$found" | grep '^src/.*\.c$' || true
}

echo "lint: the binary interface keeps what programs use"
sh tools/abi.sh || complain "the binary interface"

echo "lint: commits since main"
# In a clone of main there are none, so the last one is looked at.
for commit in $(git rev-list --no-merges "${base:-HEAD~1}..HEAD" 2>/dev/null); do
    subject=$(git log -1 --format=%s "$commit")
    [ "${#subject}" -le 72 ] || complain "the subject of $commit has more than 72 columns: $subject"
    echo "$subject" | grep -qE '^[a-z][a-z0-9_ /.-]*: .' ||
        complain "the subject of $commit has no area: $subject"
    [ -n "$(git log -1 --format=%b "$commit")" ] || complain "$commit says no reason: $subject"
done

echo "lint: packages"
python3 tests/tools/check_packages.py || complain "lists of packages differ"

echo "lint: cppcheck"
sources | xargs -r -n 8 -P "$(nproc)" cppcheck --quiet --std=c11 --enable=warning,performance,portability \
    --inline-suppr --error-exitcode=1 --suppress=missingIncludeSystem -Iinclude -Isrc || complain "cppcheck"

echo "lint: clang-tidy"
# Files that are compiled several times (for each instruction set, for tests) are checked once, and not as the
# schedules compile them. Options that only gcc knows are left out.
once=$(mktemp -d)
python3 - build/compile_commands.json >"$once/compile_commands.json" <<'PYTHON'
import json, re, sys
once = {entry["file"]: entry for entry in json.load(open(sys.argv[1]))
        if "tests/schedules" not in entry["output"]}.values()
for entry in once:
    entry["command"] = re.sub(r" '?-mmem(set|cpy)-strategy=\S+| -Wno-tsan| -Werror", "",
                              entry["command"])
print(json.dumps(list(once)))
PYTHON
# The C part of the Fortran module includes a header of the Fortran compiler, which clang does not find.
sources | grep -v '^src/fortran/' | xargs -r -n 1 -P "$(nproc)" \
    clang-tidy -p "$once" --quiet --warnings-as-errors='*' 2>/dev/null || complain "clang-tidy"
rm -rf "$once"

[ $failed = 0 ] && echo "lint: clean"
exit $failed
