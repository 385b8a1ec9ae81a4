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
    np.save(f"masks/{i}.npy", rng.integers(0, 3, shape + (1,)).astype(np.uint8))'

# infer RANKS DIR OPTION...: in the background; sets $pid; its output is in the file output
infer() {
    local launch=()
    [ "$1" = 1 ] || launch=("$mpirun" -n "$1")
    "${launch[@]}" dnn-infer net/model.dnn scans --target masks --output "$2" --kernels heuristic \
        --format npy,overlay --set inference.overlap=0.5 --set inference.flips='[0,1,2]' --set inference.activation=none "${@:3}" > output 2>&1 &
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
    diff -r -x test.json -x test.html -x infer.json want "$1"
    diff <(sed 's/"seconds": [^,]*//' want/test.json) <(sed 's/"seconds": [^,]*//' "$1/test.json")
}
# recorded DIR N: at least N slabs of about 15 parts are complete
# shellcheck disable=SC2317  # called by wait_for
recorded() {
    # shellcheck disable=SC2317
    [ "$(cat "$1"/.*/journal.* 2> /dev/null | wc -c)" -ge $((15 * 16 * $2)) ]
}
# stop DIR N: send SIGTERM to the last rank when N slabs are complete
stop() {
    local target=$pid
    # From this message on signals are handled; a run that continues has records before.
    wait_for grep -q 'memory per rank' output
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
    grep -q 'continuing an interrupted run: [0-9]* of' output || cat output
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
result "with other settings it starts from the beginning" "$(
    infer 1 other --set inference.surfaces=false
    ended 0
    grep 'continuing' output
    grep hausdorff other/evaluation.csv)"
finish
