#!/bin/bash
# train.t - dnn-train on a real private Slurm: a batch job that is told to stop, is queued
# again and goes on by itself, to the same weights as without Slurm.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck disable=SC2317  # functions are called through wait_for
# shellcheck source=tests/cluster/train_lib.sh
. "${srcdir:-.}/tests/cluster/train_lib.sh"
cluster_need
[ "$(nproc)" -ge 2 ] || skip_all "jobs/train_unet3d.sh needs two cores"
train_begin 60

training() {
    [ "$(wc -l < run-train/metrics.csv)" -gt 2 ]
}

check "without Slurm" guarded env OMP_NUM_THREADS=1 dnn-train --quiet --set dir=alone train.json
sums alone > want
id=$(submit "$jobs/train_unet3d.sh" "$tmp/train.json")
check "a batch job trains" wait_for training
cl scancel --signal=USR1 "$id"
check "told to stop, it queues itself again" wait_for queued_again "$id"
result "after a checkpoint" "$(said "$id" 'stopped by SIGUSR1 after .* steps, checkpoint saved')"
# Slurm lets such a job wait for two minutes; we only until the old step's server is gone.
check "the old step ends" wait_for grep -q "\[$id\.0\] .*done with step" "$cluster_dir/log/steps.n1.log"
cl scontrol update "jobid=$id" StartTime=now 2> out # it may have begun already
check "it is started again and ends well" wait_for job_is "$id" COMPLETED
result "it went on from the checkpoint" "$(said "$id" 'resuming from the checkpoint of step')"
result "to the same weights as without Slurm" "$(sums run-train | diff want -)"
result "and says where they are, in full" "$(
    for name in model checkpoints log; do
        file=$(sed -n "s/^    $name  *//p" "$tmp/$id.out")
        [[ $file == "$tmp"/run-train/* && -e $file ]] || { echo "$name: \"$file\""; tail -n 9 "$tmp/$id.out"; }
    done)"
# Words behind the job reach dnn-train; a run that is finished is not trained again.
cl sbatch --wait --output="$tmp/again.out" "$jobs/train_unet3d.sh" "$tmp/train.json" --log=debug
result "the same again is already done" "$(sums run-train | diff want -
    grep -q "^    log  *$tmp/run-train/metrics.csv" again.out || cat again.out)"
finish
