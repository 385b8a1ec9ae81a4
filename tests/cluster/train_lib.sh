# train_lib.sh - sourced by tests that train on a private cluster: a small configuration, and
# checks of its log and checkpoints.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317  # for those who source this

# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"

# train_begin EPOCHS: start a cluster of one node, write train.json in $tmp and go there; $jobs is
# the directory of the batch scripts
train_begin() {
    cluster_begin --nodes 1
    jobs=$(cd "$srcdir/jobs" && pwd)
    cd "$tmp" || exit 1
    export XDG_CACHE_HOME=$tmp/cache
    guarded dnn-prepare --quiet --generate blobs3d --set samples=24 --set size=16 --set classes=2 \
        --split 0.75,0.25 --to blobs.bp || exit 1
    cat > train.json << EOF
{"layers": {"zoo": "unet3d", "base": 4, "depth": 1, "classes": 3, "input": [16, 16, 16, 1]},
 "data": {"dataset": "blobs.bp", "batch_size": 3}, "num_epochs": $1, "seed": 5, "loss": "cross_entropy",
 "checkpoints": {"interval": 20}, "deterministic": true}
EOF
}

# sums DIR: print checksums of the arrays of the newest checkpoint
sums() {
    dnn-train --verify "$(find "$1/checkpoints" -name 'ckpt-*.bp' | sort | tail -n 1)" |
        grep -v 'run/seconds\|run/bucket\|^checkpoint\|ckpt-'
}

# logged ID TEXT: prints an error if the log of the job has no such line
logged() {
    grep -q "$2" "$tmp/$1.out" || tail -n 20 "$tmp/$1.out"
}
