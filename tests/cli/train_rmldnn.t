#!/bin/bash
# train_rmldnn.t - configuration files of rmldnn with small datasets: class directories, masks,
# arrays, slices; evaluation and inference without training.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
srcdir=$(cd "$srcdir" && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-rmldnn.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache PYTHONDONTWRITEBYTECODE=1
if ! python3 -c 'import h5py, numpy, PIL' 2> /dev/null; then
    skip "configurations of rmldnn" "no python3 with h5py, numpy and PIL to make files with"
    finish
fi
files() { guarded python3 "$srcdir/tests/peer/rmldnn_files.py" "$@" 2>&1; }
files make > made || { sed 's/^/# /' made; exit 1; }

# job NAME KEYS: write NAME.json with the keys under neural_network
job() { printf '{\n  "neural_network": {\n%s\n  }\n}\n' "$2" > "$1.json"; }
# train STATUS RANKS NAME ARGS...: prints errors; its output is in the file output
train() {
    local want=$1 ranks=$2 name=$3 status=0 how=()
    shift 3
    [ "$ranks" = 1 ] || how=("$MPIEXEC" -n "$ranks")
    guarded "${how[@]}" dnn-train --kernels heuristic "$@" "$name.json" > output 2>&1 || status=$?
    [ "$status" = "$want" ] || { echo "status $status, not $want"; cat output; }
}
# prints TEXT: exactly one line of the output contains it
prints() { [ "$(grep -c -- "$1" output)" = 1 ] || { echo "not exactly once: $1"; cat output; }; }
# refused NAME RANKS TEXT ARGS...: it fails with this message, printed once
refused() {
    local name=$1 ranks=$2 text=$3
    shift 3
    result "$name, $ranks ranks" "$(train 4 "$ranks" "$@"
        [ "$(grep -o 'dnn-train: .*' output | sed 's/rank [0-9]: //')" = "dnn-train: $text" ] || cat output)"
}

# ---- class directories ----

job classes '
    "outfile": "out.txt", "num_epochs": 2, "layers": "./net/classes.json",
    "checkpoints": {"save": "./kept/", "interval": 1},
    "data": {"input_type": "images", "target_type": "labels",
      "input_path": "./pets/training/", "test_input_path": "./pets/testing/",
      "batch_size": 5, "training_tag": "training", "test_tag": "testing",
      "grayscale": true, "preload": true, "transforms": [{"resize": [12, 12]}]},
    "optimizer": {"type": "SGD", "learning_rate": 0.01, "momentum": 0.5},
    "loss": {"function": "NLL"}'
result "class directories, images of several sizes, preloaded; --app=dnn" "$(train 0 1 classes --app=dnn
    prints 'training: 12 samples, batch size 5, 3 steps per epoch, 2 epochs' 'validation: 4 samples'
    prints '^epoch 2/2: .* val_accuracy')"
result "X_train.txt and X_test.txt" "$(
    [ "$(grep -vc '^#' out_train.txt)" = 6 ] || cat out_train.txt
    grep -q '^epoch 2 .* accuracy [0-9.]*$' out_test.txt || cat out_test.txt)"
job classes_test '
    "layers": "./net/classes.json", "checkpoints": {"load": "./kept/model_checkpoint_2.pt"},
    "data": {"input_type": "images", "test_input_path": "./pets/testing/",
      "test_output_path": "./predictions/", "grayscale": true,
      "transforms": [{"resize": [12, 12]}]}'
result "inference with the checkpoint of an epoch" "$(train 0 1 classes_test
    prints 'test samples: 4, batch size'
    prints 'writing outputs to ./predictions/output_1.h5')"
result "outputs are grouped by directory" "$(files look predictions/output_1.h5 | diff - <(
    printf '%s float32 2\n' cat/0.png cat/1.png dog/0.png dog/1.png))"
result "inference leaves no temporary files" "$(find predictions -name '.*' -type f)"
cp predictions/output_1.h5 one.h5
result "three ranks write the same" "$(train 0 3 classes_test; files same one.h5 predictions/output_1.h5)"
result "with a loss, it is evaluated, too" "$(
    train 0 2 classes_test --set loss.function=NLL --set data.target_type=labels
    prints 'test: 4 samples in .*, val_loss [0-9.]*, val_accuracy'
    grep -q '^{"samples": 4, "loss": [0-9.]*, "accuracy": ' run-classes_test/test.json || cat run-classes_test/test.json
    files same one.h5 predictions/output_1.h5)"
result "an evaluation without training gives the same as after an epoch" "$(
    train 0 1 classes --set num_epochs=0 --set dir=again
    a=$(sed -n 's/.* loss \([0-9.]*\) accuracy.*/\1/p' out_test.txt | tail -n 1)
    grep -q "\"loss\": ${a%?}" again/test.json || { echo "$a"; cat again/test.json; })"
result "a checkpoint that does not exist" "$(
    train 5 2 classes_test --set checkpoints.load=kept/model_checkpoint_9.pt
    prints 'dnn-train: rank 0: kept/model_checkpoint_9.pt: does not exist, and kept has no checkpoint of epoch 9; epochs found: ')"
result "a checkpoint of another version" "$(
    cp -r kept older
    "$(dirname "$(command -v dnn-train)")/tests/ckpt_edit" older format 1
    train 5 2 classes_test --set checkpoints.load=older/model_checkpoint_2.pt
    prints 'older has no checkpoint of epoch 2; epochs found: 1; older/ckpt-[0-9]*.bp: has checkpoint format 1; this program'
    rm -r older)"

result "debug writes the graph of the network" "$(train 0 1 classes_test --set debug=true
    grep -q 'n0 -> n1;' run-classes_test/network.dot || ls run-classes_test)"

# ---- masks ----

seg='"num_epochs": 1, "data": {"type": "images", "input_path": "seg/training/in/",
      "target_path": "seg/training/%s/", "test_input_path": "seg/testing/in",
      "test_target_path": "seg/testing/%s", "batch_size": 4, "preload": true,
      "target_grayscale": true, "target_is_mask": true,
      "transforms": [{"resize": [12, 12]}%s]},
    "optimizer": {"type": "rmsprop", "learning_rate": 1e-3},'
# shellcheck disable=SC2059 # it is the form
job bw "$(printf "$seg" bw bw '') \"layers\": \"net/bw.json\", \"loss\": {\"function\": \"Dice\", \"source\": \"sigmoid\"}"
# shellcheck disable=SC2059
job levels "$(printf "$seg" levels levels ', {"normalize": {"mean": 0.0, "std": 0.003921568}}') \"layers\": \"net/levels.json\", \"loss\": {\"function\": \"Dice\", \"source\": \"softmax\"}"
result "masks in black and white" "$(train 0 1 bw; prints '^epoch 1/1: .* val_dice')"
result "with another loss the metric is still Dice" "$(
    train 0 1 bw --set loss.function=BCE --set dir=bce; prints '^epoch 1/1: .* val_dice')"
result "masks of grey levels 0, 1, 2" "$(train 0 2 levels; prints '^epoch 1/1: .* val_dice')"
for n in 1 2; do
    refused "a level that is no class" $n "pairs[4] (p4.png): target[0,0,0] is 7, but there are 3 classes, 0 to 2" \
        levels --set dir=bad --set data.target_path=bad/levels --set data.shuffle=false
    refused "a mask is missing" $n "seg/training/in/, bad/few: inputs without a target of the same name: p2.png" \
        levels --set dir=bad --set data.target_path=bad/few
    refused "a directory without files" $n "bad/empty: contains no files" \
        levels --set dir=bad --set data.target_path=bad/empty
    refused "too many classes" $n "target 'target' of the data has 3 classes, but output 'd' of the network has only 2" \
        classes --set dir=bad --set data.input_path=bad/three --set data.training_tag=null
done

# ---- arrays ----

job arrays '
    "num_epochs": 2, "layers": "net/arrays.json",
    "data": {"type": "numpy", "input_path": "arrays/training/in", "target_path": "arrays/training/to",
      "test_input_path": "arrays/testing/in", "test_target_path": "arrays/testing/to",
      "test_output_path": "arrays_out", "batch_size": 4, "test_batch_size": 1, "preload": true},
    "optimizer": {"type": "Adam"}, "loss": {"function": "nll"}'
result "arrays; masks without a channel axis" "$(train 0 2 arrays; prints '^epoch 2/2: .* val_dice')"
result "outputs of the test data at the end of training" "$(files look arrays_out/output_2.h5 | diff - <(
    printf '%s float32 3x6x8\n' a0.npy a1.npy))"
refused "an array of another shape" 2 \
    "pairs[3] (a3.npy): target is 6x7x1, but 6x8x1 in pairs[0] (a0.npy); samples of a batch must have the same shape: resize, crop or pad" \
    arrays --set dir=bad --set data.target_path=bad/shape --set data.preload=false
job same '
    "layers": "net/same2d.json", "data": {"type": "numpy", "test_input_path": "arrays/training/in",
      "test_output_path": "same_out", "test_batch_size": 4}'
result "an identity network, without weights to load" "$(train 0 1 same
    prints 'the network is not trained: checkpoints.load is not set'
    files is same_out/output_1.h5 arrays/training/in)"
result "outputs in half precision, to hdf5_outfile" "$(
    train 0 2 same --set data.test_output_path=null --set data.hdf5_outfile=deep/er/half.h5 --set data.hdf5_precision=half
    files look deep/er/half.h5 | diff - <(printf 'a%d.npy float16 2x6x8\n' 0 1 2 3 4 5))"
result "one file" "$(train 0 1 same --set data.test_input_path=arrays/training/in/a3.npy
    files look same_out/output_1.h5 | diff - <(echo 'a3.npy float32 2x6x8'))"
result "without test_output_path: outputs in the run directory" "$(train 0 1 same --set data.test_output_path=null
    files is run-same/output_1.h5 arrays/training/in)"

# ---- a fraction for validation ----

job many '
    "num_epochs": 1, "layers": "net/many.json", "loss": {"function": "MSE"},
    "data": {"type": "numpy", "input_path": "many", "target_path": "many", "validation": 0.25, "batch_size": 4}'
result "a quarter of the samples is held out" "$(train 0 2 many
    prints 'training: 15 samples, batch size 4, 4 steps per epoch, 1 epochs' 'validation: 5 samples'
    prints '^epoch 1/1: .* val_loss')"
cp output want
result "the same on one rank" "$(train 0 1 many --set checkpoints.resume=false
    diff <(grep -o 'val_loss [0-9.]*' want | cut -c 1-12) <(grep -o 'val_loss [0-9.]*' output | cut -c 1-12))"
printf '%s' '{"layers": {"zoo": "unet3d", "base": 2, "depth": 1, "classes": 2, "input": [8, 8, 8, 1]},
  "loss": "cross_entropy", "data": {"generate": {"type": "blobs3d", "samples": 8, "size": 8, "classes": 1},
  "validation": 0.5, "batch_size": 2}}' > generated.json
result "also with a generator" "$(train 0 2 generated
    prints 'training: 4 samples, batch size 2, 2 steps per epoch, 1 epochs' 'validation: 4 samples')"

# ---- slices ----

slices='"slicers": [{"name": "samples", "sizes": [4, 5, 6], "strides": [4, 5, 2], "discard_remainders": true}]'
for type in hdf5:h5 numpy:npy; do
    job "boxes_${type%:*}" '"num_epochs": 1, "layers": "net/boxes.json", "loss": {"function": "NLL"},
      "data": {"type": "'"${type%:*}"'", "input_path": "volume_train.'"${type#*:}"'", "target_path": "classes_train.'"${type#*:}"'",
        "test_input_path": "volume_test.'"${type#*:}"'", "test_target_path": "classes_test.'"${type#*:}"'",
        "batch_size": 4, "preload": true, '"$slices"'}'
    result "slices of a volume, ${type%:*}" "$(train 0 2 "boxes_${type%:*}"
        prints 'training: 16 samples, batch size 4, 4 steps per epoch, 1 epochs' 'validation: 8 samples')"
done
job put '"layers": "net/same_boxes.json", "data": {"type": "numpy", "test_input_path": "volume_test.npy",
    "test_output_path": "put", "test_batch_size": 3, "slicers": [
      {"name": "boxes", "sizes": [2, 4, 5], "strides": [2, 3, 5], "padding": [1, 1, 1]}]}'
result "overlapping slices, with padding and remainders, are assembled" "$(train 0 2 put
    files volume put/output_1.h5 boxes volume_test.npy)"
result "without remainders the result is smaller" "$(train 0 1 put --set 'data.slicers[0].discard_remainders=true'
    files volume put/output_1.h5 boxes volume_test.npy 6 10 10)"
job planes '"layers": "net/same_planes.json", "data": {"type": "numpy", "test_input_path": "volume_test.npy",
    "hdf5_outfile": "planes.h5", "slicers": [
      {"name": "yz", "sizes": [1, 10, 13], "padded_sizes": [1, 12, 14]},
      {"name": "xz", "sizes": [7, 1, 13], "padded_sizes": [12, 1, 14]},
      {"name": "xy", "sizes": [7, 10, 1], "padded_sizes": [14, 12, 1], "transpose": true}]}'
result "planes in three directions" "$(train 0 2 planes
    files look planes.h5 | diff - <(printf '%s float32 7x10x13x1\n' xy xz yz)
    for n in xy xz yz; do files volume planes.h5 $n volume_test.npy; done)"
refused "sizes that do not fit the network" 2 \
    "input 'input' of the data has shape 12x15x1, but the network expects ?x12x14x1 (? is the batch); resize, crop or slice the data, or change \"input\"" \
    planes --set 'data.slicers=[{"sizes": [1, 10, 13], "padded_sizes": [1, 12, 15]}]'
refused "sizes for another number of axes" 1 \
    "data.slicers: input of the data is 7x10x13x1, which has 3 spatial axes, but there are 2 sizes" \
    planes --set 'data.slicers=[{"sizes": [10, 13]}]' --set data.input_layout=none

# ---- errors ----

job nothing '"layers": "net/many.json"'
result "no data at all" "$(train 3 2 nothing; prints 'dnn-train: rank 0: no data; set data.dataset')"
result "targets of an evaluation that do not exist" "$(
    train 5 2 same --set loss=MSE --set data.test_target_path=nowhere; prints 'dnn-train: rank 0: nowhere: cannot be read: No such file or directory$')"
finish
