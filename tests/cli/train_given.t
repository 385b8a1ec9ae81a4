#!/bin/bash
# train_given.t - dnn-train and its environment: time limit of the allocation, signals at any
# moment, threads, --early and --target-metric.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-given.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache
unset OMP_NUM_THREADS "${!SLURM_@}"

cat > train.json << EOF2
{"layers": {"zoo": "unet3d", "base": 2, "depth": 1, "classes": 3, "input": [8, 8, 8, 1]},
 "data": {"dataset": "blobs.bp", "batch_size": 4}, "num_epochs": 1000000, "loss": "cross_entropy",
 "optimizer": {"type": "Adam", "learning_rate": 0.01}, "threads": 1}
EOF2
guarded dnn-prepare -q --generate blobs3d --set samples=12 --set size=8 --set classes=2 \
    --split 0.7,0.3 --to blobs.bp || exit 1

# train STATUS COMMAND...: prints an error if the status is another; its output is in $tmp/output
train() {
    local want=$1 status=0
    shift
    guarded "$@" > output 2>&1 || status=$?
    [ "$status" = "$want" ] || { echo "status $status, not $want"; tail -n 20 output; }
}
prints() {
    grep -q -- "$1" output || { echo "missing: $1"; tail -n 20 output; }
}

# ---- time limit ----

end=$(($(date +%s) + 19))
result "shortly before the time limit: status 75" "$(
    train 75 env SLURM_JOB_ID=7 SLURM_JOB_END_TIME=$end dnn-train train.json)"
result "it ended before the time limit" "$([ "$(date +%s)" -lt "$end" ] || echo "$(($(date +%s) - end)) s too late")"
result "with a checkpoint and a message" \
    "$(prints '^dnn-train: stopped before the time limit after .* steps, checkpoint saved; run the same command'
    compgen -G 'run-train/checkpoints/ckpt-*.bp' > out || echo "no checkpoint")"
result "a time limit in the past: one more step, then it stops again" "$(
    train 75 env SLURM_JOB_ID=7 SLURM_JOB_END_TIME=1700000000 dnn-train train.json
    prints 'resuming from the checkpoint of step')"
result "an invalid SLURM_JOB_END_TIME is refused" "$(
    train 2 env SLURM_JOB_ID=7 SLURM_JOB_END_TIME=soon dnn-train train.json
    prints 'SLURM_JOB_END_TIME')"

# ---- signals ----

# Sent repeatedly as soon as there is a signal handler: before the configuration is read, and
# while the checkpoint is written.
result "many signals at any moment: a checkpoint, status 75" "$(
    dnn-train --set dir=often train.json > output 2>&1 &
    pid=$!
    wait_for catches_usr1 "$pid"
    wait_for eval ! kill -USR1 "$pid" || { echo "it does not end"; kill -KILL "$pid"; }
    wait "$pid"
    status=$?
    [ $status = 75 ] || { echo "status $status"; cat output; }
    prints 'stopped by SIGUSR1 after .* steps, checkpoint saved')"

# ---- threads ----

# threads N COMMAND...: prints an error if the log has another number of threads
threads() {
    local n=$1
    shift
    train 0 "$@" dnn-train --set num_epochs=1 --set dir="t$RANDOM" -s checkpoints.interval=0 train.json
    grep -qE "(, |with )$n threads? each" output || { echo "not $n threads"; cat output; }
}
result "the key threads is used" "$(threads 1)"
result "it overrides OMP_NUM_THREADS" "$(threads 1 env OMP_NUM_THREADS=2)"
sed -i 's/"threads": 1/"threads": 0/' train.json
result "without the key, OMP_NUM_THREADS is used" "$(threads 1 env OMP_NUM_THREADS=1)"
cores=$(guarded dnn-bench topo | sed -n 's/.*, \([0-9]*\) of [0-9]* cores used.*/\1/p')
result "without both, the number of cores" "$(threads "${cores:-none}")"

# A machine with two NUMA domains, simulated by hwloc.
numa=(env 'HWLOC_SYNTHETIC=numa:2 core:1 pu:1' HWLOC_THISSYSTEM=1)
if [ "$(nproc)" -ge 2 ]; then
    result "a rank across NUMA domains has all their cores, with a warning" "$(threads 2 "${numa[@]}"
        prints 'the cores of rank 0 span 2 NUMA domains; one rank per NUMA domain')"
    result "two ranks have one domain each" "$(threads 1 "${numa[@]}" "$MPIEXEC" --bind-to none -n 2
        grep 'NUMA domains' output)"
else
    skip "ranks and NUMA domains" "one core"
fi

# ---- --early and --target-metric ----

result "--target-metric" "$(
    train 0 dnn-train --set dir=target --target-metric "val_loss,<,100" train.json
    prints '^trained: 1 epoch')"
result "--early" "$(
    train 0 dnn-train --set dir=early --set num_epochs=50 --set optimizer.learning_rate=1e-12 --early "val_loss,~<,2" train.json
    [ "$(wc -l < early/metrics.csv)" -lt 20 ] || tail -n 3 early/metrics.csv)"
result "an invalid rule" "$(train 3 dnn-train --early "val_loss" train.json
    prints 'early_stopping.*must be "METRIC,>,NUMBER"')"
result "--where" "$(
    [ "$(dnn-train --where train.json)" = run-train ] || dnn-train --where train.json
    [ "$(dnn-train --where --set dir=/x/y train.json)" = /x/y ] || dnn-train --where --set dir=/x/y train.json)"
result "--quiet prints nothing" "$(train 0 dnn-train --quiet --set dir=quiet --set num_epochs=1 train.json
    cat output)"
finish
