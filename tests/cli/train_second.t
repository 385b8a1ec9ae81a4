#!/bin/bash
# train_second.t - training with {"type": "Hessian"}: L-BFGS over whole evaluations.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-second.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > prepare.json << EOF2
{"generate": {"type": "blobs3d", "samples": 22, "size": 8, "classes": 2, "noise": 0.05},
 "to": "blobs.bp", "seed": 3, "steps": [{"split": {"train": 0.7, "validation": 0.3}}]}
EOF2
cat > train.json << EOF2
{"layers": [
  {"class_name": "Conv3D", "config": {"name": "a", "filters": 4, "kernel_size": 3, "padding": "same",
   "activation": "tanh", "kernel_regularizer": {"class_name": "L2", "config": {"l2": 0.0001}}}},
  {"class_name": "Conv3D", "config": {"name": "b", "filters": 3, "kernel_size": 1, "activation": "softmax"}}],
 "input": [8, 8, 8, 1],
 "data": {"dataset": "blobs.bp", "validation": "validation", "batch_size": 6, "test_batch_size": 4},
 "num_epochs": 12, "seed": 5, "loss": "cross_entropy", "optimizer": {"type": "Hessian"},
 "checkpoints": {"keep": 2, "interval": 0}, "deterministic": true}
EOF2
guarded dnn-prepare -q prepare.json || exit 1

# train DIR STATUS COMMAND... -- KEY=VALUE...: prints errors; its output is in $tmp/output
train() {
    local dir=$1 want=$2 status=0 before=() set=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        before+=("$1")
        shift
    done
    for key in "${@:2}"; do set+=(--set "$key"); done
    guarded "${before[@]}" dnn-train --set dir="$dir" "${set[@]}" train.json > output 2>&1 || status=$?
    # shellcheck disable=SC2053  # a pattern
    [[ $status == $want ]] || { echo "status $status, not $want"; cat output; }
}
# sums DIR: checksums of the arrays of the newest checkpoint
sums() {
    dnn-train --verify "$(find "$1/checkpoints" -name 'ckpt-*.bp' | sort | tail -n 1)" |
        grep -v 'run/seconds\|run/bucket\|^checkpoint\|ckpt-'
}
# column DIR NAME: print a column of metrics.csv
column() {
    awk -F , -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next }
        { print $c }' "$1/metrics.csv"
}

result "it trains" "$(train one 0 -- checkpoints.interval=1 checkpoints.keep=20)"
result "the loss decreases in each epoch" "$(
    column one loss | awk 'NR > 1 && $1 >= last { print $1 " after " last } { last = $1 }
        END { if (NR != 12) print NR " epochs" }')"
sums one > want
result "its state is saved" "$(for a in iterations vectors point sum low/slope ended; do
    grep -q "hessian/$a" want || echo "no hessian/$a"; done)"

# Adam gets as many passes over the samples as L-BFGS had evaluations, with several rates.
passes=$(($(column one step | tail -n 1) / 3))
result "its loss is lower than Adam's after as many passes" "$(
    for rate in 0.003 0.01 0.03 0.1; do
        train "adam$rate" 0 -- num_epochs=$passes \
            optimizer="{\"type\": \"Adam\", \"learning_rate\": $rate}"
        echo "$(column one loss | tail -n 1) $(column "adam$rate" loss | tail -n 1)" |
            awk -v r=$rate '!($1 < $2) { print "Adam at " r " has " $2 ", L-BFGS " $1 }'
    done)"

for n in 2 3; do
    result "$n ranks: the same bits" "$(
        train "ranks$n" 0 "$MPIEXEC" -n $n
        sums "ranks$n" | diff want -
        column one loss | diff - <(column "ranks$n" loss))"
done
result "2 ranks, not deterministic: the same up to rounding" "$(
    train free 0 "$MPIEXEC" -n 2 -- deterministic=false num_epochs=4
    paste <(column one loss | head -n 4) <(column free loss) |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-3 * $1) print }
            END { if (NR != 4) print NR " epochs" }')"

result "steps_per_epoch: as with only these samples" "$(
    for n in 6 15; do
        guarded dnn-prepare -q --generate blobs3d --set samples=$n --set size=8 --set classes=2 --to first$n.bp
        train first$n 0 -- data.dataset=first$n.bp data.split=all data.validation=null data.shuffle=false \
            num_epochs=4 steps_per_epoch=1
    done
    diff <(column first6 loss) <(column first15 loss))"
# Stopped between any two batches, it resumes to the same weights.
result "killed every few batches: the same weights in the end" "$(
    for _ in $(seq 12); do
        timeout -s KILL 0.35 dnn-train --set dir=killed --set checkpoints.steps=1 train.json > output 2>&1
    done
    train killed 0 -- checkpoints.steps=1
    sums killed | diff want -)"
# stop PID CONDITION...: send SIGUSR1 when the condition is true; it may have ended before
stop() {
    wait_for eval "${*:2} || ! kill -0 $1"
    kill -USR1 "$1" 2> out
    status=0
    wait "$1" || status=$?
}
result "SIGUSR1: a checkpoint between two batches, status 75" "$(
    # A run that ends before the signal is repeated.
    for _ in {1..20}; do
        rm -rf stopped
        dnn-train --set dir=stopped --set checkpoints.steps=1 train.json > output 2>&1 &
        stop $! test -s stopped/metrics.csv
        [ "$status" = 0 ] || break
    done
    [ "$status" = 75 ] || echo "status $status"
    grep -q 'stopped by SIGUSR1 after .* steps, checkpoint saved' output || cat output)"
result "it has the weights of the last step, not those of the line search" "$(
    for file in one/checkpoints/ckpt-*.bp; do dnn-train --verify "$file"; done > all
    kernel=$(sums stopped | awk '$1 == "a/kernel" { print $4 }')
    grep -q "^a/kernel .* ${kernel:-none} ok" all || { sums stopped; cat all; })"
result "it resumes on another number of ranks, to the same weights" "$(
    train stopped 0 "$MPIEXEC" -n 2
    sums stopped | diff want -)"

# Most of the time is spent in evaluation, so that most signals arrive there.
sed 's/"samples": 22/"samples": 160/; s/blobs.bp/many.bp/; s/0.7/0.04/; s/0.3}/0.96}/' prepare.json > many.json
guarded dnn-prepare -q many.json || exit 1
many=(data.dataset=many.bp data.test_batch_size=1 num_epochs=8)
result "stopped during evaluation: each epoch is recorded exactly once" "$(
    train whole 0 -- "${many[@]}"
    for i in 1 2 3 4 5; do
        : > output
        dnn-train --set dir=parts "${many[@]/#/--set=}" train.json > output 2>&1 &
        stop $! grep -q "'^epoch $i/'" output
        [[ $status =~ ^(0|75)$ ]] || { echo "status $status"; cat output; }
    done
    train parts 0 -- "${many[@]}"
    sums whole | diff - <(sums parts)
    column whole val_loss | diff - <(column parts val_loss))"

# ---- stopping rules ----

# ends NAME TEXT KEY=VALUE...: it ends with this text in the log
ends() {
    local name=$1 text=$2
    shift 2
    result "$name" "$(rm -rf end; train end 0 -- num_epochs=200 "$@"
        grep -q "^train: $text\$" output || cat output)"
}
ends "the gradient is short" "absolute_tolerance reached" optimizer.absolute_tolerance=0.05
ends "the gradient is small relative to the loss" "relative_tolerance reached" \
    optimizer.relative_tolerance=0.5
ends "enough evaluations" "max_func_eval reached" optimizer.max_func_eval=7
result "an unfinished step counts if it decreased the loss" "$(
    [ "$(column end step | tail -n 1)" = 21 ] || cat end/metrics.csv)"
ends "enough steps" "max_iterations reached" optimizer.max_iterations=3
result "metrics.csv has as many epochs" "$([ "$(column end loss | wc -l)" = 3 ] || cat end/metrics.csv)"
sums end > ended
result "the same command again does not train" "$(
    train end 0 -- num_epochs=200 optimizer.max_iterations=3
    grep -q '^train: max_iterations reached$' output || cat output
    sums end | diff ended -)"
result "with other settings it continues" "$(
    train end 0 -- num_epochs=200 optimizer.max_iterations=2
    column end loss | awk 'NR > 1 && $1 >= last { print $1 " after " last } { last = $1 }
        END { if (NR != 5) print NR " epochs" }')"

result "settings that change before it has ended: the same command again does not train" "$(
    rm -rf end
    train end 0 -- num_epochs=2
    for _ in 1 2; do train end 0 -- num_epochs=200 optimizer.max_iterations=4; done
    [ "$(column end loss | wc -l)" = 4 ] || cat end/metrics.csv)"

# ---- errors ----

refused() {
    local name=$1 text=$2
    shift 2
    result "$name" "$(train bad 3 -- "$@"
        grep -qF "dnn-train: optimizer: Hessian $text" output || cat output)"
}
refused "random transforms" "needs a deterministic loss, but data.transforms has random augmentation" \
    'data.transforms=[{"random_horizontal_flip": 0.5}]'
refused "gradients that are clipped" "does not support gradient clipping" clip_norm=1
refused "dropout" "needs a deterministic loss, but layer 'drop' is random" \
    'layers=[{"class_name": "Dropout", "config": {"name": "drop", "rate": 0.5}}, {"class_name": "Conv3D", "config": {"filters": 3, "kernel_size": 1}}]' \
    'loss={"function": "cross_entropy", "source": "softmax"}'
finish
