#!/bin/bash
# quickstart.t - ./quickstart after the build: it submits a job that trains, once, and prints its
# output.  On a project of a few files that builds nothing, with a small network, under a private
# Slurm.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck disable=SC2317,SC2016  # functions are called through wait_for; scripts are written
# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"
cluster_need
command -v dpkg-query > /dev/null || skip_all "no dpkg here"
cluster_begin --nodes 1
unset CI QUICKSTART_BEGAN "${!DNN_@}"
export DNN_CACHE=$tmp/cache XDG_CACHE_HOME=$tmp/cache DNN_PLACE=host DNN_SLURM=own MAKEFLAGS='' MFLAGS=''
src=$tmp/src output=$tmp/output
run=$src/build/unet3d

mkdir -p "$src/containers" "$src/config" "$run"
cp "$srcdir/quickstart" "$src"
cp "$srcdir/containers/private-root.sh" "$src/containers"
cp -r "$srcdir/jobs" "$src"
printf 'build  make  # why\nslurm  bash  # why\n' > "$src/containers/packages.list"
touch "$src/configure.ac" "$src/Makefile.am"
printf '#!/bin/sh\ncd "$(dirname "$0")" && cp configure.in configure && touch Makefile.in\n' > "$src/autogen.sh"
printf '#!/bin/sh\ncp "$(dirname "$0")/Makefile" . && touch config.status\n' > "$src/configure.in"
printf 'all:\n' > "$src/Makefile"
# quickstart uses the cluster of this test.
cat > "$src/build/dnn-cluster" << EOF2
#!/bin/bash
verb=\$1
shift
exec $(command -v dnn-cluster) "\$verb" --dir "$cluster_dir" "\$@"
EOF2
chmod +x "$src/autogen.sh" "$src/configure.in" "$src/build/dnn-cluster"
cat > "$run/train.json" << EOF2
{"layers": {"zoo": "unet3d", "base": 4, "depth": 1, "classes": 3, "input": [16, 16, 16, 1]},
 "data": {"dataset": "fractals.bp", "batch_size": 3}, "num_epochs": 1000000, "loss": "cross_entropy",
 "deterministic": true, "checkpoints": {"interval": 20}}
EOF2
guarded dnn-prepare --quiet --generate blobs3d --set samples=24 --set size=16 --set classes=2 \
    --split 0.75,0.25 --to "$run/fractals.bp" || exit 1

# has TEXT...: prints an error if one of them is not in the output of quickstart
has() {
    local text
    for text in "$@"; do
        grep -q -- "$text" "$output" || { echo "missing: $text"; tail -n 25 "$output"; return; }
    done
}
# ended STATUS CMD...: prints an error if it ends with another status; its output is in $output
ended() {
    local want=$1 status=0
    shift
    guarded "$@" > "$output" 2>&1 < /dev/null || status=$?
    [ "$status" = "$want" ] || { echo "status $status, not $want"; tail -n 25 "$output"; }
}
epochs_come() {
    [ "$(grep -c '^epoch [0-9]*/1000000: ' "$output")" -gt 2 ]
}

guarded "$src/quickstart" > "$output" 2>&1 < /dev/null &
pid=$!
check "epochs are printed while the job runs" wait_for epochs_come
kill -TERM "$(ps -o pid= --ppid "$pid" | head -n 1)"
status=0
wait "$pid" || status=$?
result "it first prints a description" "$(head -n 1 "$output" | grep -v '^This installs')"
check_text "interrupted, it ends with status 130" "$status" 130
result "and prints the state of job and Slurm" \
    "$(has 'job [0-9]* is cancelled; the private Slurm, if there is one, keeps running' 'the same command continues')"
id=$(sed -n 's/.*job \([0-9]*\) is cancelled.*/\1/p' "$output")
check "the job is cancelled in Slurm" job_is "$id" CANCELLED
result "there is a checkpoint" "$(compgen -G "$run/run-train/checkpoints/ckpt-*.bp" > /dev/null || find "$run")"

step=$(find "$run/run-train/checkpoints" -name 'ckpt-*.bp' | sort | sed -n '$s/.*ckpt-0*\([0-9]*\)\.bp/\1/p')
sed -i "s/1000000/$((step / 6 + 10))/" "$run/train.json"
result "the same command resumes" "$(ended 0 "$src/quickstart"
    has "resuming from the checkpoint of step $step:" 'the network is trained; the log of the job is /')"
result "and prints the paths of the results" "$(has "^    model  *$run/run-train/" "^    log  *$run/run-train/metrics.csv")"
result "the third time it does not train" "$(ended 0 "$src/quickstart"
    has 'the network is trained already' "^    model  *$run/run-train/"
    ! grep -q '^epoch ' "$output" || cat "$output")"

rm -r "$run/run-train"
sed -i 's/"dataset": "fractals.bp"/"dataset": "nowhere.bp"/' "$run/train.json"
result "if the job fails, quickstart fails and prints the end of the log" "$(ended 1 "$src/quickstart"
    has 'nowhere.bp' 'ended as FAILED, exit code 5:0' 'the end of its log is above, the whole log is /')"
finish
