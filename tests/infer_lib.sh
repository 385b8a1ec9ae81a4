# infer_lib.sh - sourced by tests of dnn-infer: a small trained network, volumes of several
# extents, comparison of directories.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
# shellcheck shell=bash

# make_model: train seg/model.dnn, which segments volumes of 8x8x8 into 3 classes; the samples
# are in blobs.bp
make_model() {
    cat > prepare.json << EOF
{"generate": {"type": "blobs3d", "samples": 12, "size": 8, "classes": 2, "noise": 0.05}, "to": "blobs.bp",
 "steps": [{"split": {"train": 0.7, "validation": 0.3}}, {"normalise": "channel"}]}
EOF
    cat > train.json << EOF
{"layers": {"zoo": "unet3d", "base": 4, "depth": 1, "classes": 3, "input": [8, 8, 8, 1]}, "seed": 5,
 "data": {"dataset": "blobs.bp", "batch_size": 4}, "num_epochs": 2, "loss": "cross_entropy",
 "optimizer": {"type": "Adam", "learning_rate": 0.01}}
EOF
    guarded dnn-prepare -q prepare.json && guarded dnn-train -q --kernels heuristic --set dir=seg train.json || exit 1
}

# make_volumes DIR SAMPLES EXTENT...: files of volumes in DIR, numbered from 0; masks in DIR-masks
make_volumes() {
    local dir=$1 samples=$2 size
    shift 2
    size=$(IFS=, && echo "$*")
    guarded dnn-prepare -q --generate blobs3d --set samples="$samples" --set size="$size" --set classes=2 \
        --set seed=7 --to "$dir.bp" || exit 1
    guarded dnn-prepare -q --export "$dir.export" "$dir.bp" || exit 1
    mv "$dir.export/input" "$dir"
    mv "$dir.export/target" "$dir-masks"
    rm -rf "$dir.export"
}

# differs A B: print how two directories of outputs differ; ADIOS2's files depend on the number of
# ranks
differs() { diff -r -q -x '*.bp' "$1" "$2"; }
