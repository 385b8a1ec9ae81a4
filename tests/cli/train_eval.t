#!/bin/bash
# train_eval.t - evaluation on several ranks: losses whose divisor is summed over the whole batch,
# ranks without samples, and the same bits with deterministic.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/train_config.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-eval.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > prepare.json << EOF2
{"generate": {"type": "blobs3d", "samples": 24, "size": 8, "classes": 2, "noise": 0.3},
 "to": "blobs.bp", "seed": 3, "steps": [{"split": {"train": 0.5, "validation": 0.5}}]}
EOF2
# Losses whose divisor depends on the data, sums over the whole batch, and means.
cat > train.json << EOF2
{"layers": [
  {"class_name": "Conv3D", "config": {"filters": 4, "kernel_size": 3, "padding": "same", "activation": "relu"}},
  {"class_name": "Conv3D", "config": {"filters": 3, "kernel_size": 1, "activation": "softmax"}}],
 "input": [8, 8, 8, 1],
 "data": {"dataset": "blobs.bp", "validation": "validation", "batch_size": 9, "test_batch_size": 5},
 "num_epochs": 2, "seed": 5, "optimizer": {"type": "Adam", "learning_rate": 0.01},
 "loss": [{"function": "xent", "weight": [1, 2, 0.5], "ignore_index": 1},
          {"function": "dice", "per": "batch", "factor": 2}],
 "metrics": ["accuracy", {"type": "dice", "average": "samples"}, "auc"],
 "checkpoints": {"interval": 0}}
EOF2
guarded dnn-prepare -q prepare.json || exit 1

# scores DIR: print loss, val_loss and metrics of each epoch
scores() {
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^val_|^loss$/) c[++n] = i }
        { line = ""; for (k = 1; k <= n; k++) line = line " " $c[k]; print line }' "$1/metrics.csv"
}
# near A B LIMIT: prints rows that differ by more
near() {
    paste -d' ' <(scores "$1") <(scores "$2") | awk -v far="$3" 'NR > 1 {
        for (i = 1; i <= NF / 2; i++) { a = $i; b = $(i + NF / 2); d = a - b
            if (d < 0) d = -d; if (!(d <= far * (a < 0 ? -a : a))) print a " and " b } }
        END { if (NR != 3) print NR " lines" }'
}

result "it trains" "$(train_on one 1 deterministic=true)"
result "metrics.csv has losses and metrics" "$(
    [ "$(scores one | head -n 1)" = " loss val_loss val_accuracy val_dice val_auc val_dice_0 val_dice_1 val_dice_2 val_auc_0 val_auc_1 val_auc_2" ] ||
        scores one)"
for n in 2 3 4 5 8; do
    result "deterministic: the same bits on $n ranks" "$(
        train_on "ranks$n" "$n" deterministic=true
        scores one | diff - <(scores "ranks$n"))"
done
result "also with more ranks than samples to evaluate" "$(
    train_on few1 1 deterministic=true data.test_batch_size=2
    train_on few4 4 deterministic=true data.test_batch_size=2
    scores few1 | diff - <(scores few4))"
for n in 2 4; do
    result "$n ranks: the same up to rounding" "$(
        train_on free1 1 data.test_batch_size=3
        train_on "free$n" "$n" data.test_batch_size=3
        near free1 "free$n" 1e-4)"
done
result "fewer samples than a batch" "$(
    train_on short1 1 deterministic=true data.batch_size=40 data.test_batch_size=50
    train_on short3 3 deterministic=true data.batch_size=40 data.test_batch_size=50
    scores short1 | diff - <(scores short3))"
# Kernels of all kinds, also oneDNN's, run by one thread or by both: one rank has eight
# micro-batches for two threads, eight ranks have one each.
cat > kinds.json << EOF2
[{"class_name": "Conv3D", "config": {"filters": 8, "kernel_size": 3, "strides": 2, "padding": "same"}},
 {"class_name": "BatchNormalization", "config": {}},
 {"class_name": "DepthwiseConv3D", "config": {"kernel_size": 3, "padding": "same", "activation": "relu"}},
 {"class_name": "Conv3D", "config": {"filters": 12, "kernel_size": 3, "padding": "same", "groups": 2}},
 {"class_name": "Conv3D", "config": {"filters": 16, "kernel_size": 3, "padding": "same", "dilation_rate": 2}},
 {"class_name": "Conv3DTranspose", "config": {"filters": 5, "kernel_size": 3, "strides": 2, "padding": "same"}},
 {"class_name": "Conv3D", "config": {"filters": 16, "kernel_size": 3, "padding": "same", "activation": "relu"}},
 {"class_name": "Dense", "config": {"units": 3, "activation": "softmax"}}]
EOF2
# weights DIR: print checksums of the arrays of its checkpoint
weights() {
    dnn-train --verify "$(find "$1/checkpoints" -name 'ckpt-*.bp')" | grep -v 'run/seconds\|run/bucket\|^checkpoint\|ckpt-'
}
# With groups, oneDNN sums weight gradients over its threads: then all threads compute together.
grep -v 'Depthwise\|groups' kinds.json > alone.json
for kinds in kinds alone; do
    result "the same bits with kernels run by one thread or by all ($kinds)" "$(
        export OMP_NUM_THREADS=2
        for n in 1 2 8; do
            train_on "$kinds$n" "$n" deterministic=true "layers=$(cat $kinds.json)"
            scores "${kinds}1" | diff - <(scores "$kinds$n")
            diff <(weights "${kinds}1") <(weights "$kinds$n")
        done
        [ "$(weights "${kinds}1" | wc -l)" -gt 10 ] || weights "${kinds}1")"
done
# Weights do not change and all samples are one batch: loss and val_loss are equal.
result "val_loss is the training loss" "$(
    train_on still 2 data.validation=train data.batch_size=12 data.test_batch_size=12 \
        'optimizer={"type": "SGD", "learning_rate": 1e-30}'
    scores still | awk 'NR > 1 { d = $1 - $2; if (d < 0) d = -d; if (!(d <= 1e-6 * $1)) print }
        END { if (NR != 3) print NR " lines" }')"
# Outputs of test data that are not the validation data, which are evaluated.
sed 's/"samples": 24/"samples": 20/; s/blobs.bp/three.bp/
     s/"train".*/"train": 0.45, "validation": 0.25, "test": 0.3}}]}/' prepare.json > three.json
guarded dnn-prepare -q three.json || exit 1
result "test data with targets, and another number of samples than the validation data" "$(
    train_on tested 2 data.dataset=three.bp data.batch_size=4 data.test_batch_size=4 data.test_output_path=written
    [ -s written/output_2.h5 ] || ls written)"
# Test data whose target is not of the kind that training has.
for kind in mask image; do
    guarded dnn-prepare -q --generate blobs3d --set samples=4 --set size=8 --set classes=2 --to all.bp &&
        guarded dnn-prepare -q --export all all.bp &&
        guarded dnn-prepare -q --from all/input --target all/target --target-kind "$kind" --to "$kind.bp" || exit 1
    rm -rf all
done
kinds() { train_on kinds "$1" data.dataset="$2.bp" data.split=all data.validation=null data.test_dataset="$3.bp" data.test_split=all "${@:4}"; }
result "values as targets of a test, class numbers as those of the training" "$(
    kinds 1 mask image | grep -Fxq "dnn-train: target 'target' of the data has values, but that of the training data has class numbers; prepare both with the same --target-kind" ||
        cat output)"
result "class numbers as targets of a test, values as those of the training" "$(
    kinds 1 image mask loss=mse metrics=mse \
        layers='[{"class_name": "Conv3D", "config": {"filters": 1, "kernel_size": 1}}]' | grep -Fxq "dnn-train: target 'target' of the data has class numbers, but that of the training data has values; prepare both with the same --target-kind" ||
        cat output)"
# A network that ends in a sigmoid, and one of logits with a loss that applies it.
sed 's/"classes": 2/"classes": 1/; s/blobs.bp/one.bp/' prepare.json > one.json
guarded dnn-prepare -q one.json || exit 1
# sigmoid NAME ACTIVATION LOSS
sigmoid() {
    train_on "$1" 1 data.dataset=one.bp "loss=$3" 'metrics=["accuracy", "dice", "auc"]' layers="[
        {\"class_name\": \"Conv3D\", \"config\": {\"filters\": 1, \"kernel_size\": 3,
            \"padding\": \"same\", \"activation\": \"$2\"}}]"
}
for loss in bce dice; do
    result "$loss: metrics of logits are those of probabilities" "$(
        sigmoid "$loss-probabilities" sigmoid "\"$loss\""
        sigmoid "$loss-logits" linear "{\"function\": \"$loss\", \"source\": \"sigmoid\"}"
        near "$loss-probabilities" "$loss-logits" 1e-4)"
done
finish
