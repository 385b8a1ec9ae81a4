#!/bin/bash
#SBATCH --job-name=dnn-infer
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
#
# infer.sh - apply a trained network to samples:
#     sbatch jobs/infer.sh CONFIG.json [OPTION...]
#     sbatch jobs/infer.sh MODEL INPUT... --output DIR [OPTION...]
# More ranks are faster and give the same results:
#     sbatch --nodes=4 --ntasks=64 jobs/infer.sh model.dnn scans --output masks
# All arguments go to dnn-infer.
#
# Two minutes before its time limit the job gets a signal (--signal); dnn-infer then records what
# is complete, ends with status 75, and the job is requeued to compute the rest.  The same happens
# after a node failure or preemption, because of --requeue.  A run that cannot be resumed (slices of
# volumes with targets) ends with status 9 and is not requeued: it needs a longer time limit.
#
# SPDX-License-Identifier: Apache-2.0

set -euo pipefail

if [ $# = 0 ]; then
    echo "usage: sbatch infer.sh CONFIG.json [OPTION...], or sbatch infer.sh MODEL INPUT... --output DIR" >&2
    exit 2
fi

# DNN_MODULE is the environment module to load; without it dnn-infer must be on PATH.
if [ -n "${DNN_MODULE:-}" ]; then module load "$DNN_MODULE"; fi

# Slurm 22.05 to 23.02 do not pass --cpus-per-task on to srun, so repeat it.
threads=${SLURM_CPUS_PER_TASK:-1}
export OMP_NUM_THREADS=$threads

status=0
srun --mpi=pmix --cpus-per-task="$threads" --kill-on-bad-exit=1 dnn-infer "$@" || status=$?
if [ "$status" = 75 ]; then
    echo "not finished: job $SLURM_JOB_ID is requeued to continue"
    scontrol requeue "$SLURM_JOB_ID" ||
        echo "requeueing failed: run the same sbatch command to compute what is missing"
fi
exit "$status"
