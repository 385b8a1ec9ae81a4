#!/bin/bash
# train_signal.t - signals at any time: a checkpoint, status 75, and the same weights after
# resuming; checkpoints that are damaged, or of another network.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/train_lib.sh
. "${srcdir:-.}/tests/train_lib.sh"

# ---- signals ----

message='after [0-9]+ steps, checkpoint saved; run the same command again to resume'
for signal in USR1 USR2 INT TERM; do
    result "SIG$signal" "$(
        begin "sig$signal" "${long[@]}"
        seen '^epoch 3/'
        kill "-$signal" "$pid"
        ended 75 "stopped by SIG$signal $message"
        whole "sig$signal/checkpoints")"
done
result "to one rank of two" "$(
    begin 2 sigone "${long[@]}"
    seen '^epoch 3/'
    kill -USR2 "$(last)"
    ended 75 "stopped by SIGUSR2 $message"
    whole sigone/checkpoints)"
result "many at once: the first is reported" "$(
    begin sigmany "${long[@]}"
    seen '^epoch 3/'
    kill -USR1 "$pid"
    for signal in TERM INT USR2 USR1 TERM; do
        kill "-$signal" "$pid" 2> /dev/null
    done
    ended 75 "stopped by SIG[A-Z0-9]* $message"
    whole sigmany/checkpoints)"
result "during the start" "$(
    begin sigstart
    wait_for catches_usr1 "$pid"
    kill -USR1 "$pid"
    ended 75 "stopped by SIGUSR1 $message"
    whole sigstart/checkpoints)"
result "it resumes and ends with the same weights" "$(same sigstart 2)"
result "after the last step it changes nothing" "$(
    begin siglast
    seen '^epoch 60/'
    kill -TERM "$pid" 2> /dev/null
    ended 0 ''
    sums siglast/checkpoints | diff want -)"

# One step, then a long evaluation.
guarded dnn-prepare -q --generate blobs3d --set samples=300 --set size=16 --set classes=2 --split 0.02,0.98 --to many.bp
cat > eval.json << EOF
{"layers": {"zoo": "unet3d", "base": 8, "depth": 1, "classes": 3, "input": [16, 16, 16, 1]},
 "data": {"dataset": "many.bp", "batch_size": 6, "test_batch_size": 1}, "num_epochs": 2, "seed": 5, "loss": "cross_entropy",
 "checkpoints": {"keep": 2}, "deterministic": true}
EOF
cp train.json small.json
cp eval.json train.json
result "an uninterrupted evaluation" "$(train 0 '' evaluated)"
sums evaluated/checkpoints > want
# works PID: it has used 0.4 s of CPU time, so it is after the step
# shellcheck disable=SC2317  # called through wait_for
works() {
    local field
    read -ra field < "/proc/$1/stat"
    [ $((field[13] + field[14])) -ge $(($(getconf CLK_TCK) * 4 / 10)) ]
}
for ranks in 1 2; do
    result "$ranks: a signal during evaluation" "$(
        begin "$ranks" evals"$ranks"
        seen '^train: run directory:'
        wait_for works "$(last)"
        kill -USR1 "$(last)"
        ended 75 "stopped by SIGUSR1 after [0-9]+ steps, checkpoint saved; run the same command again to resume"
        whole evals"$ranks"/checkpoints)"
    result "$ranks: it is evaluated again, and each epoch is recorded once" "$(
        same evals"$ranks" "$ranks"
        cut -d , -f 1-3 evals"$ranks"/metrics.csv | diff <(cut -d , -f 1-3 evaluated/metrics.csv) -)"
done
cp small.json train.json

# ---- checkpoints ----

sums undisturbed/checkpoints > want
# hurt FILE: change a bit in the middle
hurt() {
    local at byte
    at=$(($(stat -c %s "$1") / 2))
    byte=$(od -An -tu1 -j "$at" -N 1 "$1")
    printf '%b' "\\x$(printf %02x $((byte ^ 4)))" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}
result "the newest checkpoint is damaged: the one before it is used" "$(
    cp -r undisturbed one
    hurt one/checkpoints/ckpt-000000300.bp/data.0
    same one
    grep -q '^ckpt: warn: one/checkpoints/ckpt-000000300.bp.*; renamed to one/checkpoints/ckpt-000000300.bp.damaged; using the one before it$' output || cat output
    [ -d one/checkpoints/ckpt-000000300.bp.damaged ] || ls one/checkpoints)"
result "all are damaged: it starts from the beginning, with a warning" "$(
    cp -r undisturbed all
    n=0
    for each in all/checkpoints/ckpt-*.bp; do
        truncate -s 100 "$each/md.0"
        n=$((n + 1))
    done
    train 0 '' 2 all
    [ "$(grep -c '^ckpt: warn: all/checkpoints/ckpt-[0-9]*.bp.*renamed to all/checkpoints/ckpt-[0-9]*.bp.damaged' output)" = "$n" ] || cat output
    grep -qx "ckpt: warn: all/checkpoints: no valid checkpoint is left, all $n were damaged; starting a new run" output || cat output
    [ "$(find all/checkpoints -name '*.damaged' | wc -l)" = "$n" ] || ls all/checkpoints
    sums all/checkpoints | diff want -)"
result "a checkpoint of another network" "$(
    train 4 'if the network, its optimizer or "ema" has changed, set it back; or start a new run with another "dir" or checkpoints.resume false: undisturbed/checkpoints/ckpt-000000300.bp: does not match this run: conv/kernel is .*; and [0-9]+ more' undisturbed --set layers.config.layers[0].config.filters=7
    sums undisturbed/checkpoints | diff want -)"
finish
