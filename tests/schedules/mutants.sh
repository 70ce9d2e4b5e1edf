#!/bin/sh
# Breaks ditto in many ways, one after the other (mutants/*/*.patch), and fails unless schedules find each of
# them within a minute. The second line of a patch names the scenario, and a seed that has found it. If the
# code has changed so that this seed does not find it any more, others are tried.
#     mutants.sh [PATCH ...]
set -eu
cd "$(dirname "$0")/../.."
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git ls-files --cached --others --exclude-standard -z | tar -c --null -T - -f - | tar -x -C "$tree" -f -
[ $# != 0 ] || set -- tests/schedules/mutants/*/*.patch
cd "$tree"
meson setup build -Dbench=false >setup.log 2>&1 || { cat setup.log; exit 1; }

survivors=
for patch; do
    name=$(basename "$patch" .patch)
    scenario=$(sed -n '2s/scenario \(.*\) seed .*/\1/p' "$patch")
    seed=$(sed -n '2s/.* seed //p' "$patch")
    git apply "$patch"
    ninja -C build tests/schedules/test_schedules >ninja.log 2>&1 || { tail -20 ninja.log; exit 1; }
    program="build/tests/schedules/test_schedules --scenario $scenario"
    begin=$(date +%s)
    # shellcheck disable=SC2086 # a list of words
    if $program --seed "$seed" --count 1 >found.log; then
        $program --seconds 60 >found.log || true
    fi
    found=$(sed -n 's/^[a-z_]*: \(seed [0-9]*: .\{1,50\}\).*/\1/p' found.log | head -1)
    printf '%-30s %s, %d s\n' "$name" "$found" "$(($(date +%s) - begin))"
    # Anything else is no fault that was found, such as a scenario that has another name now.
    [ -n "$found" ] || survivors="$survivors $name"
    git apply -R "$patch"
done
[ -z "$survivors" ] || { echo "mutants: not found:$survivors" >&2; exit 1; }
