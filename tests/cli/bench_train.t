#!/bin/bash
# bench_train.t - dnn-bench train with the smallest sizes: its text and JSON output, without
# PyTorch and without mpiexec, and that it removes its files.  Speed is not tested.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
DNN_TORCH_SCRIPTS=$srcdir/src/bench/torch
mkdir "$tmp/tmp" "$tmp/empty"
export DNN_TORCH_SCRIPTS DNN_TORCH=python3 TMPDIR=$tmp/tmp
# Spinning threads would make these small runs slow on a busy machine.
export OMP_WAIT_POLICY=passive

bench() { guarded dnn-bench --quiet train --quick "$@"; }
keys() { grep -oE '"[a-z_]+":' | tr -d '":' | tr '\n' ' '; }
# has FILE PATTERN...: prints an error and the file if a pattern is not in it
has() {
    local file=$1 pattern
    shift
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file" || { echo "no $pattern in:"; cat "$file" "$tmp/err"; }
    done
}
# same WANTED: compares the keys of $tmp/json
same() {
    local got
    got=$(keys < "$tmp/json")
    [ "$got" = "$1" ] || { echo "$got"; cat "$tmp/err"; }
}
setup() { echo "$1 ranks threads samples_s total_samples_s median_samples_s median_total_samples_s ${2-}first_start_s start_s ${3-}"; }
n='[0-9.]+'

# ---- the U-Net ----

bench --part unet --keep "$tmp/kept" > "$tmp/text" 2> "$tmp/err"
result "the network and its data are printed" "$(has "$tmp/text" '^3D U-Net: base 4, depth 1; 8 training and 2 validation volumes of 16x16x16x1, batch 2; checkpoints, if any, every 2 steps$')"
result "on one rank and on two, deterministic or not, with checkpoints" "$(has "$tmp/text" \
    "^  dnn-train +1 rank x 2 threads +$n +$n +- +$n s +-$" "^  dnn-train +2 ranks x 1 thread +$n +$n +$n % +$n s +-$" \
    "^  dnn-train, deterministic +1 rank x 2 threads +$n" "^  dnn-train, deterministic +2 ranks x 1 thread +$n" \
    "^  dnn-train, checkpoints +2 ranks x 1 thread +$n")"
result "results and targets at the end" "$(tail -n 5 "$tmp/text" > "$tmp/last"; has "$tmp/last" \
    "^dnn-train, 2 ranks x 1 thread / dnn-train, 1 rank x 2 threads: $n, by medians $n \(target: at least 0.97\)$" \
    "^exposed communication of 2 ranks, share of the step \(besides, waiting for a straggler: $n %\): $n % \(target: at most 3 %\)$" \
    "^dnn-train, deterministic, 1 rank x 2 threads / dnn-train, 1 rank x 2 threads: $n, by medians $n \(target: at least 0.9\)$" \
    "^dnn-train, deterministic, 2 ranks x 1 thread / dnn-train, 2 ranks x 1 thread: $n, by medians $n \(target: at least 0.9\)$" \
    "^one checkpoint per minute \(it delays steps by -?$n s\), share of the time: -?$n % \(target: at most 1 %\)$")"
result "only the selected part is measured" "$(grep -E 'simplecnn|PyTorch' "$tmp/text")"
result "configuration and runs are kept" "$(
    cd "$tmp/kept/unet" || exit
    for f in config.json net.json data.bp run-one/metrics.csv run-ranks/metrics.csv; do
        [ -e $f ] || echo "no $f"
    done
    rows=$(wc -l < run-one/metrics.csv)
    [ "$rows" = 4 ] || echo "$rows lines in metrics.csv"
    saved=$(find run-checkpoints/checkpoints -name 'ckpt-*.bp' | wc -l)
    [ "$saved" = 3 ] || echo "$saved checkpoints"
    once=$(find run-one/checkpoints -name 'ckpt-*.bp' | wc -l)
    [ "$once" = 1 ] || echo "$once checkpoints without any"
)"

# ---- the CNN, without PyTorch, without ranks ----

status=0
DNN_TORCH_SCRIPTS=$tmp/empty bench --part cnn --against torch > "$tmp/text" 2> "$tmp/err" || status=$?
result "without PyTorch it prints the reason and continues" "$(
    [ "$status" = 0 ] || echo "status $status"
    has "$tmp/text" '^PyTorch is not measured: .*empty/torch_train.py \(DNN_TORCH_SCRIPTS\): ' \
        '^simplecnn: 256 training and 43 validation images of 28x28x1 \(generated\), batch 64$' \
        "^CNN: dnn-train, deterministic, 1 rank x 2 threads / dnn-train, 1 rank x 2 threads: $n, by medians $n \(target: at least 0.9\)$" \
        "^CNN: seconds from start to first step of the first run, with autotuning: $n \(target: at most 3\)$"
)"
status=0
bench --part cnn --launch "$tmp/no-mpiexec -x" --json > "$tmp/json" 2> "$tmp/err" || status=$?
result "without mpiexec the other setups are measured" "$(
    [ "$status" = 0 ] || { echo "status $status"; cat "$tmp/err"; }
    same "cnn samples batch $(setup one)$(setup one_deterministic)epochs reps ratio_deterministic_cnn ratio_deterministic_cnn_median start_s "
)"
result "all numbers are above 0" "$(
    grep -oE '"[a-z_]+": -?[0-9.e+-]+' "$tmp/json" | awk '!($2 > 0)'
    [ "$(wc -l < "$tmp/json")" = 1 ] || cat "$tmp/json"
)"
bench --part cnn --launch "$tmp/no-mpiexec -x" > "$tmp/text" 2> "$tmp/err"
result "and the reason is printed" "$(has "$tmp/text" '^several ranks are not measured: .*no-mpiexec: No such file or directory$')"
result "nothing is left in the temporary directory" "$(ls "$tmp/tmp")"

status=0
: > "$tmp/file"
bench --keep "$tmp/file/below" > /dev/null 2> "$tmp/err" || status=$?
result "a directory that cannot be made" "$(
    [ "$status" = 5 ] || echo "status $status"
    has "$tmp/err" '^dnn-bench: .*file.*: '
)"

# ---- against PyTorch ----

if python3 -c 'import torch, numpy' 2> /dev/null; then
    bench --part unet --against torch --compile 0 --json > "$tmp/json" 2> "$tmp/err"
    result "against PyTorch: keys" "$(same "unet samples batch $(setup one)$(setup ranks 'comm straggler ')$(setup one_deterministic)$(setup ranks_deterministic 'comm straggler ')$(setup checkpoints 'comm straggler ')$(setup torch_ranks '' 'format reader mode ')$(setup torch_one '' 'format reader mode ')torch torch_mkl epochs reps ratio_ranks ratio_ranks_median ratio_ddp ratio_ddp_median comm_share ratio_deterministic_one ratio_deterministic_one_median ratio_deterministic_ranks ratio_deterministic_ranks_median checkpoint_share ")"
    result "it is valid JSON" "$(python3 -m json.tool < "$tmp/json" 2>&1 > /dev/null)"
    result "no files are left after the comparison" "$(ls "$tmp/tmp")"
else
    for what in "against PyTorch: keys" "it is valid JSON" "no files are left after the comparison"; do
        skip "$what" "no PyTorch"
    done
fi
finish
