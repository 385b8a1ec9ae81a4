#!/bin/bash
# model_file.t - model.dnn as the network and as the initial weights of other runs; damaged files.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
keras=$(cd "$srcdir" && pwd)/tests/data/keras
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-model.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > prepare.json << EOF2
{"generate": {"type": "blobs3d", "samples": 12, "size": 8, "classes": 2, "noise": 0.05}, "to": "blobs.bp",
 "steps": [{"split": {"train": 0.7, "validation": 0.3}}, {"type": "u8"}, {"normalise": "channel"}]}
EOF2
guarded dnn-prepare -q prepare.json || exit 1
data='"data": {"dataset": "blobs.bp", "batch_size": 4, "test_batch_size": 4}'
common="$data, \"num_epochs\": 2, \"loss\": \"cross_entropy\""
cat > train.json << EOF2
{"layers": {"zoo": "unet3d", "base": 2, "depth": 1, "classes": 3, "input": [8, 8, 8, 1]},
 $common, "optimizer": {"type": "Adam", "learning_rate": 0.01}}
EOF2
# The rest does not change the weights, except for moving statistics.
still='"optimizer": {"type": "SGD", "learning_rate": 1e-30}'
cat > again.json << EOF2
{"layers": "one/model.dnn", $common, $still}
EOF2
# Keras has no such layer, and the shape of the input is in the configuration.
cat > deep.json << EOF2
{"layers": [{"class_name": "DepthwiseConv3D", "config": {"name": "deep", "kernel_size": [3, 3, 3], "padding": "same"}},
            {"class_name": "Conv3D", "config": {"name": "out", "filters": 3, "kernel_size": [1, 1, 1]}}],
 "input": [8, 8, 8, 1], $common, "optimizer": {"type": "Adam", "learning_rate": 0.01}}
EOF2
sed 's|"one/model.dnn"|"deep/model.dnn"|' again.json > deeper.json

# train STATUS CONFIG DIR ARGS...: prints errors; its output is in the file output
train() {
    local want=$1 job=$2 dir=$3 status=0
    shift 3
    guarded dnn-train --kernels heuristic --set dir="$dir" "$@" "$job" > output 2>&1 || status=$?
    [ "$status" = "$want" ] || { echo "status $status, not $want"; cat output; }
}
# prints TEXT...: the output contains each text
prints() {
    for text; do
        grep -qF -- "$text" output || { echo "no \"$text\" in"; cat output; }
    done
}
# flip FILE OFFSET TO: copy it with another byte at the offset (from the end, if it is negative)
flip() {
    local at=$2
    cp "$1" "$3"
    [ "$at" -ge 0 ] || at=$(($(stat -c %s "$1") + at))
    printf '\001' | dd of="$3" bs=1 seek="$at" conv=notrunc 2> dd.log || cat dd.log
}
# offset FILE TEXT: where it is
offset() { grep -obUaF -m 1 -- "$2" "$1" | head -n 1 | cut -d : -f 1; }

result "a run writes a model file" "$(
    train 0 train.json one
    prints 'one/model.keras, one/model.dnn'
    find one -name '.*' -o -name '*.part')"
result "it has inputs, classes, preparation, configuration and results" "$(
    head -c 60000 one/model.dnn | tr -d '\0' > description
    for text in '"format": "dnn-toolkit model"' '"shape": [8, 8, 8, 1]' '"kind": "mask"' '"classes": 3' \
        '"stored": "u8"' '{"normalise": "channel"}' '"inference": {"loss": ' '"num_epochs": 2' '"epochs": 2' \
        '"val_loss": ' '"hash": "'; do
        grep -qaF -- "$text" description || echo "no $text"
    done)"
result "as network and weights of another run: nothing else is needed" "$(
    train 0 again.json two --set checkpoints.load=one/model.dnn
    prints 'one/model.dnn: 34 of 34 weights, by name'
    guarded dnn-train --explain --weights two/model.dnn again.json > output 2>&1 || cat output
    prints 'two/model.dnn: 34 of 34 weights, by name' 'predictions (Conv3D)')"
result "the same weights as in model.weights.h5" "$(
    train 0 again.json three --set checkpoints.load=one/model.weights.h5
    cmp two/model.weights.h5 three/model.weights.h5)"
result "on two ranks" "$(
    guarded "$MPIEXEC" -n 2 dnn-train --kernels heuristic --set dir=four --set deterministic=true \
        --set checkpoints.load=one/model.dnn again.json > output 2>&1 || cat output
    prints 'one/model.dnn: 34 of 34 weights, by name')"
result "with another name" "$(
    cp one/model.dnn renamed.keras
    train 0 again.json five --set checkpoints.load=renamed.keras
    cmp two/model.weights.h5 five/model.weights.h5)"
result "the EMA is written" "$(
    train 0 train.json mean --set ema=0.9
    prints 'the saved weights are their exponential moving average (EMA)'
    train 0 again.json mean2 --set checkpoints.load=mean/model.dnn
    train 0 again.json mean3 --set checkpoints.load=mean/model.weights.h5
    cmp mean2/model.weights.h5 mean3/model.weights.h5)"
result "a network that Keras does not have, and whose shape is in the configuration" "$(
    train 0 deep.json deep
    prints 'model.keras is not written' 'deep/model.weights.h5, deep/model.dnn'
    train 0 deeper.json deeper --set checkpoints.load=deep/model.dnn
    prints 'deep/model.dnn: 4 of 4 weights, by name')"
result "in a directory whose name is not UTF-8" "$(
    latin=$'r\xe9sum'
    mkdir "$latin"
    cp -r blobs.bp deep.json "$latin"
    cd "$latin" || exit
    train 0 deep.json run
    prints 'run/model.weights.h5, run/model.dnn'
    grep -F -- "\"directory\": \"$tmp/r"$'\xef\xbf\xbdsum"' run/run.json > output || cat run/run.json
    guarded dnn-infer --output out run/model.dnn blobs.bp > output 2>&1 && echo "not refused"
    prints "$PWD/run/model.dnn: cannot be used, because the path is not UTF-8; rename its files and directories")"

# ---- errors ----

result "damaged weights" "$(
    flip one/model.dnn "$(($(offset one/model.dnn $'\x89HDF') + 5000))" bad.dnn
    train 4 again.json no --set checkpoints.load=bad.dnn
    prints 'dnn-train: bad.dnn: damaged: its checksum is ' '; model.weights.h5 in it: CRC error'
    cp bad.dnn bad.keras
    train 4 again.json no --set checkpoints.load=bad.keras
    prints 'dnn-train: bad.keras: damaged: ')"
result "a damaged network" "$(
    flip one/model.dnn "$(offset one/model.dnn '"class_name"')" bad.dnn
    train 4 again.json no --set layers=bad.dnn
    prints 'bad.dnn: network.json in it: CRC error')"
result "a truncated file" "$(
    head -c -1 one/model.dnn > bad.dnn
    train 4 again.json no --set layers=bad.dnn
    prints 'bad.dnn: truncated or damaged: it has '
    train 4 again.json no --set checkpoints.load=bad.dnn
    prints 'bad.dnn: truncated or damaged: it has ')"
result "a .keras file under another name" "$(
    cp "$keras/k3_auto_names.keras" bad.dnn
    train 4 again.json no --set checkpoints.load=bad.dnn
    prints 'bad.dnn: not a model file of dnn-toolkit, but another zip archive, such as a .keras file of Keras')"
result "weights of another network" "$(
    train 4 again.json no --set checkpoints.load=deep/model.dnn
    prints "dnn-train: deep/model.dnn: layer 'down1_1_conv': has 2 arrays in the file, 1 here" \
        'no other weight fits network')"
finish
