#!/bin/sh
# Checks that the library calls no function of the C library or of the compiler whose results differ between
# versions. sqrt, ceil, floor, trunc, ldexp, fabs and copysign are specified exactly, and are allowed. The
# object of jemalloc is not checked, because it uses such functions only for its sampling.
#   usage: no_libm.sh ARCHIVE
set -eu
functions='a?(cos|sin|tan)h?f?|atan2f?|sincosf?|exp(2|10|m1)?f?|log(2|10|1p)?f?|powf?|cbrtf?|hypotf?'
functions="$functions|erfc?f?|[lt]gammaf?|fmaf?|fmodf?|remainderf?|c(abs|arg|exp|log|pow|sqrt)f?"
functions="$functions|__(mul|div)[hsdxt]c3|__powi[sdxt]f2"
found=$(nm -A --undefined-only "$1" 2>/dev/null | awk '!/ditto_jemalloc.o/ { print $NF, $1 }' |
    grep -E "^($functions) " || true)
[ -z "$found" ] || { echo "not specified exactly: $found"; exit 1; }
nm "$1" 2>/dev/null | grep -q ' T ditto_random_normal_f64' || { echo "$1 is not the library"; exit 1; }
