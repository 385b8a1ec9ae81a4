#!/bin/bash
# explain_ranks.t - dnn-train --explain --ranks N prints the memory and the micro-batches of a real
# run on N ranks.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache
mpirun=${MPIEXEC:-mpirun}

guarded dnn-prepare --quiet --generate blobs3d --set size=8 --set samples=30 --split 0.8,0.2 \
    --to blobs.bp > prepared 2>&1 || { cat prepared; exit 1; }
cat > train.json << 'END'
{
    "layers": {"zoo": "unet3d", "base": 2, "depth": 1, "norm": "batch", "classes": 2, "input": [8, 8, 8, 1]},
    "data": {"dataset": "blobs.bp", "validation": "validation", "batch_size": 10, "threads": 2},
    "num_epochs": 1,
    "loss": "cross_entropy"
}
END
# A large dense layer, whose gradients are deferred if each thread computes its own micro-batches.
sed 's/"layers": .*/"layers": "dense.json",/' train.json > train-dense.json
cat > dense.json << 'END'
{"class_name": "Sequential", "config": {"name": "dense", "layers": [
  {"class_name": "Flatten", "config": {"name": "flat", "batch_input_shape": [null, 8, 8, 8, 1]}},
  {"class_name": "Dense", "config": {"name": "wide", "units": 128, "activation": "relu"}},
  {"class_name": "Dense", "config": {"name": "back", "units": 1024}},
  {"class_name": "Reshape", "config": {"name": "out", "target_shape": [8, 8, 8, 2]}}]}}
END

# explained OPTION...: "MICRO-BATCHES BYTES" of rank 0, from the output of --explain
explained() {
    guarded dnn-train --explain "$@" > explained 2>&1 || { tail -n 3 explained; return; }
    sed -nE -e 's/^  training, batches .*: ([0-9]+) micro-batch.*/\1/p' \
        -e 's/^  memory per rank: .*\(([0-9]+) bytes\).*/\1/p' explained | head -2 | paste -sd ' '
}
# recorded RANKS OPTION...: the same of a run, from run.json
recorded() {
    local ranks=$1
    shift
    rm -rf run
    guarded "$mpirun" -n "$ranks" dnn-train --quiet --set dir=run "$@" > trained 2>&1 ||
        { tail -n 3 trained; return; }
    sed -nE 's/^  "(micro_batches|memory_per_rank)": ([0-9]+),?$/\2/p' run/run.json | paste -sd ' '
}
# same NAME RANKS OPTION...: both are the same
same() {
    local name=$1 ranks=$2 a b
    shift 2
    a=$(explained --ranks "$ranks" "$@")
    b=$(recorded "$ranks" "$@")
    result "$name, ranks: $ranks" \
        "$([[ $a =~ ^[0-9]+\ [0-9]+$ ]] && [ "$a" = "$b" ] || echo "explained: $a; recorded: $b")"
}

for n in 1 2 4; do
    same "as recorded" "$n" train.json
    same "deterministic" "$n" --set deterministic=true train.json
done
same "accumulated" 2 --set accumulate=3 train.json
same "f64" 2 --set precision=f64 train.json
same "autotuned" 2 --kernels autotune train.json
same "preloaded" 2 --set data.preload=true train.json
same "deterministic on two threads, deferred gradients" 1 --set threads=2 --set deterministic=true train-dense.json
sed 's/"batch_size": 10/"batch_size_per_rank": 3/' train.json > train-per-rank.json
same "the number of ranks sets the batch size" 2 train-per-rank.json

guarded dnn-train --explain --ranks 4 train.json > explained 2>&1
result "each distinct plan is printed once, with its ranks" "$(
    grep -E '^(ranks|plan )|^  plans' explained | diff - <(
        cat << 'END'
ranks 0-1, 1 thread per rank:
  plans: 1 2 3
ranks 2-3, 1 thread per rank:
  plans: 2 4 5
plan 1 of ranks 0-1: training, micro-batches of 3 samples
plan 2 of ranks 0-3: training, micro-batches of 1 sample
plan 3 of ranks 0-1: evaluation, micro-batches of 2 samples
plan 4 of ranks 2-3: training, micro-batches of 2 samples
plan 5 of ranks 2-3: evaluation, micro-batches of 1 sample
END
    )
)"
guarded dnn-train --explain --ranks 3 --set deterministic=true train.json > explained 2>&1
result "models with the same plan are counted" "$(
    grep -E '^(rank|plan )|^  (training, last|plans)' explained | diff - <(
        cat << 'END'
rank 0, 1 thread per rank:
  training, last batch of 4 samples: 8 micro-batches, of this rank 2 of 1 sample
  plans: 1 (2 models) 2 (2 models) 3
rank 1, 1 thread per rank:
  training, last batch of 4 samples: 8 micro-batches, of this rank 2 of 1 sample, 1 empty
  plans: 2 (5 models) 3
rank 2, 1 thread per rank:
  training, last batch of 4 samples: 8 micro-batches, of this rank 3 empty
  plans: 2 (3 models) 3
plan 1 of rank 0: training, micro-batches of 2 samples
plan 2 of ranks 0-2: training, micro-batches of 1 sample
plan 3 of ranks 0-2: evaluation, micro-batches of 1 sample
END
    )
)"
guarded dnn-train --explain --inference --ranks 2 train.json > explained 2>&1
result "inference is explained alone" "$(
    grep -E '^  (training|evaluation|inference),|^plan ' explained | diff - <(
        cat << 'END'
  inference, batches of 6 samples: 2 micro-batches, of this rank 1 of 3 samples
plan 1 of ranks 0-1: inference, micro-batches of 3 samples
END
    )
)"

# ---- without data, and with wrong settings ----

guarded dnn-train --explain --set data.dataset=nowhere.bp train.json > explained 2>&1
result "data that do not exist yet are mentioned, and the plan is that of the configuration" "$(
    grep -q '^the data cannot be read, so batches are as configured: .*nowhere.bp' explained || echo "not mentioned"
    grep -q '^  training, batches of 10 samples: 1 micro-batch,' explained || tail -n 3 explained
)"
status=0
guarded dnn-train --explain --ranks 12 --set deterministic=true train.json > explained 2> err || status=$?
result "more ranks than micro-batches are refused as in a run" \
    "$(grep -q 'deterministic training on 12 ranks needs' err || cat err; [ $status = 3 ] || echo "status $status")"
status=0
guarded dnn-train --explain --set 'layers.input=[8,8,16,1]' train.json > explained 2> err || status=$?
result "data of another shape are refused as in a run" \
    "$(grep -q 'has shape 8x8x8x1, but the network expects' err || cat err; [ $status = 4 ] || echo "status $status")"
finish
