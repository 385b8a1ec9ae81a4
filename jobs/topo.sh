#!/bin/bash
#SBATCH --job-name=dnn-topo
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=00:05:00
#SBATCH --output=%x-%j.log
#
# topo.sh - print where each rank runs:    sbatch jobs/topo.sh
# Try a layout before a long run:    sbatch --nodes=2 --ntasks=8 --cpus-per-task=16 jobs/topo.sh
# Arguments after the script go to dnn-bench topo:    sbatch jobs/topo.sh --json
#
# SPDX-License-Identifier: Apache-2.0

set -euo pipefail

# DNN_MODULE is the environment module to load; without it dnn-bench must be on PATH.
if [ -n "${DNN_MODULE:-}" ]; then module load "$DNN_MODULE"; fi

# Slurm 22.05 to 23.02 do not pass --cpus-per-task on to srun, so repeat it.
threads=${SLURM_CPUS_PER_TASK:-1}
export OMP_NUM_THREADS=$threads

srun --mpi=pmix --cpus-per-task="$threads" --kill-on-bad-exit=1 dnn-bench topo "$@"
