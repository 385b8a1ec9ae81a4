#!/bin/bash
# infer_resume.t - inference with an evaluation continues after signals and kill -9, on another
# number of ranks, and gives the same bytes as without an interruption.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
set -u
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/train_config.sh
. "${srcdir:-.}/tests/train_config.sh"
inject=$(realpath "${DNN_INJECT_SO:-${top_builddir:-.}/tests/inject.so}")
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-resume.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache
mpirun=${MPIEXEC:-mpirun}

if ! guarded python3 -c 'import numpy' 2> /dev/null; then
    skip "inference that is continued" "no numpy"
    finish
fi
make_config 12 1 1
guarded dnn-train --set dir=net train.json > output 2>&1 || { cat output; exit 1; }
python3 -c '
import numpy as np, os
rng = np.random.default_rng(1)
os.makedirs("scans"); os.makedirs("masks")
for i, shape in enumerate([(45, 64, 60), (9, 12, 8), (61, 64, 64)]):
    np.save(f"scans/{i}.npy", rng.random(shape + (1,), dtype=np.float32))
    np.save(f"masks/{i}.npy", rng.integers(0, 3, shape + (1,)).astype(np.uint8))
os.makedirs("small"); os.makedirs("small-masks"); os.makedirs("cubes")
for i in range(1500):
    np.save(f"small/{i}.npy", rng.random((8, 8, 8, 1), dtype=np.float32))
    np.save(f"small-masks/{i}.npy", rng.integers(0, 3, (8, 8, 8, 1)).astype(np.uint8))
for i in range(40): np.save(f"cubes/{i}.npy", rng.random((48, 32, 32, 1), dtype=np.float32))'
cat > slices.json << EOF
{"layers": "net/model.json", "checkpoints": {"load": "net"}, "loss": "cross_entropy",
 "data": {"test_input_path": "cubes", "test_batch_size": 3, "slicers": [{"sizes": [8, 8, 8], "strides": [4, 4, 4]}]},
 "inference": {"formats": ["npy", "hdf5"]}}
EOF

# What of dnn-infer is tested: its arguments before the directory, a line of its log, and about how
# many parts a slab has (1: samples are counted).
kind() {
    case $1 in
    tiles)
        args=(net/model.dnn scans --target masks --format "npy,overlay" --set inference.overlap=0.5
            --set inference.flips='[0,1,2]' --set inference.activation=none --output)
        ready='memory per rank' parts=15
        ;;
    batches)
        args=(net/model.dnn small --target small-masks --set deterministic=true
            --set data.test_batch_size=3 --output)
        ready='writing outputs' parts=1
        ;;
    slices)
        args=(slices.json --set)
        ready='writing outputs' parts=1
        ;;
    esac
}
kind tiles
# infer RANKS DIR OPTION...: in the background; sets $pid; its output is in the file output
infer() {
    local launch=() dir=''
    [ "$1" = 1 ] || launch=("$mpirun" -n "$1")
    [ "${args[0]}" != slices.json ] || dir=dir=
    "${launch[@]}" dnn-infer --kernels heuristic "${args[@]}" "$dir$2" "${@:3}" > output 2>&1 &
    pid=$!
}
# ended STATUS: it ends with this status; prints errors
ended() {
    local status=0
    wait "$pid" || status=$?
    [[ $status =~ ^$1$ ]] || echo "status $status, not $1: $(cat output)"
}
# same DIR: its files are those of an uninterrupted run, and there is nothing else
same() {
    diff -r -x test.json -x test.html -x infer.json "${2-want}" "$1"
    [ ! -e "${2-want}/test.json" ] || diff <(sed 's/"seconds": [^,]*//' "${2-want}/test.json") <(sed 's/"seconds": [^,]*//' "$1/test.json")
}
# recorded DIR N: at least N slabs or samples are complete, or the run has ended
# shellcheck disable=SC2317  # called by wait_for
recorded() {
    # shellcheck disable=SC2317
    [ "$(cat "$1"/.*/journal.* 2> /dev/null | wc -c)" -ge $((parts * 16 * $2)) ] || ! kill -0 "$pid" 2> /dev/null
}
# is_ready: from now on signals are handled, or the run has ended
# shellcheck disable=SC2317  # called by wait_for
is_ready() {
    # shellcheck disable=SC2317
    grep -q "$ready" output || ! kill -0 "$pid" 2> /dev/null
}
# stop DIR N: send SIGTERM to the last rank when N slabs or samples are complete
stop() {
    local target=$pid
    # A run that continues has records before it handles signals.
    wait_for is_ready
    wait_for recorded "$1" "$2"
    [ "$(cat "/proc/$pid/comm")" = dnn-infer ] || target=$(awk '{ print $NF }' "/proc/$pid/task/$pid/children")
    kill -TERM "$target"
}
# begin, stop, and wait for both
stopped() {
    infer "$1" "$2"
    stop "$2" "$3"
    ended 75
}
# completed RANKS DIR: it continues to its end, with the same results
completed() {
    infer "$1" "$2"
    ended 0
    grep -q 'resuming an interrupted run: [0-9]* of' output || cat output
    same "$2"
}

# tiles: print how many rank 0 has computed
tiles() { sed -n 's#.*inference: \([0-9]*\)[/0-9]* tiles in.*#\1#p' output; }

result "an uninterrupted run" "$(infer 1 want; ended 0)"
all=$(tiles)
for ranks in 1 2; do
    dir=stopped$ranks
    result "$ranks: SIGTERM" "$(stopped "$ranks" "$dir" 3)"
    result "$ranks: the evaluation is saved" "$(
        [ "$(find "$dir"/.* -name 'evaluation.*' | wc -l)" = "$ranks" ] || find "$dir"
        find "$dir" -name '*.part')"
    result "$ranks: SIGTERM again, on another number of ranks" "$(stopped $((3 - ranks)) "$dir" 12)"
    result "$ranks: then it is completed, only what is missing is computed" "$(
        completed "$ranks" "$dir"
        [ "$(tiles)" -lt "$all" ] || cat output)"
done

# Killed at different calls: records and states are incomplete, or have a temporary name.
for at in write:5 write:15 rename:1 rename:2 fsync:1 fsync:3; do
    rm -rf killed
    result "$at: stopped" "$(stopped 2 killed 5)"
    result "$at: killed when it continues" "$(
        export DNN_INJECT=$at:KILL DNN_INJECT_UNDER=$tmp/killed
        LD_PRELOAD=$inject infer 1 killed
        ended 137 2> /dev/null)"
    result "$at: then it is completed" "$(completed 2 killed)"
done

# One volume with one slab: ranks share its planes, too.
python3 -c '
import numpy as np
rng = np.random.default_rng(2)
np.save("flat.npy", rng.random((8, 64, 60, 1), dtype=np.float32))
np.save("flat-mask.npy", rng.integers(0, 3, (8, 64, 60, 1)).astype(np.uint8))'
flat() {
    guarded "$mpirun" -n "$1" dnn-infer net/model.dnn flat.npy --target flat-mask.npy --output "flat$1" \
        --kernels heuristic --format npy,overlay --set inference.overlap=0.5 > output 2>&1 || cat output
}
flat 1
for ranks in 2 3 4 5; do
    result "one volume on $ranks ranks: the same bytes, and each has less to do" "$(
        flat $ranks
        diff -r -x test.json -x test.html -x infer.json flat1 flat$ranks
        most=$(sed -n 's/.*tiles: 210 in all, .*; at most \([0-9]*\) on a rank/\1/p' output)
        [ "${most:-999}" -le $((210 / ranks + 60)) ] || cat output)"
done

# Files are complete, but not the evaluation.
result "stopped on two ranks" "$(stopped 2 lost 8)"
result "without its states the evaluation is computed again" "$(
    rm lost/.*/evaluation.*
    completed 1 lost
    [ "$(tiles)" = "$all" ] || cat output)"
result "stopped again" "$(stopped 2 damaged 8)"
result "the same with damaged states" "$(
    for each in damaged/.*/evaluation.*; do
        printf 'x' | dd of="$each" bs=1 seek=100 conv=notrunc status=none
    done
    completed 1 damaged
    [ "$(tiles)" = "$all" ] || cat output)"
result "stopped once more" "$(stopped 1 other 5)"
result "with other settings of the evaluation outputs are kept, whatever the memory" "$(
    infer 1 other --set inference.surfaces=false --set inference.memory=1GiB --set data.threads=2
    ended 0
    grep -q 'resuming an interrupted run: [1-9]' output || cat output
    grep hausdorff other/evaluation.csv
    for each in want/*.npy; do cmp "$each" "other/${each#*/}"; done)"
for each in "--set inference.blend=constant" "--backend ref"; do
    result "stopped again" "$(rm -r other; stopped 1 other 5)"
    # shellcheck disable=SC2086
    result "with $each it starts from the beginning" "$(
        infer 1 other $each
        stop other 1
        ended 75
        grep 'resuming' output)"
done

# Samples of the network's size with targets, and volumes that are cut to slices.
for each in batches slices; do
    kind $each
    result "$each: an uninterrupted run" "$(infer 1 want-$each; ended 0)"
    all=$(sed -n 's#.*inference: \([0-9]*\)[/0-9]* samples in.*#\1#p' output)
    for ranks in 1 2; do
        dir=$each$ranks
        result "$each: $ranks: stopped" "$(stopped "$ranks" "$dir" 2)"
        result "$each: $ranks: the rest on another number of ranks: the same results" "$(
            infer $((3 - ranks)) "$dir"
            ended 0
            grep -q 'resuming an interrupted run: [1-9]' output || cat output
            rest=$(sed -n 's#.*inference: \([0-9]*\)[/0-9]* samples in.*#\1#p' output)
            [ "$rest" -lt "$all" ] || cat output
            same "$dir" want-$each)"
    done
done
kind batches
result "batches: stopped" "$(stopped 2 damaged-batches 5)"
result "batches: with a damaged state the evaluation is computed again" "$(
    printf 'x' | dd of="$(echo damaged-batches/.*/evaluation.0)" bs=1 seek=100 conv=notrunc status=none
    infer 1 damaged-batches
    ended 0
    same damaged-batches want-batches)"
result "batches: an evaluation that cannot be written" "$(
    mkdir -p failed-batches/evaluation.csv
    infer 2 failed-batches
    ended 5)"
result "batches: the next run only evaluates" "$(
    rmdir failed-batches/evaluation.csv
    infer 1 failed-batches
    ended 0
    grep 'inference: [1-9][0-9]*[/0-9]* samples in' output
    same failed-batches want-batches)"
kind slices
result "slices with targets cannot be resumed: no status 75, and nothing is kept" "$(
    mkdir cube-masks
    python3 -c 'import numpy as np
for i in range(40): np.save(f"cube-masks/{i}.npy", np.zeros((48, 32, 32, 1), np.uint8))'
    infer 1 lost-slices --set data.test_target_path=cube-masks
    wait_for is_ready
    kill -TERM "$pid"
    ended 9
    grep -q 'this run cannot be resumed: the same command starts from the beginning' output || cat output
    find lost-slices -name '*.tmp')"
kind tiles

result "an evaluation that cannot be written: the outputs are complete" "$(
    mkdir -p failed/evaluation.csv
    infer 2 failed
    ended 5
    for each in want/*.npy want/*.png; do cmp "$each" "failed/${each#*/}"; done)"
result "the next run only evaluates" "$(
    rmdir failed/evaluation.csv
    infer 1 failed
    ended 0
    [ "$(tiles)" = 0 ] || [ -z "$(tiles)" ] || cat output
    same failed)"
finish
