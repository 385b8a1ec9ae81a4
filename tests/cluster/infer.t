#!/bin/bash
# infer.t - jobs/infer.sh on a private Slurm: a job computes, on one node and on two; one is stopped
# by a signal, requeued, and computes what is missing; one is stopped near its time limit.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck disable=SC2317  # functions are called through wait_for and check
# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"
# shellcheck source=tests/infer_lib.sh
. "${srcdir:-.}/tests/infer_lib.sh"
cluster_need
[ "$(nproc)" -ge 2 ] || skip_all "jobs/infer.sh needs two cores"
cluster_begin --nodes 2
jobs=$(cd "$srcdir/jobs" && pwd)
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache
make_model
make_volumes scans 2 200 40 32

# job DIR OPTION...: prints the id of a job; options of sbatch are in the array $how
how=()
job() {
    submit "${how[@]}" "$jobs/infer.sh" "$tmp/seg/model.dnn" "$tmp/scans" --output "$tmp/$1" \
        --format npy,hdf5,nifti --set deterministic=true "${slow[@]}" "${@:2}"
}
# some DIR: parts of the outputs are complete
some() {
    [ "$(cat "$1"/.outputs.tmp/journal.* | wc -c)" -ge 100 ]
}
# logged ID TEXT: prints an error if the log of the job has no such line
logged() {
    grep -q "$2" "$tmp/$1.out" || tail -n 20 "$tmp/$1.out"
}

# Each tile is computed eight times.
slow=(--set 'inference.flips=[0,1,2]' --set inference.overlap=0.5)
check "without Slurm" guarded env OMP_NUM_THREADS=1 dnn-infer -q seg/model.dnn scans --output alone \
    --format npy,hdf5,nifti --set deterministic=true "${slow[@]}"
how=(--wait)
id=$(job one)
result "a job computes" "$(job_is "$id" COMPLETED || cat "$tmp/$id.out")"
result "with the bytes of a run without Slurm" "$(differs alone one)"
how=(--wait --nodes=2 --ntasks=2)
id=$(job two)
result "a job on two nodes" "$(job_is "$id" COMPLETED || cat "$tmp/$id.out")"
result "has the same bytes" "$(differs alone two)"

how=()
id=$(job stopped)
check "parts are complete" wait_for some stopped
cl scancel --signal=USR1 "$id"
check "after SIGUSR1 it is requeued" wait_for queued_again "$id"
result "it says what to do" "$(logged "$id" 'the same command computes what is missing')"
result "no file has its final name" "$(find stopped -type f -not -path '*/.outputs.tmp/*')"
# A requeued job waits for two minutes; start it as soon as the old step has ended.
check "the old step ends" wait_for grep -qs "\[$id\.0\] .*done with step" "$cluster_dir"/log/steps.n?.log
cl scontrol update "jobid=$id" StartTime=now 2> out # it may have begun already
check "it is started again and completes" wait_for job_is "$id" COMPLETED
result "it computed only what was missing" "$(logged "$id" 'resuming an interrupted run: [1-9][0-9]* of')"
result "with the same bytes" "$(differs alone stopped)"

slow=(--set 'inference.flips=[0,1,2]' --set 'inference.overlap=0.85')
how=(--time=1 --signal=USR1@50)
id=$(job limited)
check "a job near its time limit is requeued" wait_for queued_again "$id"
result "it was stopped" "$(logged "$id" 'stopped before all samples were computed')"
cl scancel "$id"
finish
