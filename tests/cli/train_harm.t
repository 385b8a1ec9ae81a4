#!/bin/bash
# train_harm.t - failures of real machines: full disks, read-only directories, removed data,
# killed ranks, too little memory, NaN.  Each gives one message and the documented status, and
# checkpoints are kept.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/train_lib.sh
. "${srcdir:-.}/tests/train_lib.sh"

# ---- disks ----

full='(No space left on device|the disk is full).*'
if [ "$DNN_HARM_MOUNTS" = yes ]; then
    mkdir small
    for ranks in 1 2; do
        front=''
        [ "$ranks" = 1 ] || front='rank 0: '
        mount -t tmpfs -o size=180k tmpfs small
        result "$ranks: the disk is full: the message names file and reason" "$(
            train 5 "$front"'small/run/(checkpoints/ckpt-[0-9]*.bp|metrics.csv|metrics.jsonl|events/[^:]*): cannot be written: .*'"$full" \
                "$ranks" small/run "${long[@]}")"
        result "$ranks: earlier checkpoints are complete" "$(whole small/run/checkpoints)"
        result "$ranks: with free space it resumes" "$(
            mount -o remount,size=10m small
            begin "$ranks" small/run "${long[@]}"
            seen '^train: resuming from the checkpoint of step'
            seen '^epoch .*'
            kill -TERM "$(last)"
            ended 75 'stopped by SIGTERM after [0-9]+ steps, checkpoint saved; run the same command again to resume'
            whole small/run/checkpoints)"
        umount small
        # Only the disk of the run directory is full.
        mount -t tmpfs -o size=24k tmpfs small
        result "$ranks: no space for metrics" "$(
            train 5 "$front"'small/run/(metrics.csv|metrics.jsonl|events/[^:]*): cannot be written: No space left on device' \
                "$ranks" small/run --set checkpoints.save=other"$ranks" "${long[@]}")"
        result "$ranks: its checkpoints are complete, and no row is truncated" "$(
            whole other"$ranks"
            tail -c 1 small/run/metrics.csv | od -An -c | grep -q '\\n' || tail -n 2 small/run/metrics.csv)"
        umount small
    done
    mount -t tmpfs -o size=380k tmpfs small
    result "a small disk: the same weights after it is enlarged" "$(
        head -c 200k /dev/zero > small/filler
        train 5 '.*: cannot be written: .*'"$full" small/run
        rm small/filler
        mount -o remount,size=10m small
        same small/run)"
    umount small

    mount -t tmpfs -o ro tmpfs small
    result "a read-only directory" "$(train 5 'small/run: cannot be created: Read-only file system' small/run)"
    result "the same on two ranks, once" "$(train 5 'rank 0: small/run: cannot be created: Read-only file system' 2 small/run)"
    umount small
    mkdir -p small/run
    mount -t tmpfs -o ro tmpfs small/run
    result "an existing run directory that is read-only" "$(
        train 5 'small/run/checkpoints: cannot be created: Read-only file system' small/run)"
    umount small/run
    result "it becomes read-only during a run" "$(
        begin middle --set checkpoints.steps=10 --set num_epochs=2000
        seen '^epoch 20/'
        mount -t tmpfs -o ro tmpfs middle/checkpoints
        ended 5 'middle/checkpoints/ckpt-[0-9]*.bp: .*(: (Read-only file system|No such file or directory|Stale file handle)( : .*)?|profiling.json.*)'
        umount middle/checkpoints)"
    result "earlier checkpoints are complete, and it resumes" "$(
        begin middle "${long[@]}"
        seen '^train: resuming from the checkpoint of step'
        kill -TERM "$pid"
        ended 75 'stopped by SIGTERM after .*'
        grep -h 'ckpt: warn: .*renamed' output
        # Temporary files could not be removed then; the resumed run has removed them.
        whole middle/checkpoints)"
else
    skip "full and read-only disks" "mount namespaces are not allowed"
fi

# ---- data ----

result "a dataset that does not exist" "$(train 5 'rank 0: no.bp: No such file or directory' 2 lost --set data.dataset=no.bp)"
# Settings so that samples are read again in each epoch.
reads=(--set data.window=8KiB --set data.memory=1MiB)
result "a dataset that is not kept in memory" "$(train 0 '' pieces "${reads[@]}")"
sums pieces/checkpoints > pieces.want
for ranks in 1 2; do
    front=''
    [ "$ranks" = 1 ] || front='rank [01]: '
    cp -r blobs.bp cut.bp
    result "$ranks: it is truncated during a run" "$(
        begin "$ranks" "cut$ranks" --set data.dataset=cut.bp "${reads[@]}"
        seen '^epoch 5/'
        truncate -s 4096 cut.bp/data.0
        ended 4 "$front"'cut.bp/data.0: truncated before byte [0-9]+')"
    result "$ranks: checkpoints are complete" "$(whole "cut$ranks/checkpoints")"
    rm -rf cut.bp
    cp -r blobs.bp cut.bp
    result "$ranks: with the data restored, it resumes to the same weights" "$(
        train 0 '' "$ranks" "cut$ranks" --set data.dataset=cut.bp "${reads[@]}"
        grep -q 'resuming from the checkpoint of step' output || cat output
        sums "cut$ranks/checkpoints" | diff pieces.want -)"
    rm -rf cut.bp
done
result "a dataset that is renamed during a run can still be read" "$(
    cp -r blobs.bp moved.bp
    begin moved --set data.dataset=moved.bp "${reads[@]}" "${long[@]}"
    seen '^epoch 5/'
    rm -rf moved.bp
    seen "^epoch $(($(grep -c '^epoch' output) + 20))/"
    kill -TERM "$pid"
    ended 75 'stopped by SIGTERM after .*')"
if guarded python3 -c 'import numpy' 2> /dev/null; then
    python3 -c '
import numpy as np
import os
rng = np.random.default_rng(1)
os.makedirs("raw/x")
os.makedirs("raw/y")
for i in range(12):
    np.save(f"raw/x/{i:02}.npy", rng.random((8, 8, 8, 1), dtype=np.float32))
    np.save(f"raw/y/{i:02}.npy", rng.integers(0, 3, (8, 8, 8, 1)).astype(np.uint8))
x = rng.random((12, 8, 8, 8, 1), dtype=np.float32)
x[7, 3, 2, 1, 0] = np.nan
np.savez("big.npz", x=1e18 * x[:, :2, 0, 0, 0], y=rng.random((12, 1), dtype=np.float32))
np.savez("nan.npz", x=x, y=rng.integers(0, 3, (12, 8, 8, 8, 1)).astype(np.int32))'
    files=(--set data.dataset=null --set data.input_path=raw/x --set data.target_path=raw/y --set data.target_is_mask=true)
    result "a file that only one rank reads is removed" "$(
        begin 2 raw "${files[@]}" "${long[@]}"
        seen '^epoch 3/'
        rm raw/x/07.npy
        ended 5 'rank [01]: .*raw/x/07.npy: .*No such file or directory')"
    result "checkpoints are complete, too" "$(whole raw/checkpoints)"
    guarded dnn-prepare -q --from nan.npz --target-kind mask --allow-nan --to nan.bp
    nan_message='nan.bp: all\[7\] \(nan.npz\[7\]\): input\[3,2,1,0\] is NaN; values must be finite'
    nan=(--set data.dataset=nan.bp --set data.split=all)
    result "a NaN in the data" "$(train 4 "$nan_message" nan1 "${nan[@]}")"
    result "on two ranks" "$(train 4 "rank [01]: $nan_message" 2 nan2 "${nan[@]}")"
    # Gradients of 1e36 are finite; the updated weights are not.
    guarded dnn-prepare -q --from big.npz --to big.bp
    cp train.json kept.json
    cat > train.json << EOF
{"layers": {"class_name": "Sequential", "config": {"name": "net", "layers": [
  {"class_name": "Dense", "config": {"name": "dense", "units": 1, "batch_input_shape": [null, 2]}}]}},
 "data": {"dataset": "big.bp", "split": "all", "batch_size": 4}, "num_epochs": 2, "loss": "mse",
 "optimizer": {"type": "SGD", "learning_rate": 1000000}}
EOF
    result "an update that makes an infinite weight" "$(
        train 4 "step 2: NaN or infinity, first in weight 'dense/kernel' after the previous update; lower the learning rate, clip gradients, or check the data" big)"
    result "is not saved" "$(
        train 4 "step 1: element 0 of 'dense/kernel' became NaN or infinite in the update; no checkpoint is saved; lower the learning rate or clip gradients" \
            big --set checkpoints.steps=1
        find big/checkpoints -name '*.bp*')"
    mv kept.json train.json
else
    skip "raw files, and a NaN in the data" "no numpy"
fi

# ---- numbers ----

burst=(--set optimizer.type=SGD --set optimizer.learning_rate=1000000 --set deterministic=false --set checkpoints.steps=1)
for ranks in 1 2; do
    front=''
    [ "$ranks" = 1 ] || front='rank [01]: '
    result "$ranks: a learning rate that is too large: the message has step and layer" "$(
        train 4 "$front""step [0-9]+: NaN or infinity, first in layer '(conv|norm|out)' \([a-z_]+, [a-z]+\)( in the backward pass)?; lower the learning rate, clip gradients, or check the data" \
            "$ranks" burst"$ranks" "${burst[@]}")"
    result "$ranks: an earlier checkpoint is complete" "$(whole burst"$ranks"/checkpoints)"
done

# ---- memory ----

result "memory_limit too small: an error with the sizes" "$(
    train 8 'the training step needs [0-9.]+ KiB \(.*\), but only 10.0 KiB is allowed; even with "recompute": true it needs [0-9.]+ KiB: reduce the input or the network' \
        poor --set memory_limit=10KiB)"
result "on two ranks, once" "$(train 8 'rank 0: the training step needs .* is allowed; .*' 2 poor --set memory_limit=10KiB)"
result "a memory limit of the system" "$(
    ulimit -v 500000
    train 8 '.*not enough memory.* [0-9]+ MiB .*' poor)"

# ---- ranks ----

result "one of three ranks is killed: the others report it and end" "$(
    begin 3 killed "${long[@]}"
    seen '^epoch 10/'
    all=$(ranks)
    kill -KILL "$(last)"
    ended '(7|137)' 'rank 2 on [^ ]* died \(process [0-9]+; killed\?\) .*; rank [01] .*; terminating all ranks'
    for each in $all; do
        wait_for eval "! grep ') [^ZX] ' /proc/$each/stat" || echo "process $each is still running"
    done)"
result "the run resumes on another number of ranks" "$(
    begin 2 killed "${long[@]}"
    seen '^train: resuming from the checkpoint of step'
    kill -USR1 "$(last)"
    ended 75 'stopped by SIGUSR1 after .*')"
finish
