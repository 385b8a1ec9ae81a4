#!/bin/bash
# train_keys.t - keys and options of other systems: --config= FILE, short epochs, batch size per
# rank, all checkpoints kept, no fusion, algorithms for convolutions.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
srcdir=$(cd "$srcdir" && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-keys.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache
keys='"layers": {"zoo": "unet3d", "base": 2, "depth": 1, "classes": 2, "input": [8, 8, 8, 1]},
  "loss": "cross_entropy", "num_epochs": 2, "telemetry": {"pictures": 0, "report": false},
  "data": {"generate": {"type": "blobs3d", "samples": 8, "size": 8, "classes": 1}'
printf '{%s, "batch_size": 2}}\n' "$keys" > config.json
printf '{%s, "batch_size_per_rank": 2}}\n' "$keys" > each.json
printf '{"neural_network": {%s, "batch_size": 4}}}\n' "$keys" > rmldnn.json

# train RANKS ARGS...: prints errors
train() {
    local ranks=$1 how=() status=0
    shift
    [ "$ranks" = 1 ] || how=("$MPIEXEC" -n "$ranks")
    guarded "${how[@]}" dnn-train --kernels heuristic "$@" > out 2>&1 || status=$?
    [ "$status" = 0 ] || { echo "status $status"; cat out; }
}
# steps DIR: print the steps of its checkpoints
steps() { find "$1/checkpoints" -name 'ckpt-*.bp' | sed 's/.*ckpt-0*//; s/\.bp//' | sort -n | tr '\n' ' '; }
# has DIR STEPS: prints an error if there are other checkpoints
has() { [ "$(steps "$1")" = "$2 " ] || echo "checkpoints of $1: $(steps "$1")"; }

result "--config= FILE, all batches" "$(train 1 --config= config.json; has run-config "4 8")"
result "steps_per_epoch" "$(train 1 config.json --set steps_per_epoch=3 --set dir=short; has short "3 6")"
result "more steps than there are batches" "$(train 1 config.json --set steps_per_epoch=9 --set dir=long; has long "4 8")"
result "NNLO_SHORT_BATCHES, two ranks" "$(NNLO_SHORT_BATCHES=1 train 2 config.json --set dir=nnlo; has nnlo "1 2")"
result "short epochs have different samples" "$(
    train 1 config.json --set steps_per_epoch=1 --set data.batch_size=4 --set dir=a --set num_epochs=1
    train 1 config.json --set steps_per_epoch=1 --set data.batch_size=4 --set dir=a --set num_epochs=2
    has a "1 2"
    train 1 config.json --set steps_per_epoch=1 --set data.batch_size=4 --set dir=b
    has b "1 2"
    diff <(cut -d, -f 1-3 a/metrics.csv) <(cut -d, -f 1-3 b/metrics.csv))"
result "a batch size per rank, one rank" "$(train 1 each.json; has run-each "4 8")"
result "two ranks" "$(train 2 each.json --set dir=two; has two "2 4")"
result "learning_rate_scaling multiplies the rate by two" "$(
    train 2 each.json --set dir=twice --set learning_rate_scaling=true --set 'optimizer={"type": "SGD", "learning_rate": 0.25}'
    grep -q '"learning_rate": 0.5' twice/run.json || grep rate twice/run.json || echo "no learning rate in run.json")"
result "three checkpoints are kept" "$(train 1 config.json --set num_epochs=5 --set dir=few; has few "12 16 20")"
result "all of them with keys under neural_network" "$(train 1 rmldnn.json --set num_epochs=5; has run-rmldnn "2 4 6 8 10")"
result "unless checkpoints.keep is set" "$(
    train 1 rmldnn.json --set num_epochs=5 --set checkpoints.keep=2 --set dir=two-kept; has two-kept "8 10")"

# ---- fusion and kernels ----

explain() { guarded dnn-train --explain --kernels heuristic "$@" 2>&1; }
explain config.json > fused
explain config.json --set fuse=false > plain
result "without fusion there are more ops" "$(
    [ "$(wc -l < plain)" -gt "$(wc -l < fused)" ] || diff fused plain)"
result "and it trains" "$(train 1 config.json --set fuse=false --set dir=plain-run; has plain-run "4 8")"
unet=$srcdir/docs/examples/unet3d.json
for n in winograd:wino gemm:gemm i2c:gemm; do
    explain "$unet" --set "kernels.conv=${n%:*}" > output
    result "kernels.conv: ${n%:*}" "$(grep -q "conv.*${n#*:}" output || grep conv output)"
done
explain "$unet" --set kernels.conv=direct > output
result "kernels.conv: direct" "$(grep wino output)"
for n in gemm winograd direct onednn; do
    result "trained with $n" "$(train 1 config.json --set kernels.conv=$n --set "dir=$n"; has $n "4 8")"
done
result "an unknown algorithm" "$(
    guarded dnn-train --set kernels.conv=fft --set dir=fft config.json 2>&1 > /dev/null | tail -n 1 | diff - <(
        echo 'dnn-train: kernels.conv: must be one of gemm, winograd, direct, onednn, i2c, im2col, not "fft"'))"
finish
