#!/bin/bash
# fuzz_corpus.t - every file that the fuzzer of the importers has found is read or gives an
# error, without a crash.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp

mkdir "$tmp/corpus"
tar -xzf "$srcdir/tests/fuzz/import_corpus.tar.gz" -C "$tmp/corpus"
count=$(find "$tmp/corpus" -type f | wc -l)
result "the corpus has files" "$([ "$count" -gt 500 ] || echo "$count files")"
result "each file is read or gives an error" "$(
    status=0
    (ulimit -v $((16 << 20)) 2> /dev/null
        guarded "$top_builddir/tests/fuzz_importers" "$tmp"/corpus/*) > "$tmp/out" 2> "$tmp/err" || status=$?
    [ $status = 0 ] || { echo "status $status at:"; tail -n 2 "$tmp/err"; }
    [ "$(cat "$tmp/out")" = "$count files" ] || cat "$tmp/out"
)"
finish
