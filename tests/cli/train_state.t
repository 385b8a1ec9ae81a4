#!/bin/bash
# train_state.t - the state of a run: the best checkpoint and restoring it, EMA of the weights,
# checkpoints within an epoch, and settings that may change before a run is resumed.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-state.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > prepare.json << EOF2
{"generate": {"type": "blobs3d", "samples": 20, "size": 8, "classes": 2, "noise": 0.05},
 "to": "blobs.bp", "seed": 3, "steps": [{"split": {"train": 0.6, "validation": 0.4}}]}
EOF2
cat > train.json << EOF2
{"layers": {"zoo": "unet3d", "base": 2, "depth": 1, "classes": 3, "input": [8, 8, 8, 1]},
 "data": {"dataset": "blobs.bp", "batch_size": 3, "test_batch_size": 8},
 "num_epochs": 3, "seed": 5, "loss": "cross_entropy", "ema": 0.8,
 "optimizer": {"type": "Adam", "learning_rate": 0.05},
 "checkpoints": {"steps": 1, "keep": 100, "best": "loss"}, "deterministic": true}
EOF2
guarded dnn-prepare -q prepare.json || exit 1

# train STATUS DIR ARGS...: prints errors; its output is in the file output
train() {
    local want=$1 dir=$2 status=0
    shift 2
    guarded ${ranks:+"$MPIEXEC" -n "$ranks"} dnn-train --kernels heuristic --set dir="$dir" "$@" train.json \
        > output 2>&1 || status=$?
    [ "$status" = "$want" ] || { echo "status $status, not $want"; cat output; }
}
# prints TEXT...: the output contains each text
prints() {
    for text; do
        grep -qF -- "$text" output || { echo "no \"$text\" in"; cat output; }
    done
}
# sums DIR: checksums of the arrays of the newest checkpoint
sums() {
    dnn-train --verify "$(find "$1/checkpoints" -name 'ckpt-*.bp' | sort | tail -n 1)" |
        grep -v 'run/seconds\|run/bucket\|^checkpoint\|ckpt-'
}
# back DIR STEP NEW: copy DIR as if the run had been killed after this step
back() {
    cp -r "$1" "$3"
    rm -f "$3"/model.*
    for c in "$3"/checkpoints/ckpt-*.bp; do
        [ "$(basename "$c")" \> "ckpt-$(printf %09d "$2").bp" ] && rm -r "$c"
    done
}

# ---- EMA of the weights ----

result "the EMA is computed, and is the trained network" "$(
    train 0 one
    prints 'the saved weights are their exponential moving average (EMA)'
    [ "$(dnn-train --verify one/checkpoints/best.bp | grep -c '\.ema ')" = 22 ] ||
        dnn-train --verify one/checkpoints/best.bp)"
sums one > want
result "killed within an epoch, it resumes to the same EMA and the same files" "$(
    back one 7 killed
    train 0 killed
    prints 'resuming from the checkpoint of step 7: epoch 2, batch 3'
    sums killed | diff want -
    cmp one/model.weights.h5 killed/model.weights.h5)"
result "three ranks: the same bits" "$(
    ranks=3
    train 0 ranks
    sums ranks | diff want -
    cmp one/model.weights.h5 ranks/model.weights.h5)"
result "the EMA is evaluated, and does not change training" "$(
    train 0 without --set ema=0
    cut -d , -f 1,12 one/metrics.csv > a
    cut -d , -f 1,12 without/metrics.csv | diff - a
    grep -q "^epoch,loss$" a || cat a
    cut -d , -f 13- one/metrics.csv > a
    cut -d , -f 13- without/metrics.csv | diff - a > /dev/null && { echo "the same"; cat a; }
    sums without > a
    grep '\.ema' a
    grep -v '\.ema \|run/best' want | diff - <(grep -v run/best a))"
result "another run loads the EMA of a checkpoint" "$(
    train 0 next --set checkpoints.load=one --set num_epochs=1 --set ema=0 \
        --set optimizer='{"type": "SGD", "learning_rate": 1e-30}'
    dnn-train --verify one/checkpoints/ckpt-000000012.bp | sed -n 's/\.ema */ /p' | awk '{print $1, $4}' > a
    dnn-train --verify next/checkpoints/ckpt-000000004.bp | awk '{print $1, $4}' | grep -Fxf a | diff a -)"

# ---- the best checkpoint ----

best() { readlink "$1/checkpoints/best.bp"; }
# print the name of the checkpoint whose epoch is best in a column of metrics.csv
least() {
    awk -F , -v want="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) c = i; next }
        NR == 2 || $c + 0 < low { low = $c + 0; at = NR - 1 }
        END { printf "ckpt-%09d.bp", at * 4 }' "$1/metrics.csv"
}
result "best.bp is the best by its metric" "$(
    [ "$(best one)" = "$(least one loss)" ] || { best one; cat one/metrics.csv; }
    train 0 usual --set ema=0 --set checkpoints.best=null
    [ "$(best usual)" = "$(least usual val_loss)" ] || { best usual; cat usual/metrics.csv; })"
# With mode max, the largest loss, that of the first epoch, is the best.
result "a resumed run keeps the best value" "$(
    most='{"metric": "loss", "mode": "max", "patience": 9}'
    train 0 first --set early_stopping="$most"
    [ "$(best first)" = ckpt-000000004.bp ] || { best first; cat first/metrics.csv; }
    back first 9 again
    train 0 again --set early_stopping="$most"
    prints 'resuming from the checkpoint of step 9'
    [ "$(best again)" = ckpt-000000004.bp ] || best again)"
result "best_interval: checked every so many epochs" "$(
    train 0 seldom --set checkpoints.best_interval=2 --set checkpoints.steps=0
    [ "$(best seldom)" = ckpt-000000008.bp ] || [ "$(best seldom)" = ckpt-000000012.bp ] || best seldom
    [ "$(find seldom/checkpoints -name 'ckpt-*.bp' | wc -l)" = 3 ] || ls seldom/checkpoints)"
early='{"metric": "loss", "mode": "max", "patience": 1, "restore": true}'
result "early stopping, and the best weights are restored" "$(
    train 0 early --set ema=0 --set early_stopping="$early" --set num_epochs=30
    prints 'train: loss has not improved for 1 epochs; the best was ' 'train: restored the best weights: epoch 1, step 4, loss '
    train 0 taken --set ema=0 --set optimizer='{"type": "SGD", "learning_rate": 1e-30}' --set num_epochs=1 \
        --set checkpoints.load=early/model.weights.h5
    dnn-train --verify early/checkpoints/best.bp | awk '/kernel |bias / {print $1, $4}' > a
    dnn-train --verify taken/checkpoints/ckpt-000000004.bp | awk '/kernel |bias / {print $1, $4}' | diff a -
    ranks=2
    train 0 two --set ema=0 --set early_stopping="$early" --set num_epochs=30
    cmp early/model.weights.h5 two/model.weights.h5)"
result "the run is then finished, unless the rule changes" "$(
    cp early/model.weights.h5 before.h5
    steps=$(find early/checkpoints -name 'ckpt-*.bp' | wc -l)
    train 0 early --set ema=0 --set early_stopping="$early" --set num_epochs=30
    prints 'the run was ended by early_stopping or target_metric; change these to continue' 'restored the best weights'
    cmp before.h5 early/model.weights.h5
    [ "$(find early/checkpoints -name 'ckpt-*.bp' | wc -l)" = "$steps" ] || ls early/checkpoints
    train 0 early --set ema=0 --set num_epochs="$((steps / 4 + 1))"
    grep 'the run was ended' output
    [ "$(find early/checkpoints -name 'ckpt-*.bp' | wc -l)" = $((steps + 4)) ] || ls early/checkpoints)"
result "an unknown metric is an error before the first step" "$(
    train 3 bad --set checkpoints.best=val_lose
    prints 'dnn-train: checkpoints.best: unknown metric "val_lose"; available: loss, val_loss, val_accuracy' \
        'did you mean "val_loss"?'
    train 3 bad --set early_stopping='{"metric": "dice", "patience": 1}'
    prints 'dnn-train: early_stopping: unknown metric "dice"'
    train 3 bad --set target_metric='val_x,<,1'
    prints 'dnn-train: target_metric: unknown metric "val_x"'
    train 3 bad --set optimizer.lr_scheduler='{"type": "plateau", "metric": "val_x"}'
    prints 'unknown metric "val_x"'
    find bad -name '*.bp' 2> /dev/null)"

# ---- checkpoints.interval ----

result "checkpoints several times per epoch" "$(
    train 0 parts --set checkpoints='{"interval": 0.5, "keep": 100}' --set num_epochs=2
    find parts/checkpoints -name 'ckpt-*.bp' | sed 's/.*ckpt-0*//; s/.bp//' | sort -n | tr '\n' ' ' > a
    [ "$(cat a)" = "2 4 6 8 " ] || cat a
    train 0 parts2 --set checkpoints='{"interval": 0.3, "keep": 100, "best_interval": 100}' --set num_epochs=2
    find parts2/checkpoints -name 'ckpt-*.bp' | sed 's/.*ckpt-0*//; s/.bp//' | sort -n | tr '\n' ' ' > a
    [ "$(cat a)" = "2 3 4 5 6 8 " ] || cat a)"

# ---- checkpoints of other versions ----

build=$(dirname "$(command -v dnn-train)")
# changed HOW NAME: resume from a checkpoint that ckpt_edit has changed
changed() {
    rm -rf edited
    back one 8 edited
    "$build/tests/ckpt_edit" edited/checkpoints "$1" "$2"
    cp -r edited/checkpoints before
}
# kept: the refused checkpoint is still there, unchanged
kept() {
    diff -r -x lock before edited/checkpoints
    rm -r before
}
result "a missing field is named" "$(
    for name in run/epoch run/plateau/wait run/early_stopping/recent; do
        changed drop $name
        train 4 edited
        prints "edited/checkpoints/ckpt-000000008.bp: does not match this run: $name is missing"
        kept
    done)"
result "a field of another type or size, too" "$(
    changed real run/step
    train 4 edited
    prints 'ckpt-000000008.bp: does not match this run: run/step is f64 scalar, expected i64 scalar'
    kept
    changed short run/plateau/best
    train 4 edited
    prints 'ckpt-000000008.bp: does not match this run: run/plateau/best is f64 1, expected f64 8'
    kept)"
for n in 1 3; do
    result "format $n is refused" "$(
        changed format $n
        ranks=2
        train 3 edited
        prints "edited/checkpoints/ckpt-000000008.bp: has checkpoint format $n; this program reads format 2: use the version that wrote it, or start a new run in another directory"
        ranks=
        train 3 other --set num_epochs=1 --set checkpoints.load=edited
        prints "has checkpoint format $n; this program reads format 2"
        kept
        rm -rf other)"
done

# ---- settings that may change, and those that may not ----

result "another seed is an error" "$(
    train 3 one --set seed=6 --set num_epochs=4
    prints 'dnn-train: seed is 6, but was 5 in the checkpoint of step 12; set it back,' \
        'start a new run with another "dir" or checkpoints.resume false')"
result "another network, optimizer or ema is an error" "$(
    train 4 one --set layers.base=3
    prints 'if the network, its optimizer or "ema" has changed, set it back; or start a new run with another "dir"' \
        'does not match this run: '
    train 4 one --set ema=0
    prints '.ema is not expected')"
result "the batch size may change between epochs, not within one" "$(
    back one 6 within
    train 3 within --set data.batch_size=4
    prints 'data.batch_size is 4, but was 3 in the checkpoint of step 6, within an epoch'
    back one 8 between
    train 0 between --set data.batch_size=4
    prints 'changed since the checkpoint: data.batch_size is 4, was 3')"
result "so may the samples" "$(
    sed 's/"seed": 3/"seed": 4/; s/blobs.bp/other.bp/' prepare.json > other.json
    guarded dnn-prepare -q other.json
    train 3 within --set data.dataset=other.bp
    prints 'hash of the dataset is ')"
result "more epochs, another learning rate: logged and accepted" "$(
    train 0 between --set num_epochs=4 --set data.batch_size=4 --set optimizer.learning_rate=0.01
    prints 'changed since the checkpoint: optimizer is ' 'epoch 4/4')"
# The first metric is above 1, the other never is.
result "another metric for the best checkpoint: its history starts again" "$(
    train 0 other --set num_epochs=1 --set early_stopping='{"metric": "loss", "mode": "max", "patience": 9}'
    [ "$(best other)" = ckpt-000000004.bp ] || best other
    train 0 other --set num_epochs=2 --set checkpoints.best=val_accuracy
    prints 'changed since the checkpoint: checkpoints.best is val_accuracy, max, was loss, max' \
        'changed since the checkpoint: early_stopping is none, was loss, max'
    awk -F , 'NR == 2 && $12 <= 1 { print "loss is " $12 }' other/metrics.csv
    [ "$(best other)" = ckpt-000000008.bp ] || { best other; cat other/metrics.csv; })"
result "resume false starts a new run" "$(
    train 0 within --set seed=6 --set checkpoints.resume=false --set num_epochs=1
    grep 'resuming' output)"
result "the trained network cannot be written" "$(
    mkdir -p full/model.json
    train 5 full --set num_epochs=1
    prints 'dnn-train: full/model.json: '
    [ -e full/checkpoints/ckpt-000000004.bp ] || ls full)"
finish
