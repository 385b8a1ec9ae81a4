#!/bin/bash
# infer_memory.t - the memory of dnn-infer does not grow with the first axis of a sample.
#
#     tests/cli/infer_memory.t [EXTENT]      384: with 100 classes, for make stress
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
if ! python3 -c 'import resource' 2> /dev/null; then
    echo "1..0 # SKIP python3 is not installed"
    exit 0
fi
extent=${1:-96} classes=40
[ "$extent" -lt 200 ] || classes=100
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-memory.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > infer.json << EOF
{"layers": [{"class_name": "Conv3D", "config": {"name": "conv", "filters": 2, "kernel_size": [3, 3, 3], "padding": "same"}},
            {"class_name": "Conv3D", "config": {"name": "out", "filters": $classes, "kernel_size": [1, 1, 1], "activation": "softmax"}}],
 "input": [16, 16, 16, 1], "seed": 5, "deterministic": true, "dir": "run", "loss": "cross_entropy",
 "data": {"test_from": {"input_path": "volume.npy", "input_layout": "none", "whole": true}, "test_output_path": "out"},
 "inference": {"formats": "npy", "contents": "classes"}}
EOF
# volume PLANES: write volume.npy, which takes no space on disk
volume() {
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1, $extent, $extent)}" > volume.npy
    truncate -s $((128 + $1 * extent * extent * 4)) volume.npy
}
# peak ARG...: run dnn-infer; prints its largest resident memory in KiB
peak() {
    python3 -c '
import resource, subprocess, sys
with open("output", "w") as to:
    status = subprocess.call(["dnn-infer"] + sys.argv[1:], stdout=to, stderr=to)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if status == 0 else 0)' "$@"
}

volume $((extent / 2))
half=$(peak infer.json)
result "half a volume of $extent planes, $classes classes" "$([ "$half" -gt 0 ] || cat output)"
volume "$extent"
whole=$(peak infer.json)
result "all of it" "$([ "$whole" -gt 0 ] || cat output)"
all=$((extent * extent * extent * classes * 4 / 1024)) # KiB of all outputs, as values
echo "# $((half / 1024)) MiB and $((whole / 1024)) MiB; all outputs: $((all / 1024)) MiB"
result "takes the same memory" "$([ "$whole" -le $((half + half / 20)) ] || echo "$half KiB, then $whole KiB")"
result "less than the outputs" "$([ "$whole" -le "$all" ] || echo "$whole KiB")"
result "and writes all planes" "$(
    [ "$(stat -c %s out/volume_classes.npy)" = $((128 + extent * extent * extent)) ] || ls -l out)"

# Files that are prepared as the training data were; a volume of many planes.
cat > prepare.json << EOF
{"generate": {"type": "blobs3d", "samples": 4, "size": 16, "classes": 1}, "to": "blobs.bp",
 "steps": [{"split": {"train": 1}}, {"normalise": "channel"}, {"clip": [-3, 3]}]}
EOF
cat > train.json << EOF
{"layers": [{"class_name": "Conv3D", "config": {"name": "out", "filters": 2, "kernel_size": [1, 1, 1]}}], "input": [16, 16, 16, 1],
 "data": {"dataset": "blobs.bp", "batch_size": 4}, "num_epochs": 1, "seed": 5, "loss": "cross_entropy", "dir": "net"}
EOF
guarded dnn-prepare -q prepare.json && guarded dnn-train -q --kernels heuristic train.json || exit 1
planes=$((extent * 8))
for n in 32 "$planes"; do
    volume "$n"
    prepared[n]=$(peak net/model.dnn volume.npy --output "prepared-$n" --format npy --content classes)
done
few=${prepared[32]} many=${prepared[planes]}
echo "# $((few / 1024)) MiB and $((many / 1024)) MiB; the sample: $((planes * extent * extent / 262144)) MiB"
result "the same memory with a preparation" "$(
    if [ "$few" = 0 ] || [ "$many" = 0 ] || [ "$many" -gt $((few + few / 20)) ]; then cat output; fi
    [ "$(stat -c %s "prepared-$planes/volume_classes.npy")" = $((128 + planes * extent * extent)) ] || ls -l prepared-*)"
finish
