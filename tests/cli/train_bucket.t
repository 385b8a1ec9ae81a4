#!/bin/bash
# train_bucket.t - the gradient bucket size is autotuned in the first steps, once; with
# deterministic it changes no bit.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/train_config.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-bucket.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > prepare.json << EOF2
{"generate": {"type": "blobs3d", "samples": 27, "size": 8, "classes": 2, "noise": 0.3},
 "to": "blobs.bp", "seed": 3, "steps": [{"split": {"train": 1}}]}
EOF2
# 2.4 MB of gradients; an epoch has six full batches and a smaller one.
cat > train.json << EOF2
{"layers": [
  {"class_name": "Conv3D", "config": {"filters": 400, "kernel_size": 8, "activation": "relu"}},
  {"class_name": "Conv3DTranspose", "config": {"filters": 2, "kernel_size": 8}},
  {"class_name": "Conv3D", "config": {"filters": 3, "kernel_size": 1, "activation": "softmax"}}],
 "input": [8, 8, 8, 1],
 "data": {"dataset": "blobs.bp", "batch_size": 4},
 "num_epochs": 3, "seed": 5, "optimizer": {"type": "SGD", "learning_rate": 0.01},
 "loss": "cross_entropy", "checkpoints": {"interval": 0, "keep": 3}}
EOF2
guarded dnn-prepare -q prepare.json || exit 1

# sums DIR: checksums of the arrays of the newest checkpoint
sums() {
    dnn-train --verify "$(find "$1/checkpoints" -name 'ckpt-*.bp' | sort | tail -n 1)" |
        grep -v 'run/seconds\|run/bucket\|^checkpoint\|ckpt-'
}
# tuned N: autotuning was logged N times
tuned() {
    [ "$(grep -c '^train: gradient bucket size: .* (autotuned' output)" = "$1" ] || cat output
}

result "two ranks: it is autotuned and logged once" "$(train_on two 2; tuned 1)"
result "with the time for each size" "$(
    grep -Eq '^train: gradient bucket size: (1\.0 MiB|2\.3 MiB) \(autotuned; time per step: 1\.0 MiB: [0-9.e+]+ ms, 2\.3 MiB: [0-9.e+]+ ms\)$' output ||
        cat output)"
result "a resumed run does not autotune again" "$(train_on two 2 num_epochs=4; tuned 0)"
result "unless the number of ranks has changed" "$(train_on two 3 num_epochs=7; tuned 1)"
result "one rank: no autotuning" "$(
    train_on one 1 deterministic=true
    tuned 0
    sums one > want)"
result "parallel.bucket_size is used" "$(train_on given 2 parallel.bucket_size=500000; tuned 0)"
for n in 2 3; do
    result "$n ranks, deterministic: the same bits" "$(
        train_on "det$n" "$n" deterministic=true
        tuned 1
        sums "det$n" | diff want -)"
done
finish
