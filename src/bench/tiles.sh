#!/bin/bash
# tiles.sh - compare dnn-infer with MONAI's sliding window inference in PyTorch: a 3D U-Net
# applied in tiles to one volume, with the same weights, places of tiles and blending.
#
#   tiles.sh [--threads N] [--size N] [--tile N] [--overlap X] [--batch N] [--base N]
#            [--classes N] [--reps N]
#
# Runs take turns; PyTorch runs in both memory formats.  Printed are the medians and their
# ratio, unless the outputs differ by more than 1e-5 of the largest.  The time of dnn-infer
# is that of the whole program; MONAI's is without start, reading and writing.  The Python
# is that of `dnn-bench torch`, with MONAI: `DNN_TORCH=... tiles.sh` takes another one.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
set -u -o pipefail
threads=$(nproc) size=192 tile=64 overlap=0.25 batch=1 base=16 classes=4 reps=3
usage() {
    sed -n '5,6s/^#  *//p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --threads | --size | --tile | --overlap | --batch | --base | --classes | --reps)
        [ $# -gt 1 ] || usage
        declare "${1#--}=$2"
        shift
        ;;
    *) usage ;;
    esac
    shift
done
python=${DNN_TORCH:-${XDG_DATA_HOME:-$HOME/.local/share}/dnn-toolkit/torch/bin/python}
monai=$(cd "$(dirname "$0")" && pwd)/torch/sliding_window.py
if ! "$python" -c 'import monai, torch' 2> /dev/null; then
    echo "tiles.sh: $python has no MONAI: dnn-bench torch --install, or set DNN_TORCH" >&2
    exit 5
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=$threads XDG_CACHE_HOME=$tmp/cache

# ---- a network with random weights, and a volume ----

cat > train.json << EOF
{"layers": {"zoo": "unet3d", "base": $base, "depth": 3, "classes": $classes, "input": [$tile, $tile, $tile, 1]},
 "data": {"dataset": "train.bp", "batch_size": 2}, "num_epochs": 1, "loss": "cross_entropy", "dir": "run",
 "telemetry": {"pictures": 0}, "optimizer": {"type": "Adam", "learning_rate": 0.001}}
EOF
dnn-prepare -q --generate blobs3d --set samples=4 --set size="$tile" --split 0.5,0.5 --to train.bp &&
    dnn-train -q train.json &&
    "$python" -c "
import numpy
x = numpy.random.default_rng(1).standard_normal(($size, $size, $size), dtype=numpy.float32)
numpy.save('volume.npy', x)" || exit 1

# ---- in turns ----

ours() {
    local t0=${EPOCHREALTIME/[.,]/}
    rm -rf out
    dnn-infer -q run/model.dnn volume.npy --output out --format npy --set inference.activation=none \
        --set inference.overlap="$overlap" --set inference.batch="$batch" --set data.input_layout=none || exit 1
    echo $(((${EPOCHREALTIME/[.,]/} - t0) / 1000)) >> ours
}
theirs() {
    "$python" "$monai" --layers run/model.json --weights run/model.weights.h5 --roi "$tile,$tile,$tile" \
        --overlap "$overlap" --mode gaussian --batch "$batch" --threads "$threads" --format "$1" \
        volume.npy "$1.npy" > seconds || exit 1
    awk '{ print 1000 * $1 }' seconds >> "$1"
}
# median FILE
median() { sort -g "$1" | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 / 1000 }'; }

ours # autotuning
rm ours
for _ in $(seq "$reps"); do
    ours
    theirs contiguous
    theirs channels_last
done
"$python" -c "
import numpy
a, b = numpy.load('out/volume.npy'), numpy.load('contiguous.npy')
error = abs(a - b).max() / abs(b).max()
print(f'largest difference, relative to the largest output: {error:.1e}')
raise SystemExit(int(error > 1e-5))" || exit 6
echo "volume $size^3, tiles $tile^3, overlap $overlap, batch $batch, U-Net base $base, $classes classes, $threads threads"
for name in ours contiguous channels_last; do
    echo "$name: $(median $name) s ($(sort -g $name | awk '{ printf "%s%.2f", (NR > 1 ? ", " : ""), $1 / 1000 }'))"
done
best=$( (median contiguous && median channels_last) | sort -g | head -n 1)
awk -v a="$best" -v b="$(median ours)" 'BEGIN { printf "ratio: %.2f x\n", a / b }'
