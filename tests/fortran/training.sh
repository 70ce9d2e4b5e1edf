#!/bin/sh
# tests/fortran/training.sh - runs test_training with an empty folder for its files.
#     training.sh TEST_TRAINING
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
"$1" "$folder"
