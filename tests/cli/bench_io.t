#!/bin/bash
# bench_io.t - dnn-bench io with tiny datasets: its text and JSON output, and that it removes
# its files.  Speed is not tested.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
DNN_TORCH_SCRIPTS=$srcdir/src/bench/torch
export DNN_TORCH_SCRIPTS DNN_TORCH=python3 TMPDIR=$tmp
tiny=(--volumes 5 --extent 9 --images 37 --pixels 8 --image-batch 10 --reps 1 --compute 0.001)

bench() { guarded dnn-bench --quiet io "$@"; }
keys() { grep -oE '"[a-z_]+":' | tr -d '":' | tr '\n' ' '; }
# has FILE PATTERN...: prints an error and the file if a pattern is not in it
has() {
    local file=$1 pattern
    shift
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file" || { echo "no $pattern in:"; cat "$file" "$tmp/err"; }
    done
}
left() { find "$tmp" -name 'dnn-bench-*'; }
number() { grep -oE "\"$1\": [0-9.e+-]+" | head -n 1 | sed 's/.*: //'; }

bench "${tiny[@]}" > "$tmp/text" 2> "$tmp/err"
result "volumes and images" "$(has "$tmp/text" '^volumes$' '^images$' \
    '^  data  *5 samples of 9x9x9x1, 3.6 KiB each' '^  data  *37 samples of 8x8x3, 196 B each')"
result "batch size, threads and memory are printed" "$(has "$tmp/text" '^  batch  *10, 2 threads, [0-9.]+ .*B of memory$' \
    '^  compute  *1 ms per batch: --compute$')"
result "utilisation and speed" "$(has "$tmp/text" '^  utilisation  *[0-9.]+ % of the time' \
    '^  speed  *[0-9.]+ GB/s as stored; converted to f32 [0-9]+ samples/s, [0-9.]+ GB/s in batches; median of 1$' \
    '^  plain read  *[0-9.]+ GB/s; as stored we read [0-9.]+ times as fast$')"
result "nothing is left in the temporary directory" "$(left)"

bench "${tiny[@]:0:10}" --dir "$tmp/there" > "$tmp/text" 2> "$tmp/err"
result "the default compute time is that of MLPerf Storage" "$(has "$tmp/text" "compute .*MLPerf Storage's 3D U-Net" \
    "compute  *5.6 ms per batch: .*MLPerf Storage's ResNet50")"
result "an existing --dir is kept, empty" "$(
    [ -d "$tmp/there" ] || echo "it is gone"
    ls "$tmp/there"
)"

base="volumes samples bytes batch memory compute_s utilisation read_gbs batch_gbs plain_gbs ratio_plain samples_s "
images="images samples bytes batch memory compute_s utilisation read_gbs batch_gbs plain_gbs ratio_plain samples_s "
bench "${tiny[@]}" --threads 1 --cold --json > "$tmp/json" 2> "$tmp/err"
result "one line of JSON with its keys in order" "$(
    [ "$(wc -l < "$tmp/json")" = 1 ] || cat "$tmp/json" "$tmp/err"
    got=$(keys < "$tmp/json")
    want="${base}${images}threads still_cached "
    [ "$got" = "$want" ] || echo "$got"
)"
for key in utilisation read_gbs batch_gbs plain_gbs ratio_plain samples_s memory; do
    result "$key is above 0" "$(
        x=$(number "$key" < "$tmp/json")
        awk -v x="$x" 'BEGIN { exit !(x > 0) }' || echo "$key: $x"
    )"
done
if command -v python3 > /dev/null; then
    result "it is valid JSON" "$(python3 -m json.tool < "$tmp/json" 2>&1 > /dev/null)"
else
    skip "it is valid JSON" "no python3"
fi

status=0
: > "$tmp/file"
bench "${tiny[@]}" --dir "$tmp/file/below" > /dev/null 2> "$tmp/err" || status=$?
result "a directory that cannot be made" "$(
    [ "$status" = 5 ] || echo "status $status"
    has "$tmp/err" "^dnn-bench: .*file.*: "
)"

# ---- against PyTorch ----

mkdir "$tmp/empty"
status=0
DNN_TORCH_SCRIPTS=$tmp/empty bench "${tiny[@]}" --against torch > /dev/null 2> "$tmp/err" || status=$?
result "without the script, the message has the directories searched" "$(
    [ "$status" = 5 ] || echo "status $status"
    has "$tmp/err" 'empty/torch_io.py \(DNN_TORCH_SCRIPTS\)'
)"
result "and no files are left" "$(left)"
if python3 -c 'import torch, numpy' 2> /dev/null; then
    bench "${tiny[@]}" --against torch --json > "$tmp/json" 2> "$tmp/err"
    png=
    python3 -c 'import PIL.Image' 2> /dev/null && png="torch_png_samples_s ratio_png "
    result "against PyTorch: keys" "$(
        got=$(keys < "$tmp/json")
        want="${base}${images}torch_npy_samples_s ratio_npy ${png}torch threads "
        [ "$got" = "$want" ] || { echo "$got"; cat "$tmp/err"; }
    )"
    result "no files are left after the comparison" "$(left)"
else
    skip "against PyTorch: keys" "no PyTorch"
    skip "no files are left after the comparison" "no PyTorch"
fi
finish
