#!/bin/bash
# bench_train.t - dnn-bench train with the least of everything: what it prints, for people
# and for programs, without PyTorch and without ranks, and that it leaves nothing behind.
# No speed is asserted.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
DNN_PEER_DIR=$srcdir/tests/peer
mkdir "$tmp/tmp" "$tmp/empty"
export DNN_PEER_DIR TMPDIR=$tmp/tmp

bench() { guarded dnn-bench --quiet train --quick "$@"; }
keys() { grep -oE '"[a-z_]+":' | tr -d '":' | tr '\n' ' '; }
# has FILE PATTERN...: complains with the file where a pattern is not in it
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
way() { echo "$1 ranks threads samples_s whole_samples_s median_samples_s median_whole_samples_s ${2-}first_start_s start_s ${3-}"; }
n='[0-9.]+'

# ---- the U-Net ----

bench --part unet --keep "$tmp/kept" > "$tmp/text" 2> "$tmp/err"
result "what is trained" "$(has "$tmp/text" '^3D U-Net: base 4, depth 1; 8 volumes of 16x16x16x1 to train and 2 to validate with, batch 2; checkpoints, if any, every 2 steps$')"
result "on one rank and on two, deterministic or not, with checkpoints" "$(has "$tmp/text" \
    "^  dnn-train +1 rank x 2 threads +$n +$n +- +$n s +-$" "^  dnn-train +2 ranks x 1 thread +$n +$n +$n % +$n s +-$" \
    "^  dnn-train, deterministic +1 rank x 2 threads +$n" "^  dnn-train, deterministic +2 ranks x 1 thread +$n" \
    "^  dnn-train, checkpoints +2 ranks x 1 thread +$n")"
result "what is wanted is said at the end" "$(tail -n 5 "$tmp/text" > "$tmp/last"; has "$tmp/last" \
    "^dnn-train, 2 ranks x 1 thread / dnn-train, 1 rank x 2 threads: $n, by medians $n \(wanted: at least 0.97\)$" \
    "^exposed communication of 2 ranks, share of the step \(besides, waiting for a later rank: $n %\): $n % \(wanted: at most 3 %\)$" \
    "^dnn-train, deterministic, 1 rank x 2 threads / dnn-train, 1 rank x 2 threads: $n, by medians $n \(wanted: at least 0.9\)$" \
    "^dnn-train, deterministic, 2 ranks x 1 thread / dnn-train, 2 ranks x 1 thread: $n, by medians $n \(wanted: at least 0.9\)$" \
    "^a checkpoint a minute \(one takes -?$n s of the steps\), share of the time: -?$n % \(wanted: at most 1 %\)$")"
result "the rest is not there" "$(grep -E 'simplecnn|PyTorch' "$tmp/text")"
result "job and runs are kept" "$(
    cd "$tmp/kept/unet" || exit
    for f in job.json net.json data.bp run-one/metrics.csv run-ranks/metrics.csv; do
        [ -e $f ] || echo "no $f"
    done
    rows=$(wc -l < run-one/metrics.csv)
    [ "$rows" = 4 ] || echo "$rows lines in metrics.csv"
    saved=$(find run-saves/checkpoints -name 'ckpt-*.bp' | wc -l)
    [ "$saved" = 3 ] || echo "$saved checkpoints"
    once=$(find run-one/checkpoints -name 'ckpt-*.bp' | wc -l)
    [ "$once" = 1 ] || echo "$once checkpoints without any"
)"

# ---- the CNN, and what is missing ----

status=0
DNN_PEER_DIR=$tmp/empty bench --part cnn --against torch > "$tmp/text" 2> "$tmp/err" || status=$?
result "without PyTorch it says why and goes on" "$(
    [ "$status" = 0 ] || echo "status $status"
    has "$tmp/text" '^PyTorch was not measured: .*empty/torch_train.py \(DNN_PEER_DIR\): ' \
        '^simplecnn: 256 images of 28x28x1 to train and 43 to validate with \(generated\), batch 64$' \
        "^CNN: dnn-train, deterministic, 1 rank x 2 threads / dnn-train, 1 rank x 2 threads: $n, by medians $n \(wanted: at least 0.9\)$" \
        "^seconds from start to first step, the first time, kernels are measured: $n \(wanted: at most 3\)$"
)"
status=0
bench --part cnn --launch "$tmp/no-mpiexec -x" --json > "$tmp/json" 2> "$tmp/err" || status=$?
result "without ranks the rest is measured" "$(
    [ "$status" = 0 ] || { echo "status $status"; cat "$tmp/err"; }
    same "cnn samples batch $(way one)$(way one_same)epochs reps ratio_same_cnn start_s "
)"
result "any number is above 0" "$(
    grep -oE '"[a-z_]+": -?[0-9.e+-]+' "$tmp/json" | awk '!($2 > 0)'
    [ "$(wc -l < "$tmp/json")" = 1 ] || cat "$tmp/json"
)"
bench --part cnn --launch "$tmp/no-mpiexec -x" > "$tmp/text" 2> "$tmp/err"
result "and the reason is printed" "$(has "$tmp/text" '^several ranks were not measured: .*no-mpiexec: No such file or directory$')"
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
    bench --part unet --against torch --json > "$tmp/json" 2> "$tmp/err"
    result "against PyTorch: keys" "$(same "unet samples batch $(way one)$(way ranks 'comm late ')$(way one_same)$(way ranks_same 'comm late ')$(way saves 'comm late ')$(way torch_ranks '' 'format reader ')$(way torch_one '' 'format reader ')epochs reps ratio_ranks ratio_ddp comm_share ratio_same_one ratio_same_ranks checkpoint_share ")"
    result "any JSON parser takes it" "$(python3 -m json.tool < "$tmp/json" 2>&1 > /dev/null)"
    result "nothing is left of it" "$(ls "$tmp/tmp")"
else
    for what in "against PyTorch: keys" "any JSON parser takes it" "nothing is left of it"; do
        skip "$what" "no PyTorch"
    done
fi
finish
