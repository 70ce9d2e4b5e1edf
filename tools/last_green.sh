#!/bin/sh
# Prints the last commit that passed all checks: DITTO_CHECK_BASE, or the commit of origin/main that this work
# began with. Prints nothing if it is not known, as in a new clone of main.
base=${DITTO_CHECK_BASE:-$(git merge-base origin/main HEAD 2>/dev/null)}
base=$(git rev-parse --verify --quiet "$base^{commit}")
[ "$base" = "$(git rev-parse HEAD)" ] || echo "$base"
