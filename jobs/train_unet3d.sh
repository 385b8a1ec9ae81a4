#!/bin/bash
#SBATCH --job-name=dnn-unet3d
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
#
# train_unet3d.sh - train a 3D U-Net:    sbatch jobs/train_unet3d.sh [CONFIG.json] [OPTION...]
# Without a configuration file the script writes one, unet3d/train.json, and generates a dataset of
# fractals, both below the directory where sbatch was called.
# More ranks are faster:    sbatch --nodes=4 --ntasks=16 jobs/train_unet3d.sh
# Options after the configuration file go to dnn-train:
#     sbatch jobs/train_unet3d.sh unet3d/train.json --set num_epochs=40
#
# Two minutes before its time limit the job gets a signal (--signal); dnn-train then writes a
# checkpoint, ends with status 75, and the job is requeued to resume from it.  The same happens
# after a node failure or preemption, because of --requeue.  A finished run is not repeated;
# --set dir=OTHER starts a new one.
#
# SPDX-License-Identifier: Apache-2.0

set -euo pipefail

# DNN_MODULE is the environment module to load; without it dnn-train must be on PATH.
if [ -n "${DNN_MODULE:-}" ]; then module load "$DNN_MODULE"; fi

# Slurm 22.05 to 23.02 do not pass --cpus-per-task on to srun, so repeat it.
threads=${SLURM_CPUS_PER_TASK:-1}
export OMP_NUM_THREADS=$threads

# run COMMAND...: run it on all tasks; requeue the job if it ends with status 75.
run() {
    local status=0
    srun --mpi=pmix --cpus-per-task="$threads" --kill-on-bad-exit=1 "$@" || status=$?
    if [ "$status" = 75 ]; then
        echo "not finished: job $SLURM_JOB_ID is requeued to continue"
        scontrol requeue "$SLURM_JOB_ID" ||
            echo "requeueing failed: run the same sbatch command to resume from the checkpoint"
    fi
    [ "$status" = 0 ] || exit "$status"
}

# show NAME FILE...: print the path of the first file that exists.
show() {
    local name=$1 file
    shift
    for file in "$@"; do
        [ -e "$file" ] || continue
        printf '    %-12s%s\n' "$name" "$(realpath "$file")"
        return
    done
}

config=unet3d/train.json
case ${1:--} in
-*) ;;
*) config=$1 && shift ;;
esac
args=("$config" "$@")

echo "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, tasks: $SLURM_NTASKS, threads per task: $threads, start $((${SLURM_RESTART_COUNT:-0} + 1))"
if [ "$config" = unet3d/train.json ] && [ ! -e "$config" ]; then
    mkdir -p unet3d
    cat > unet3d/prepare.json << 'END'
{
    "generate": {"type": "fractals3d", "samples": 160, "seed": 1, "size": 5, "classes": 3},
    "to": "unet3d/fractals.bp",
    "seed": 1,
    "steps": [{"split": {"train": 0.8, "validation": 0.2}}]
}
END
    cat > unet3d/train.json.part << 'END'
{
    "layers": {"zoo": "unet3d", "base": 16, "depth": 2, "norm": "instance", "classes": 4, "input": [32, 32, 32, 1]},
    "data": {"dataset": "fractals.bp", "validation": "validation", "batch_size": 4, "test_batch_size": 8},
    "num_epochs": 30,
    "loss": [{"function": "cross_entropy"}, {"function": "Dice", "source": "softmax"}],
    "optimizer": {"type": "Adam", "learning_rate": 0.005, "lr_scheduler": {"type": "cosine", "minimum": 0.0001}},
    "metrics": ["dice", "iou"],
    "checkpoints": {"keep": 2, "best": "val_dice"}
}
END
    mv unet3d/train.json.part "$config"
fi
if [ "$config" = unet3d/train.json ] && [ ! -e unet3d/fractals.bp ]; then
    echo "making the dataset unet3d/fractals.bp"
    run dnn-prepare unet3d/prepare.json
fi
echo "training with $config"
run dnn-train "${args[@]}"

dir=$(dnn-train --where "${args[@]}")
echo "finished; results:"
show model "$dir/model.dnn" "$dir/model.weights.h5" "$dir/checkpoints/best.bp" "$dir/checkpoints"
show network "$dir/model.json"
show checkpoints "$dir/checkpoints"
show log "$dir/metrics.csv"
show report "$dir/report.html"
show pictures "$dir/pictures"
