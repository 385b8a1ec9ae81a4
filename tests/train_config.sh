# train_config.sh - sourced by tests that train often: a small dataset and configuration.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
# shellcheck shell=bash

# make_config SAMPLES EPOCHS KEEP: write blobs.bp and train.json.  70 % of the samples are for
# training, in batches of four; a checkpoint every three steps.
make_config() {
    cat > prepare.json << EOF
{"generate": {"type": "blobs3d", "samples": $1, "size": 8, "classes": 2, "noise": 0.05},
 "to": "blobs.bp", "seed": 3, "steps": [{"split": {"train": 0.7, "validation": 0.3}}]}
EOF
    cat > train.json << EOF
{"layers": {"class_name": "Sequential", "config": {"name": "net", "layers": [
  {"class_name": "Conv3D", "config": {"name": "conv", "filters": 6, "kernel_size": [3, 3, 3], "padding": "same",
    "use_bias": false, "batch_input_shape": [null, 8, 8, 8, 1]}},
  {"class_name": "BatchNormalization", "config": {"name": "norm"}},
  {"class_name": "Activation", "config": {"name": "relu", "activation": "relu"}},
  {"class_name": "Dropout", "config": {"name": "drop", "rate": 0.2}},
  {"class_name": "Conv3D", "config": {"name": "out", "filters": 3, "kernel_size": [1, 1, 1], "activation": "softmax"}}]}},
 "data": {"dataset": "blobs.bp", "batch_size": 4, "test_batch_size": 3},
 "num_epochs": $2, "seed": 5, "loss": "cross_entropy", "optimizer": {"type": "Adam", "learning_rate": 0.01},
 "checkpoints": {"steps": 3, "keep": $3}, "telemetry": {"jsonl": true, "tensorboard": true},
 "deterministic": true}
EOF
    guarded dnn-prepare -q prepare.json || exit 1
}

# train_on DIR RANKS KEY=VALUE...: train with train.json; prints errors
train_on() {
    local dir=$1 n=$2 set=()
    shift 2
    for key in "$@"; do set+=(--set "$key"); done
    guarded "$MPIEXEC" -n "$n" dnn-train --set dir="$dir" "${set[@]}" train.json > output 2>&1 ||
        { echo "status $?"; cat output; }
}
