#!/bin/sh
# The labelled steps of a protocol - those of the "Edges" lines of its header - are named in comments: at the operation, in the
# header's own code or its .c files (wait.c, pending_start.c), and at the step of a model. A header names its models in its "Model" line; a model whose header
# has no such line names the header in its own first comment. Prints what is missing.
set -eu
cd "$(dirname "$0")"
src=../../src
operation='atomic_|dti_fence_|dti_stopped'
failed=0

complain() {
    echo "labels: $*" >&2
    failed=1
}

# steps FILE: the labels in its comments, but for the first comment, which is about the whole; each as "LABEL near" or "LABEL
# far", by whether an operation on shared memory stands within four lines below it, or in the line before
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

# edges HEADER: the labels of its Edges lines, up to the next word in the margin
edges() {
    awk '/^ \* Edges? / { inside = 1; print; next } /^ \* [^ ]/ || /\*\// { inside = 0 } inside' "$1" |
        grep -o '\<[A-Z][0-9]\>' | sort -u
}

# check HEADER MODEL...
check() {
    header=$1 name=${1#../../}
    shift
    code=$(for file in "$header" "${header%.h}.c" "${header%.h}"_*.c; do [ ! -f "$file" ] || steps "$file"; done)
    modelled=$(for model in "$@"; do steps "$model"; done | cut -d ' ' -f 1)
    labels=$(edges "$header")
    [ -n "$labels" ] || complain "$name has a model and no labelled edges"
    for label in $labels; do
        echo "$code" | grep -q "^$label near" || complain "$name: no comment at an operation says $label"
        echo "$modelled" | grep -qx "$label" || complain "$name: no step of $* says $label"
    done
}

covered=
# shellcheck disable=SC2013 # paths of this tree: no spaces
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
