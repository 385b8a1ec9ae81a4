# train_lib.sh - sourced by tests that kill or disturb dnn-train: a small configuration, runs in
# the background, their status and message.
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
# All files are on a tmpfs, which is fast; below it are small file systems that can be filled.
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
# A run that does not end by itself.
long=(--set num_epochs=1000000)

# begin [RANKS] DIR OPTION...: train in the background; sets $pid; its output is in the file output
begin() {
    local launch=()
    : > output
    case $1 in
    1) shift ;;
    [2-9]) launch=("$mpirun" -n "$1") && shift ;;
    esac
    "${launch[@]}" dnn-train --set dir="$1" "${@:2}" train.json > output 2>&1 &
    pid=$!
}
# ranks: print the process ids of the ranks
ranks() {
    if [ "$(cat "/proc/$pid/comm")" = dnn-train ]; then
        echo "$pid"
    else
        cat "/proc/$pid/task/$pid/children"
    fi
}
# last: print the id of the last rank
last() {
    ranks | awk '{ print $NF }'
}
# seen PATTERN: wait until the output matches it
seen() {
    wait_for printed_or_over "$1"
    grep -q "$1" output || echo "never printed: $1: $(cat output)"
}
printed_or_over() {
    grep -q "$1" output || over
}
over() {
    ! kill -0 "$pid"
}
# ended STATUS PATTERN: it ends with this status and exactly one message, not counting those of mpirun
ended() {
    local status=0
    wait_for over || { echo "it does not end"; kill -KILL "$pid"; }
    wait "$pid" 2> /dev/null || status=$?
    [[ $status =~ ^$1$ ]] || echo "status $status, not $1: $(cat output)"
    grep '^dnn-train: \|^[a-z]*: error: \|^\[.*error: ' output > words
    [ -z "$2" ] || [ "$(wc -l < words)" = 1 ] || echo "not one message: $(cat words)"
    grep -qxE "${2:-}|dnn-train: $2" words || [ -z "$2" ] || printf 'message: %s\nwanted: %s\n' "$(cat words)" "$2"
}
# train STATUS PATTERN [RANKS] DIR OPTION...: train, and compare status and message
train() {
    begin "${@:3}"
    ended "$1" "$2"
}
# sums DIR: checksums of the arrays of the newest checkpoint in it
sums() {
    dnn-train --verify "$(find "$1" -maxdepth 1 -name 'ckpt-*.bp' | sort | tail -n 1)" | grep -v 'run/seconds\|run/bucket\|^checkpoint\|ckpt-'
}
# whole DIR: prints errors if DIR has no checkpoint, a damaged one, or temporary files
whole() {
    [ -n "$(find "$1" -maxdepth 1 -name 'ckpt-*.bp')" ] || echo "no checkpoint in $1"
    local each
    for each in "$1"/ckpt-*.bp; do
        guarded dnn-train --verify "$each" > verified 2>&1 || cat verified
    done
    find "$1" -mindepth 1 -maxdepth 1 -name '.*'
}
# same DIR [RANKS]: the same command resumes, and gives the weights of an uninterrupted run
same() {
    train 0 '' ${2:+"$2"} "$1"
    grep -q 'resuming from the checkpoint of step' output || cat output
    sums "$1/checkpoints" | diff want -
}

result "an uninterrupted run" "$(train 0 '' undisturbed)"
sums undisturbed/checkpoints > want
result "has weights to compare with" "$([ "$(wc -l < want)" -gt 10 ] || cat want)"
