#!/bin/bash
#SBATCH --job-name=dnn-prepare
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=TERM@120
#
# prepare.sh - make a dataset from raw files:    sbatch jobs/prepare.sh prepare.json
# More ranks are faster and give the same dataset:
#     sbatch --nodes=4 --ntasks=64 jobs/prepare.sh prepare.json
# Arguments after the script go to dnn-prepare.
#
# Two minutes before its time limit the job gets a signal (--signal); dnn-prepare then finishes its
# pieces, ends with status 75, and the job is requeued to continue.  The same happens after a node
# failure or preemption, because of --requeue.
#
# SPDX-License-Identifier: Apache-2.0

set -euo pipefail

# DNN_MODULE is the environment module to load; without it dnn-prepare must be on PATH.
if [ -n "${DNN_MODULE:-}" ]; then module load "$DNN_MODULE"; fi

# Slurm 22.05 to 23.02 do not pass --cpus-per-task on to srun, so repeat it.
threads=${SLURM_CPUS_PER_TASK:-1}
export OMP_NUM_THREADS=$threads

status=0
srun --mpi=pmix --cpus-per-task="$threads" --kill-on-bad-exit=1 dnn-prepare "$@" || status=$?
if [ "$status" = 75 ]; then
    echo "not finished: job $SLURM_JOB_ID is requeued to continue"
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
