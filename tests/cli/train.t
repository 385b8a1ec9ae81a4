#!/bin/bash
# train.t - dnn-train from the command line: a small network learns; stopped and killed runs
# resume and end with the same weights; deterministic: the same bits on any number of ranks.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-train.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > prepare.json << EOF2
{"generate": {"type": "blobs3d", "samples": 30, "size": 16, "classes": 2, "noise": 0.05},
 "to": "blobs.bp", "seed": 3, "steps": [{"split": {"train": 0.7, "validation": 0.3}}]}
EOF2
cat > train.json << EOF2
{"layers": {"zoo": "unet3d", "base": 4, "depth": 1, "classes": 3, "input": [16, 16, 16, 1]},
 "data": {"dataset": "blobs.bp", "validation": "validation", "batch_size": 4, "test_batch_size": 4},
 "num_epochs": 3, "seed": 5, "loss": "cross_entropy",
 "optimizer": {"type": "Adam", "learning_rate": 0.01},
 "checkpoints": {"steps": 2, "keep": 2, "best": "loss"}, "deterministic": true}
EOF2
guarded dnn-prepare -q prepare.json || exit 1

# train DIR STATUS ARGS...: prints errors; its output is in $tmp/output
train() {
    local dir=$1 want=$2 status=0
    shift 2
    guarded "$@" dnn-train --set dir="$dir" train.json > output 2>&1 || status=$?
    [ "$status" = "$want" ] || { echo "status $status, not $want"; cat output; }
}
# sums DIR: checksums of the arrays of the newest checkpoint
sums() {
    dnn-train --verify "$(find "$1/checkpoints" -name 'ckpt-*.bp' | sort | tail -n 1)" |
        grep -v 'run/seconds\|run/bucket\|^checkpoint\|ckpt-'
}

result "a network learns" "$(train one 0)"
result "the log has the number of epochs and steps" "$(grep -q '^trained: 3 epochs, 18 steps' output || cat output)"
result "metrics.csv has a row for each epoch, and the loss decreases" "$(
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") c = i; next }
        { if (NR > 2 && $c >= last) print "loss " $c " after " last; last = $c }
        END { if (NR != 4) print NR " lines" }' one/metrics.csv)"
result "with loss and metrics of the validation samples" "$(
    head -n 1 one/metrics.csv | grep -q 'val_loss,val_' || head -n 1 one/metrics.csv)"
sums one > want
result "the last checkpoints are kept and complete" "$(
    [ "$(find one/checkpoints -name 'ckpt-*.bp' | wc -l)" = 2 ] || find one/checkpoints
    [ "$(wc -l < want)" -gt 20 ] || cat want)"
result "the same command again does not train" "$(train one 0; sums one | diff want -)"

for n in 2 3; do
    result "$n ranks: the same bits" "$(train "ranks$n" 0 "$MPIEXEC" -n $n; sums "ranks$n" | diff want -)"
done

# Stopped by a signal, and killed until it ends.
result "SIGUSR1: a checkpoint, status 75" "$(
    # A run that ends before the signal is repeated.
    for _ in {1..20}; do
        rm -rf stopped
        dnn-train --set dir=stopped train.json > output 2>&1 &
        pid=$!
        wait_for eval "catches_usr1 $pid || ! kill -0 $pid"
        kill -USR1 "$pid" 2> out
        status=0
        wait "$pid" || status=$?
        [ "$status" = 0 ] || break
    done
    [ "$status" = 75 ] || echo "status $status"
    grep -q 'stopped by SIGUSR1 after .* steps, checkpoint saved' output || cat output)"
result "it resumes and ends with the same weights" "$(train stopped 0
    grep -q 'resuming from the checkpoint of step' output || cat output
    sums stopped | diff want -)"
result "killed at random moments: the same weights in the end" "$(
    RANDOM=7
    for _ in 1 2 3 4 5 6; do
        timeout -s KILL "0.$((RANDOM % 8 + 2))" dnn-train --set dir=killed train.json > output 2>&1
    done
    train killed 0 "$MPIEXEC" -n 2
    sums killed | diff want -)"

# ---- errors ----

result "data of another shape" "$(
    status=0
    guarded dnn-train --set dir=bad --set layers.input='[8,8,8,1]' train.json > output 2>&1 || status=$?
    [ $status = 4 ] || echo "status $status"
    grep -q "^dnn-train: input 'input' of the data has shape 16x16x16x1, but the network expects ?x8x8x8x1" output || cat output)"
result "a dataset that does not exist" "$(
    status=0
    guarded dnn-train --set data.dataset=no.bp train.json > output 2>&1 || status=$?
    [ $status = 5 ] || { echo "status $status"; cat output; }
    grep -q 'no.bp' output || cat output)"
result "a learning rate that is too large: the message names the layer" "$(
    status=0
    guarded dnn-train --set dir=nan --set optimizer.learning_rate=1000000 \
        --set optimizer.type=SGD --set deterministic=false train.json > output 2>&1 || status=$?
    [ $status = 4 ] || echo "status $status"
    grep -q 'NaN or infinity, first in' output || cat output)"
finish
