#!/bin/bash
# train.t - dnn-train on a private Slurm: a batch job is stopped by a signal, requeued, resumes,
# and ends with the same weights as without Slurm.
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
check "after SIGUSR1 it is requeued" wait_for queued_again "$id"
result "with a checkpoint" "$(logged "$id" 'stopped by SIGUSR1 after .* steps, checkpoint saved')"
# A requeued job waits for two minutes; start it as soon as the old step has ended.
check "the old step ends" wait_for grep -q "\[$id\.0\] .*done with step" "$cluster_dir/log/steps.n1.log"
cl scontrol update "jobid=$id" StartTime=now 2> out # it may have begun already
check "it is started again and completes" wait_for job_is "$id" COMPLETED
result "it resumed from the checkpoint" "$(logged "$id" 'resuming from the checkpoint of step')"
result "the weights are the same as without Slurm" "$(sums run-train | diff want -)"
result "and it prints the full paths of the results" "$(
    for name in model checkpoints log; do
        file=$(sed -n "s/^    $name  *//p" "$tmp/$id.out")
        [[ $file == "$tmp"/run-train/* && -e $file ]] || { echo "$name: \"$file\""; tail -n 9 "$tmp/$id.out"; }
    done)"
# Arguments after the configuration are passed to dnn-train; a finished run is not repeated.
cl sbatch --wait --output="$tmp/again.out" "$jobs/train_unet3d.sh" "$tmp/train.json" --log=debug
result "the same job again does not train" "$(sums run-train | diff want -
    grep -q "^    log  *$tmp/run-train/metrics.csv" again.out || cat again.out)"
finish
