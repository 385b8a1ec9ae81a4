#!/bin/bash
# infer_errors.t - models, data and settings that do not fit: one message that says what is wrong
# and where, the documented status, and no files but those to continue from; on one and two ranks.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
set -u
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/train_config.sh
. "${srcdir:-.}/tests/train_config.sh"
if ! guarded python3 -c 'import numpy' 2> /dev/null; then
    echo "1..0 # SKIP python3-numpy is not installed"
    exit 0
fi
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-infer.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache
mpirun=${MPIEXEC:-mpirun}

# ---- networks of a segmentation and of a classifier, and data ----

make_config 12 1 1
python3 -c '
import numpy as np, os
rng = np.random.default_rng(1)
def scans(d, shapes, **points):
    os.makedirs(d)
    for i, s in enumerate(shapes):
        x = rng.random(s, dtype=np.float32)
        if i == 0 and points: x[4:7, 2:5, 1:4, 0] = points["value"]
        np.save(f"{d}/{i}.npy", x)
def masks(d, shapes, classes=3):
    os.makedirs(d)
    for i, s in enumerate(shapes): np.save(f"{d}/{i}.npy", rng.integers(0, classes, s).astype(np.uint8))
large, small = [(12, 9, 10, 1), (8, 8, 8, 1)], [(8, 8, 8, 1)] * 2
scans("large", large); masks("large-masks", large); masks("large-wrong", large, 9)
scans("small", small); masks("small-masks", small); masks("small-wrong", small, 9)
scans("large-nan", large, value=np.nan); scans("small-nan", small, value=np.nan)
scans("large-huge", large, value=3e38); scans("small-huge", small, value=3e38)
masks("narrow", [(12, 9, 9, 1), (8, 8, 8, 1)]); masks("few", large[:1])
scans("rgb", [(12, 9, 10, 3)] * 2); scans("rgb-small", [(8, 8, 8, 3)] * 2)
scans("flat", [(9, 10)] * 2); scans("deep", [(9, 10, 3, 4, 5)] * 2)
np.savez("cls.npz", x=rng.random((12, 6, 6, 1), dtype=np.float32), y=rng.integers(0, 3, 12).astype(np.int32))
np.savez("wide.npz", x=rng.random((4, 7, 6, 1), dtype=np.float32), y=rng.integers(0, 3, 4).astype(np.int32))
np.savez("rgb.npz", x=rng.random((4, 9, 8, 8, 3), dtype=np.float32), y=rng.integers(0, 3, (4, 9, 8, 8, 1)).astype(np.uint8))'
mkdir empty
guarded dnn-prepare -q --from cls.npz --to cls.bp
guarded dnn-prepare -q --from rgb.npz --target-kind mask --to rgb.bp
cat > cls.json << EOF
{"layers": {"class_name": "Sequential", "config": {"name": "cls", "layers": [
  {"class_name": "Flatten", "config": {"name": "flat", "batch_input_shape": [null, 6, 6, 1]}},
  {"class_name": "Dense", "config": {"name": "out", "units": 3, "activation": "softmax"}}]}},
 "data": {"dataset": "cls.bp", "split": "all", "batch_size": 4}, "num_epochs": 1, "loss": "cross_entropy",
 "optimizer": "SGD", "dir": "cls"}
EOF
cat > run.json << EOF
{"layers": "net/model.json", "checkpoints": {"load": "net"}, "dir": "out", "loss": "cross_entropy",
 "data": {"test_input_path": "large"}}
EOF
for each in "--set dir=net train.json" cls.json; do
    # shellcheck disable=SC2086
    guarded dnn-train $each > output 2>&1 || { cat output; exit 1; }
done
[ -f net/model.dnn ] && [ -f cls/model.dnn ] || exit 1

# refused STATUS MESSAGE OPTION...: on one and two ranks; MESSAGE is an extended regular expression
refused() {
    local want=$1 text=$2 status ranks launch front errors=''
    shift 2
    for ranks in 1 2; do
        launch=() front='' status=0
        [ $ranks = 1 ] || launch=("$mpirun" -n 2) front='rank [01]: '
        rm -rf out
        guarded "${launch[@]}" dnn-infer --kernels heuristic "$@" > output 2>&1 || status=$?
        [[ $status =~ ^$want$ ]] || errors+="$ranks: status $status, not $want"$'\n'
        sed "s#$tmp/##g" output > relative
        grep '^dnn-infer: \|error: ' relative > words
        { [ "$(wc -l < words)" = 1 ] && grep -qxE "dnn-infer: $front($text)" words; } ||
            errors+="$ranks: $(cat output)"$'\n'
        # What is left can be continued: it has settings.
        if [ -d out ]; then
            errors+=$(find out -mindepth 1 -maxdepth 1 ! -name .outputs.tmp ! -name inputs.txt)
            errors+=$([ ! -d out/.outputs.tmp ] || [ -f out/.outputs.tmp/settings ] || find out)
            errors+=$(find out -name '*.part')
        fi
    done
    result "$text" "$errors"
}

# ---- models ----

cp net/model.dnn cut.dnn
truncate -s 2000 cut.dnn
refused 4 'cut.dnn: truncated or damaged: it has 2000 bytes, .*' cut.dnn large --output out
sed 's/"version": 1/"version": 9/' net/model.dnn > bad.dnn
refused 4 'bad.dnn: dnn.json in it: CRC error' bad.dnn large --output out
refused 5 'no.dnn: .*No such file or directory' no.dnn large --output out
# The same with another version, and right checksums of the members.
python3 -c '
import zipfile
old = zipfile.ZipFile("net/model.dnn")
new = zipfile.ZipFile("newer.dnn", "w")
for i in old.infolist():
    text = old.read(i)
    new.writestr(i, text.replace(b"\"version\": 1", b"\"version\": 9") if i.filename == "dnn.json" else text)
new.comment = old.comment
new.close()'
refused 4 'newer.dnn has format version 9; this program reads up to 1: upgrade dnn-toolkit' newer.dnn large --output out

# ---- weights ----

refused 4 'cls/checkpoints/ckpt-[0-9]*.bp: out/kernel is 36x3 in the file, 1x1x1x6x3 here; 1 of 7 weights differ like this: the network must be the one that was trained' \
    --config=run.json --set checkpoints.load=cls
sed 's/"conv"/"other"/g' net/model.json > renamed.json
refused 4 "net/model.weights.h5: has 6 of the 7 weights of network 'net'; the first that is missing is layer 'other': kernel 3x3x3x1x6: the network must be the one that was trained" \
    --config=run.json --set layers=renamed.json --set checkpoints.load=net/model.weights.h5
refused 5 'nowhere: cannot be read: No such file or directory; checkpoints.load must be .*' \
    --config=run.json --set checkpoints.load=nowhere

# ---- data ----

refused 4 'empty: contains no files' net/model.dnn empty --output out
refused 5 'nowhere: cannot be read: No such file or directory' net/model.dnn nowhere --output out
refused 5 'nowhere: cannot be read: No such file or directory' --config=run.json --set data.test_input_path=nowhere
refused 3 'no data; set data.dataset, .* or the same keys with the prefix test_ for testing' \
    --config=run.json --set data.test_input_path=null
# misfit SHAPE NETWORK OPTION...
misfit() {
    refused 4 "input 'input' of the data has shape $1, but the network expects .x$2 .*; resize, crop or slice the data, or change \"input\"" "${@:3}"
}
misfit 12x9x10x3 8x8x8x1 --config=run.json --set data.test_input_path=rgb
misfit 8x8x8x3 8x8x8x1 --config=run.json --set data.test_input_path=rgb-small
misfit 9x10x1 8x8x8x1 net/model.dnn flat --output out
misfit 9x8x8x3 8x8x8x1 net/model.dnn rgb.bp --output out --set data.test_split=all
misfit 6x6x1 8x8x8x1 net/model.dnn cls.bp --output out --set data.test_split=all
misfit 7x6x1 6x6x1 cls/model.dnn wide.npz --output out
misfit 12x9x10x1 6x6x1 cls/model.dnn large --output out
refused 4 '0.npy: the input has shape 12x9x10x3, but the network expects .x8x8x8x1 .*' \
    --config=run.json --set data.test_input_path=rgb --set inference.tiles=true
# slices STATUS MESSAGE SIZES: of slices of the volumes
slices() {
    refused "$1" "$2" --config=run.json --set data.slicers="[{\"sizes\": $3}]"
}
slices 4 "input 'input' of the data has shape 4x4x4x1, but the network expects .x8x8x8x1 .*" '[4, 4, 4]'
slices 4 "input 'input' of the data has shape 8x8x1, but the network expects .x8x8x8x1 .*" '[1, 8, 8]'
slices 4 'data.slicers: input of the data is 12x9x10x1, which has 3 spatial axes, but there are 2 sizes' '[8, 8]'
slices 4 '1.npy: input is 8x8x8x1, but slices are cut from volumes of 12x9x10' '[8, 8, 8]'
slices '[34]' 'data.slicers\[0\]: slices: sizes\[0\] is 100; it must be 1 to 12, the size of the volume' '[100, 8, 8]'
refused 3 'inference.formats: overlay cannot be combined with data.slicers' --config=run.json \
    --set data.test_input_path=small --set data.slicers='[{"sizes": [8, 8, 8]}]' --set inference.formats=overlay
# 5, 2 and 3 boxes at a point along the axes: their sum must not overflow
cat > sums.json << EOF
{"layers": {"class_name": "Sequential", "config": {"name": "sums", "layers": [
  {"class_name": "Conv3D", "config": {"name": "out", "filters": 1, "kernel_size": [1, 1, 1], "batch_input_shape": [null, 8, 8, 8, 1],
   "kernel_initializer": {"class_name": "Constant", "config": {"value": 9e8}}}}]}},
 "data": {"test_input_path": "ones", "slicers": [{"sizes": [8, 8, 8], "strides": [1, 1, 1]}]}, "loss": "mse", "dir": "out"}
EOF
python3 -c 'import numpy as np, os; os.mkdir("ones"); np.save("ones/0.npy", np.ones((12, 9, 10, 1), "f4"))'
refused 4 '0.npy: the output for slice 0 of slicer "slices" has a value that is NaN, infinite or above 3.57914e\+07' \
    --config=sums.json
refused 4 'deep/0.npy: sample shape 9x10x3x4x5: an image or mask must have 1 to 3 spatial axes and one channel axis' \
    net/model.dnn deep --output out
misfit 9x8x8x3 8x8x8x1 net/model.dnn rgb.bp --output out
refused 4 'rgb.bp: there is no split "none"; .*"?all"?' \
    net/model.dnn rgb.bp --output out --set data.test_split=none

# ---- targets ----

refused 5 'nowhere: cannot be read: No such file or directory' net/model.dnn large --target nowhere --output out
refused 4 'large, few: inputs without a target of the same name: 1.npy' net/model.dnn large --target few --output out
refused 4 '0.npy: the target has shape 12x9x9x1, but the input 12x9x10x1; they must have the same spatial extents' \
    net/model.dnn large --target narrow --output out
refused 4 "target 'target' of the data has shape 12x9x9x1, but the network expects \?x8x8x8 .*" \
    net/model.dnn small --target narrow --output out
refused 4 '0.npy: the target has shape 12x9x10x1, but it must have 3 channels, as the output of the network' \
    --config=run.json --set loss=mse --set data.test_target_path=large
for each in large small; do
    refused 4 '0.npy: target: class [3-8], but there are 3 classes \(0 to 2\)' \
        net/model.dnn $each --target $each-wrong --output out
done

# ---- numbers ----

for each in large small; do
    refused 4 '0.npy: input: value [0-9]+ is NaN; .*' net/model.dnn $each-nan --output out
    refused 4 '0.npy: input: value [0-9]+ is NaN; .*' net/model.dnn $each-nan --target $each-masks --output out
done
for with in "" "--target large-masks"; do
    # shellcheck disable=SC2086
    refused 4 'sample "0.npy": the output at \([0-9]+, [0-9]+, [0-9]+\), channel [0-9], is NaN' \
        net/model.dnn large-huge $with --output out
done
for with in "" "--target small-masks"; do
    # shellcheck disable=SC2086
    refused 4 "sample \"0.npy\": output 'out' of the network is NaN at \([0-9]+, [0-9]+, [0-9]+, [0-9]\); it must be finite" \
        net/model.dnn small-huge $with --output out
done

# ---- settings ----

keys() {
    refused 3 "$1" net/model.dnn large --output out "${@:2}"
}
keys '--set inference.overlap=1: must be between 0 and 0.99, not 1' --set inference.overlap=1
keys 'inference.overlap: has 2 numbers, but the network has 3 spatial axes; give one number, or one for each axis' \
    --set 'inference.overlap=[0.1, 0.2]'
keys '--set inference.tile=.*: must be between 1 and 1000000000, not 0' --set 'inference.tile=[0]'
keys 'inference.tile: has 2 numbers, .*' --set 'inference.tile=[8, 8]'
keys '--set inference.flips=.*: must be between 0 and 2, not 3' --set 'inference.flips=[3]'
keys '--set inference.sigma=0: must be between .*' --set inference.sigma=0
keys '--set inference.formats=.*: must be one of hdf5, bp5, .*, not "xyz"' --format xyz
for key in tiles=true tile=8 flips=0; do
    keys "inference.${key%=*}: needs a network with one input and outputs of the same spatial size as the input" \
        --set inference.$key --set layers="$tmp/cls/model.json" --set checkpoints.load="$tmp/cls"
done
refused 3 'inference.tile: cannot be combined with data.slicers' \
    --config=run.json --set inference.tile=8 --set data.slicers='[{"sizes": [8, 8, 8]}]'
refused 3 'inference.tiles: there is no test data; set data.test_input_path or data.test_dataset' \
    --config=run.json --set inference.tiles=true --set data.test_input_path=null
keys 'inference.tile: axis 2 is 900000000; it must be between 1 and 16777216' --set 'inference.tile=[8, 8, 900000000]'
result "--explain refuses what a run refuses" "$(
    status=0
    guarded dnn-infer --explain --kernels heuristic net/model.dnn large --output out --set inference.tiles=true \
        --set layers="$tmp/cls/model.json" --set checkpoints.load="$tmp/cls" > output 2>&1 || status=$?
    [ $status = 3 ] && grep -q '^dnn-infer: inference.tiles: needs ' output || echo "$status: $(tail -3 output)")"
refused 8 'summing overlapping tiles needs [0-9.]+ KiB, but inference.memory is 1.0 KiB; smaller tiles along the first axis, less overlap or a shorter last axis need less' \
    net/model.dnn large --output out --set inference.memory=1KiB

# ---- outputs ----

for each in csv json; do
    refused 4 "sample 0 \(0.npy\): output out of 12x9x10x3 cannot be written as $each: .*; write npy, nifti or png instead" \
        net/model.dnn large --output out --format $each
done
for each in nifti tiff png overlay; do
    refused 4 "sample 0 \(cls.npz\[0\]\): output out of 3 cannot be written as $each: .*; write csv, json or npy instead" \
        cls/model.dnn cls.npz --output out --format $each
done
# The name of an output can be that of an input or target, also through a link.
mkdir own
cp large/*.npy own
ln -s own linked
refused 2 'own/0.npy: an output would replace this input; give another output directory' \
    net/model.dnn linked --output own
refused 2 'large-masks/0.npy: an output would replace this input; .*' \
    net/model.dnn large --target large-masks --output large-masks
refused 2 'own/1.npy: an output would replace this input; .*' \
    --config=run.json --set inference.formats=hdf5 --set data.test_output_path=out --set data.test_input_path=own \
    --set data.hdf5_outfile="$tmp/own/1.npy"
result "the inputs are as before" "$(diff -r -x inputs.txt large own)"
touch file
refused 5 'file: .*' net/model.dnn large --output file
refused 5 'file(/out)?: .*' net/model.dnn large --output file/out

# ---- what is right is not refused ----

works() {
    rm -rf out
    guarded dnn-infer "$@" --output out > output 2>&1 || cat output
    [ -n "$(find out -name '*.npy' -o -name '*.csv')" ] || find out
}
result "samples with and without targets, in batches and in tiles" "$(
    for each in large small; do
        works net/model.dnn $each
        works net/model.dnn $each --target $each-masks
    done
    works cls/model.dnn cls.npz)"
finish
