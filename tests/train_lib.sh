# train_lib.sh - sourced by tests that do harm to dnn-train, in bash: a small job, runs in
# the background, what they end with.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2317  # for those who source this

# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/train_config.sh
. "${srcdir:-.}/tests/train_config.sh"
# All files in a file system of our own, which is fast, and below it small ones to fill.
if [ -z "${DNN_HARM_MOUNTS-}" ]; then
    export DNN_HARM_MOUNTS=no
    for how in private unchanged; do
        if [ "$(id -u)" = 0 ] && unshare --mount --propagation "$how" true 2> /dev/null; then
            DNN_HARM_MOUNTS=yes exec unshare --mount --propagation "$how" bash "$0" "$@"
        fi
    done
fi
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-harm.XXXXXX")") || exit 1
clean_up() {
    cd /
    [ "$DNN_HARM_MOUNTS" = no ] || umount -R "$tmp" 2> /dev/null
    rm -rf "$tmp"
}
trap clean_up EXIT
if [ "$DNN_HARM_MOUNTS" = yes ]; then
    mount --make-rprivate "$(findmnt -n -o TARGET -T "$tmp")" 2> /dev/null
    mount -t tmpfs -o size=200m tmpfs "$tmp" || DNN_HARM_MOUNTS=no
fi
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache
mpirun=${MPIEXEC:-mpirun}

make_config 28 60 2
# For what is to happen in the middle: it does not end by itself.
long=(--set num_epochs=1000000)

# begin [RANKS] DIR OPTION...: in the background; sets $pid, what it says goes to said
begin() {
    local launch=()
    : > said
    case $1 in
    1) shift ;;
    [2-9]) launch=("$mpirun" -n "$1") && shift ;;
    esac
    "${launch[@]}" dnn-train --set dir="$1" "${@:2}" train.json > said 2>&1 &
    pid=$!
}
# ranks: the processes that train
ranks() {
    if [ "$(cat "/proc/$pid/comm")" = dnn-train ]; then
        echo "$pid"
    else
        cat "/proc/$pid/task/$pid/children"
    fi
}
# last: one of them that is not rank 0, if there is one
last() {
    ranks | awk '{ print $NF }'
}
# seen PATTERN: wait until it says so
seen() {
    wait_for said_or_over "$1"
    grep -q "$1" said || echo "never said: $1: $(cat said)"
}
said_or_over() {
    grep -q "$1" said || over
}
over() {
    ! kill -0 "$pid"
}
# ended STATUS PATTERN: it ends so, with this as the only words of its own; the launcher's do not count
ended() {
    local status=0
    wait_for over || { echo "it does not end"; kill -KILL "$pid"; }
    wait "$pid" 2> /dev/null || status=$?
    [[ $status =~ ^$1$ ]] || echo "status $status, not $1: $(cat said)"
    grep '^dnn-train: \|^[a-z]*: error: \|^\[.*error: ' said > words
    [ -z "$2" ] || [ "$(wc -l < words)" = 1 ] || echo "not one message: $(cat words)"
    grep -qxE "${2:-}|dnn-train: $2" words || [ -z "$2" ] || printf 'message: %s\nwanted: %s\n' "$(cat words)" "$2"
}
# train STATUS PATTERN [RANKS] DIR OPTION...: from beginning to end
train() {
    begin "${@:3}"
    ended "$1" "$2"
}
# sums DIR: checksums of the arrays of the newest checkpoint in it
sums() {
    dnn-train --verify "$(find "$1" -maxdepth 1 -name 'ckpt-*.bp' | sort | tail -n 1)" | grep -v 'run/sums\|^checkpoint\|ckpt-'
}
# whole DIR: a checkpoint is in it, and whole; no half one
whole() {
    [ -n "$(find "$1" -maxdepth 1 -name 'ckpt-*.bp')" ] || echo "no checkpoint in $1"
    local each
    for each in "$1"/ckpt-*.bp; do
        guarded dnn-train --verify "$each" > verified 2>&1 || cat verified
    done
    find "$1" -mindepth 1 -maxdepth 1 -name '.*'
}
# same DIR [RANKS]: the same command goes on to the same weights as an undisturbed run
same() {
    train 0 '' ${2:+"$2"} "$1"
    grep -q 'resuming from the checkpoint of step' said || cat said
    sums "$1/checkpoints" | diff want -
}

result "an undisturbed run" "$(train 0 '' undisturbed)"
sums undisturbed/checkpoints > want
result "has weights to compare with" "$([ "$(wc -l < want)" -gt 10 ] || cat want)"
