#!/bin/bash
# dataset.t - bpls and Python's ADIOS2 read a dataset.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
. "$srcdir/tests/tap.sh"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
make=$top_builddir/tests/peer/dataset_make

complaints=$("$make" "$dir/a.bp" 2>&1 > "$dir/hash")
result "a dataset is written" "$complaints"
hash=$(cat "$dir/hash")

bpls=
for name in bpls bpls.mpi; do
    if command -v $name > /dev/null; then
        bpls=$name
        break
    fi
done
if [ -z "$bpls" ]; then
    skip "bpls" "it is not installed"
else
    guarded $bpls -la "$dir/a.bp" > "$dir/list" 2> "$dir/words"
    missing=
    while read -r line; do
        sed 's/  */ /g; s/^ //' "$dir/list" | grep -qxF -- "$line" || missing+="no line: $line"$'\n'
    done << END
string dataset/format attr = "dnn-toolkit dataset"
string dataset/hash attr = "$hash"
string dataset/splits attr = "["train", "test"]"
int64_t dataset/version attr = 1
int64_t train/count attr = 23
int64_t train/chunk attr = 4
int64_t train/folds attr = 3
string train/columns attr = "["input", "mask", "target", "half", "affine"]"
string train/half/type attr = "f16"
string train/input/kind attr = "image"
string train/mask/role attr = "target"
uint8_t train/name {151} = 46 / 112
int32_t train/target {23} = 0 / 2
int32_t train/fold {23} = 0 / 2
END
    result "bpls shows it" "$missing$(cat "$dir/words")"
    got=$(guarded $bpls -d "$dir/a.bp" train/target -n 30 2>&1 | grep '^ *(' | sed 's/([^)]*)//' | tr -s ' \n' ' ')
    want=" 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0 1 "
    [ "$got" = "$want" ] && got=
    result "bpls shows the labels" "$got"
fi

if ! guarded python3 -c 'import numpy; from adios2.bindings import adios2_bindings_mpi' 2> /dev/null; then
    skip "Python reads it" "python3-adios2-mpi or python3-numpy is not installed"
else
    # Its TAP lines are printed unchanged, and count as one test.
    PYTHONDONTWRITEBYTECODE=1 guarded python3 "$srcdir/tests/peer/dataset_read.py" \
        "$dir/a.bp" "$hash" > "$dir/python" 2>&1
    status=$?
    sed 's/^/# /' "$dir/python"
    complaints=$(grep '^not ok' "$dir/python")
    [ $status -eq 0 ] || complaints+=$'\n'$(tail -5 "$dir/python")
    result "Python's ADIOS2 reads every value, name and attribute" "$complaints"
    if grep -q SKIP "$dir/python"; then
        skip "Python computes the checksums" "python3-xxhash is not installed"
    else
        result "Python computes the checksums" ""
    fi
fi
finish
