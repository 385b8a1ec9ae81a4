#!/bin/bash
# train_limit.t - jobs/train_unet3d.sh against the time limits of a real private Slurm: one job
# sees the end of its allocation coming, one is told by Slurm (--signal).  Both leave a checkpoint
# and queue themselves again; the first then goes on to the weights of an undisturbed run.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck disable=SC2317  # functions are called through wait_for and check
# shellcheck source=tests/cluster/train_lib.sh
. "${srcdir:-.}/tests/cluster/train_lib.sh"
cluster_need
[ "$(nproc)" -ge 2 ] || skip_all "two jobs at a time need two cores"
train_begin 150

# The shortest limit there is, a minute, is long for such a network: what the script loads first
# takes until 18 s before the end, on the first start.  A signal that changes nothing takes the
# place of the script's.
module() {
    [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] ||
        sleep $((SLURM_JOB_END_TIME - $(date +%s) - 18))
}
export -f module
seen=$(submit --ntasks=1 --time=1 --signal=CONT@1 --export=ALL,DNN_MODULE=slow \
    "$jobs/train_unet3d.sh" "$tmp/train.json" --set dir="$tmp/seen")
told=$(submit --ntasks=1 --time=2 --signal=USR1@60 \
    "$jobs/train_unet3d.sh" "$tmp/train.json" --set dir="$tmp/told" --set num_epochs=1000000 --set checkpoints.interval=0)

# While the first one waits.
check "without Slurm" guarded env OMP_NUM_THREADS=1 dnn-train --quiet --set dir=alone train.json
sums alone > want
check "a job near the end of its time queues itself again" wait_for queued_again "$seen"
result "it stopped before the limit, with a checkpoint" \
    "$(said "$seen" 'stopped before the time limit after .* steps, checkpoint saved')"
check "a job that Slurm warns does so, too" wait_for queued_again "$told"
result "told by the signal, with a checkpoint" \
    "$(said "$told" 'stopped by SIGUSR1 after .* steps, checkpoint saved')"
result "which is whole" "$(
    for file in "$tmp"/told/checkpoints/ckpt-*.bp; do
        dnn-train --verify "$file" > out 2>&1 || cat out
    done)"
cl scancel "$told"

# Slurm lets such a job wait for two minutes; we only until the old step's server is gone.
check "the old step ends" wait_for grep -q "\[$seen\.0\] .*done with step" "$cluster_dir/log/steps.n1.log"
cl scontrol update "jobid=$seen" StartTime=now 2> out # it may have begun already
check "it is started again and ends well" wait_for job_is "$seen" COMPLETED
result "it went on from the checkpoint" "$(said "$seen" 'resuming from the checkpoint of step')"
result "and says that this is its second start" "$(said "$seen" '^job .* start 2$')"
result "to the same weights as without Slurm" "$(sums seen | diff want -)"
finish
