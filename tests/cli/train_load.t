#!/bin/bash
# train_load.t - checkpoints.load with checkpoints, Keras files, and the files of a trained
# network.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
keras=$(cd "$srcdir" && pwd)/tests/data/keras
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-load.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

# 12 images of 8 x 8 and three numbers for each, as bytes
seq 1000 1999 | head -c 768 > x.raw
seq 1 99 | head -c 36 > y.raw
cat > prepare.json << EOF2
{"from": {"input_path": "x.raw", "input_format": "raw", "input_shape": [8, 8, 1], "input_kind": "image",
          "input_layout": "last", "target_path": "y.raw", "target_format": "raw", "target_shape": [3],
          "target_kind": "values"}, "to": "data.bp"}
EOF2
guarded dnn-prepare -q prepare.json || exit 1
# With this learning rate weights do not change, but moving statistics do.
data='"data": {"dataset": "data.bp", "split": "all", "validation": "all", "batch_size": 4, "test_batch_size": 12}'
still='"optimizer": {"type": "SGD", "learning_rate": 1e-30}'
cat > dense.json << EOF2
{"layers": [{"class_name": "Flatten", "config": {"name": "flat"}},
            {"class_name": "Dense", "config": {"name": "hidden", "units": 6, "activation": "tanh"}},
            {"class_name": "Dense", "config": {"name": "out", "units": 3}}],
 "input": [8, 8, 1], $data, "num_epochs": 2, "optimizer": {"type": "Adam", "learning_rate": 0.01}}
EOF2
cat > taken.json << EOF2
{"layers": "one/model.json", "input": [8, 8, 1], $data, $still}
EOF2
cat > keras.json << EOF2
{"layers": "$keras/k3_auto_names.json", $data, $still}
EOF2
cat > wide.json << EOF2
{"layers": [{"class_name": "Flatten", "config": {"name": "flat"}},
            {"class_name": "Dense", "config": {"name": "hidden", "units": 6, "activation": "tanh"}},
            {"class_name": "Dense", "config": {"name": "more", "units": 5, "activation": "tanh"}},
            {"class_name": "Dense", "config": {"name": "out", "units": 3}}],
 "input": [8, 8, 1], $data, $still}
EOF2

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
# last DIR: loss and metrics of the validation after the last epoch
last() { tail -n 1 "$1/metrics.csv" | cut -d , -f "$(head -n 1 "$1/metrics.csv" | tr , '\n' | grep -n '^val_loss' | cut -d : -f 1)"-; }

result "a network is trained" "$(train 0 dense.json one; prints 'saved the network: one/model.json, one/model.weights.h5, one/model.keras, one/model.dnn')"
result "another run with its two files has the same metrics" "$(
    train 0 taken.json two --set checkpoints.load=one/model.weights.h5
    prints 'weights: one/model.weights.h5: 4 of 4 weights, by name'
    [ "$(last one)" = "$(last two)" ] || { last one; last two; }
    cmp one/model.weights.h5 two/model.weights.h5)"
result "from the directory of a run: its newest checkpoint" "$(
    train 0 taken.json three --set checkpoints.load=one
    prints 'one/checkpoints/ckpt-000000006.bp: 4 of 4 weights, by name'
    cmp one/model.weights.h5 three/model.weights.h5)"
result "from a checkpoint, the best, and one by its step" "$(
    train 0 taken.json four --set checkpoints.load=one/checkpoints/ckpt-000000006.bp
    cmp one/model.weights.h5 four/model.weights.h5
    train 0 taken.json five --set checkpoints.load=one/checkpoints/best
    prints "one/checkpoints/$(readlink one/checkpoints/best.bp): 4 of 4 weights"
    train 0 taken.json six --set checkpoints.load=one/3
    prints 'one/checkpoints/ckpt-000000003.bp: 4 of 4 weights')"
result "two ranks have the same" "$(
    guarded "$MPIEXEC" -n 2 dnn-train --kernels heuristic --set dir=seven --set checkpoints.load=one taken.json > output 2>&1 || cat output
    cmp one/model.weights.h5 seven/model.weights.h5)"
result "a resumed run does not load again" "$(
    train 0 taken.json two --set checkpoints.load=one/model.weights.h5 --set num_epochs=2
    prints 'resuming from the checkpoint of step 3: epoch 2, batch 0; checkpoints.load is ignored'
    grep 'by name' output)"

result "Keras' .keras and .weights.h5" "$(
    train 0 keras.json k1 --set checkpoints.load="$keras/k3_auto_names.keras"
    prints '/k3_auto_names.keras: 12 of 12 weights, by name'
    train 0 keras.json k2 --set checkpoints.load="$keras/k3_auto_names.weights.h5"
    prints '/k3_auto_names.weights.h5: 12 of 12 weights, by'
    cmp k1/model.weights.h5 k2/model.weights.h5)"
result "Keras' .h5, and the moving statistics in it" "$(
    train 0 keras.json k3 --set checkpoints.load="$keras/k2_auto_names.h5"
    prints '/k2_auto_names.h5: 12 of 12 weights, by name')"

result "some weights match: missing, skipped and mismatched ones are logged" "$(
    train 0 wide.json part --set checkpoints.load=one/model.weights.h5
    prints '3 of 6 weights, by name' 'not in the file, left as they are:' "layer 'more': kernel 6x5" \
        'refused:' "layer 'out': kernel is 6x3 in the file, 5x3 here"
    train 0 wide.json part2 --set checkpoints.load=one
    prints '3 of 6 weights, by name' 'more/kernel 6x5' 'out/kernel is 6x3 in the file, 5x3 here')"
result "weights that the network does not have are skipped" "$(
    train 0 dense.json less --set num_epochs=1 --set checkpoints.load=part2/checkpoints
    prints '3 of 4 weights, by name' 'in the file, skipped:' 'more/kernel 6x5' 'more/bias 5')"

# ---- errors ----

result "no weight matches" "$(
    train 4 keras.json no --set checkpoints.load=one
    prints "dnn-train: one/checkpoints/ckpt-000000006.bp: no weight matches network" \
        "found hidden/kernel 64x6, expected conv2d/kernel 3x3x1x3; names of layers must be the same")"
result "names match, but no shape does" "$(
    sed 's/"units": 6/"units": 7/; s/"name": "out"/"name": "end"/' dense.json > other.json
    train 4 other.json no --set checkpoints.load=one
    prints 'ckpt-000000006.bp: hidden/kernel is 64x6 in the file, 64x7 here; no other weight fits network'
    train 4 other.json no --set checkpoints.load=one/model.weights.h5
    prints "layer 'hidden': kernel is 64x6 in the file, 64x7 here; no other weight fits network")"
result "a file that does not exist" "$(
    train 5 dense.json no --set checkpoints.load=nothing.h5
    prints 'dnn-train: nothing.h5: cannot be read: No such file or directory; checkpoints.load must be a checkpoint,'
    train 4 dense.json no --set checkpoints.load=one/99
    prints 'one/checkpoints: no checkpoint of step 99; found: 3, 6')"
result "a file of another kind" "$(
    train 4 dense.json no --set checkpoints.load=x.raw
    prints 'dnn-train: x.raw: '
    train 4 dense.json no --set checkpoints.load=data.bp
    prints 'dnn-train: data.bp: is not a checkpoint'
    mkdir -p empty
    train 4 dense.json no --set checkpoints.load=empty
    prints 'dnn-train: empty: no checkpoint found')"
result "damaged files" "$(
    head -c 3000 one/model.weights.h5 > short.weights.h5
    train 4 dense.json no --set checkpoints.load=short.weights.h5
    prints 'dnn-train: short.weights.h5: '
    cp -r one/checkpoints/ckpt-000000006.bp bad.bp
    printf XXXX | dd of=bad.bp/data.0 bs=1 seek=2000 conv=notrunc 2> /dev/null
    train 4 dense.json no --set checkpoints.load=bad.bp
    prints 'dnn-train: bad.bp: ' 'is damaged')"
result "these runs wrote nothing" "$(find no -name 'ckpt-*' -o -name 'model*' 2> /dev/null)"
finish
