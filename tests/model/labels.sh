#!/bin/sh
# Checks the labels of protocols and prints what is missing.
#
# A header lists the labelled steps of its protocol in its "Edges" lines. Each label must be in a comment at
# the operation, in the code of the header or of its .c files (such as wait.c and pending_start.c), and in a
# comment at the step of a model. A header names its models in its "Model" line. If it has no such line, the
# model names the header in its first comment.
set -eu
cd "$(dirname "$0")"
src=../../src
operation='atomic_|dti_fence_|dti_stopped'
failed=0

complain() {
    echo "labels: $*" >&2
    failed=1
}

# steps FILE: prints the labels in its comments, except in the first comment, which describes the whole file.
# It prints "LABEL near" if an operation on shared memory is in the line of the label, in the line before, or
# in the next four lines. Otherwise it prints "LABEL far".
steps() {
    awk -v operation="$operation" '
        {
            line = $0
            code[NR] = ""
            while (line != "")
                if (inside) {
                    end = index(line, "*/")
                    text = end ? substr(line, 1, end - 1) : line
                    line = end ? substr(line, end + 2) : ""
                    if (nth > 1)
                        comment[NR] = comment[NR] " " text
                    inside = !end
                } else {
                    begin = index(line, "/*")
                    code[NR] = code[NR] (begin ? substr(line, 1, begin - 1) : line)
                    line = begin ? substr(line, begin + 2) : ""
                    nth += begin > 0
                    inside = begin > 0
                }
        }
        END {
            for (n in comment) {
                near = "far"
                for (k = n - 1; k <= n + 4; k++)
                    if (code[k] ~ operation)
                        near = "near"
                words = split(comment[n], word, /[^A-Za-z0-9_]+/)
                for (w = 1; w <= words; w++)
                    if (word[w] ~ /^[A-Z][0-9]$/)
                        print word[w], near
            }
        }' "$1" | sort -u
}

# edges HEADER: prints the labels of its Edges lines, which end at the next keyword
edges() {
    awk '/^ \* Edges? / { inside = 1; print; next } /^ \* [^ ]/ || /\*\// { inside = 0 } inside' "$1" |
        grep -o '\<[A-Z][0-9]\>' | sort -u
}

# check HEADER MODEL...: checks all labels of a header
check() {
    header=$1 name=${1#../../}
    shift
    # A protocol between hosts has no operations on common memory.
    ! grep -q '^ \* Edges  *none' "$header" || return 0
    code=$(for file in "$header" "${header%.h}.c" "${header%.h}"_*.c; do
        [ ! -f "$file" ] || steps "$file"
    done)
    modelled=$(for model in "$@"; do steps "$model"; done | cut -d ' ' -f 1)
    labels=$(edges "$header")
    [ -n "$labels" ] || complain "$name has a model and no labelled edges"
    for label in $labels; do
        echo "$code" | grep -q "^$label near" || complain "$name: no comment at an operation says $label"
        echo "$modelled" | grep -qx "$label" || complain "$name: no step of $* says $label"
    done
}

covered=
# shellcheck disable=SC2013 # paths in this tree have no spaces
for header in $(grep -rlE '^ \* Model .*\.pml' "$src" --include='*.h' | sort); do
    models=$(sed -n 's/^ \* Model //p' "$header" | grep -o '[a-z_]*\.pml' | tr '\n' ' ')
    for model in $models; do
        [ -f "$model" ] || complain "${header#../../} names $model, which is not there"
    done
    # shellcheck disable=SC2086 # a list of words
    check "$header" $models
    covered="$covered $models"
done
for model in *.pml; do
    case " $covered " in *" $model "*) continue ;; esac
    header=$src/$(sed -n '1,/\*\//s/.*(src\/\([a-z_/]*\.h\).*/\1/p' "$model" | head -n 1)
    if [ -f "$header" ]; then
        check "$header" "$model"
    else
        complain "$model: no header names it, and it names none"
    fi
done
[ $failed = 0 ] && echo "labels: every labelled step is in the code and in a model"
exit $failed
