#!/bin/bash
# train_limit.t - time limits of jobs/train_unet3d.sh on a private Slurm: one job stops because of
# SLURM_JOB_END_TIME, one because of --signal.  Both write a checkpoint and are requeued; the
# first then ends with the weights of an uninterrupted run.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck disable=SC2317  # functions are called through wait_for and check
# shellcheck source=tests/cluster/train_lib.sh
. "${srcdir:-.}/tests/cluster/train_lib.sh"
cluster_need
[ "$(nproc)" -ge 2 ] || skip_all "two jobs at a time need two cores"
train_begin 150

# Slurm's shortest time limit, a minute, is long for this network: on the first start, the fake
# module that the script loads sleeps until 18 s before the end.  --signal=CONT, which does
# nothing, overrides the signal of the script.
module() {
    [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] ||
        sleep $((SLURM_JOB_END_TIME - $(date +%s) - 18))
}
export -f module
seen=$(submit --ntasks=1 --time=1 --signal=CONT@1 --export=ALL,DNN_MODULE=slow \
    "$jobs/train_unet3d.sh" "$tmp/train.json" --set dir="$tmp/seen")
signalled=$(submit --ntasks=1 --time=2 --signal=USR1@60 \
    "$jobs/train_unet3d.sh" "$tmp/train.json" --set dir="$tmp/signalled" --set num_epochs=1000000 --set checkpoints.interval=0)

# While the first job waits.
check "without Slurm" guarded env OMP_NUM_THREADS=1 dnn-train --quiet --set dir=alone train.json
sums alone > want
check "a job near its time limit is requeued" wait_for queued_again "$seen"
result "it stopped before the limit, with a checkpoint" \
    "$(logged "$seen" 'stopped before the time limit after .* steps, checkpoint saved')"
check "a job that gets --signal is requeued, too" wait_for queued_again "$signalled"
result "stopped by the signal, with a checkpoint" \
    "$(logged "$signalled" 'stopped by SIGUSR1 after .* steps, checkpoint saved')"
result "which is complete" "$(
    for file in "$tmp"/signalled/checkpoints/ckpt-*.bp; do
        dnn-train --verify "$file" > out 2>&1 || cat out
    done)"
cl scancel "$signalled"

# A requeued job waits for two minutes; start it as soon as the old step has ended.
check "the old step ends" wait_for grep -q "\[$seen\.0\] .*done with step" "$cluster_dir/log/steps.n1.log"
cl scontrol update "jobid=$seen" StartTime=now 2> out # it may have begun already
check "it is started again and completes" wait_for job_is "$seen" COMPLETED
result "it resumed from the checkpoint" "$(logged "$seen" 'resuming from the checkpoint of step')"
result "and prints that this is its second start" "$(logged "$seen" '^job .* start 2$')"
result "the weights are the same as without Slurm" "$(sums seen | diff want -)"
finish
