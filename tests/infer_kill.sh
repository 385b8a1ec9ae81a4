#!/bin/bash
# infer_kill.sh - dnn-infer is killed many times, at random moments, on 1 to 4 ranks, with samples
# in tiles and in batches; sometimes it is asked to stop.  A file with its final name is always
# complete, and the result is bitwise that of an uninterrupted run.
#
#     tests/infer_kill.sh [KILLS [SECONDS]]      SECONDS: no more kills after this time
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/infer_lib.sh
. "${srcdir:-.}/tests/infer_lib.sh"
kills=${1:-30}
seconds=${2:-86400}
mpirun=${MPIEXEC:-mpirun}
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-kill.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache
# As for make check: allow Open MPI to run as root and with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
seed=${SEED:-$$}
RANDOM=$seed
echo "# SEED=$seed"
make_model
make_volumes tiles 3 240 32 24
make_volumes batches 400 8

# set_command MODE DIR: sets the array $infer
set_command() {
    local formats=hdf5,npy,nifti,png,overlay
    [ "$1" = tiles ] || formats=hdf5,npy
    infer=(dnn-infer seg/model.dnn "$1" --output "$2" --format "$formats" --content "values,classes"
        --set deterministic=true --set inference.gzip=true --set data.test_batch_size=3)
}
# ms: print the time in milliseconds
ms() {
    echo $((${EPOCHREALTIME/[.,]/} / 1000))
}
# alive PID...: print those that are running
alive() {
    local pid stat
    for pid; do
        stat=
        read -r stat 2> /dev/null < "/proc/$pid/stat"
        case $stat in
        '' | *') Z '* | *') X '*) ;;
        *) echo "$pid" ;;
        esac
    done
}
complain() {
    bad="${bad}kill $n: $1"$'\n'
    echo "# kill $n: $1" | head -20
}

declare -A took
for mode in tiles batches; do
    begin=$(ms)
    set_command $mode want-$mode
    result "$mode: an uninterrupted run" "$(guarded "${infer[@]}" > output 2>&1 || cat output)"
    took[$mode]=$(($(ms) - begin + 150))
    result "$mode: has files to compare with" \
        "$([ "$(find want-$mode -name '*_classes.npy' | wc -l)" -ge 3 ] || ls want-$mode)"
done

# start RANKS: start a run; sets $pid
start() {
    : > output
    rank=()
    set_command "$mode" run
    if [ "$1" = 1 ]; then
        "${infer[@]}" > output 2>&1 &
    else
        # A killed mpirun does not remove its session directory; a later one with the same
        # process id would fail.
        rm -rf "$tmp/session"
        mkdir "$tmp/session"
        PRTE_MCA_prte_tmpdir_base=$tmp/session "$mpirun" -n "$1" "${infer[@]}" > output 2>&1 &
    fi
    pid=$!
}
# ranks_of RANKS: set $rank to the process ids of the ranks that have been started
ranks_of() {
    if [ "$1" = 1 ]; then
        rank=("$pid")
    else
        read -ra rank 2> /dev/null < "/proc/$pid/task/$pid/children"
        [ "${#rank[@]}" -gt 0 ] || rank=("$pid")
    fi
}
# strike RANKS: kill one rank, all ranks, or only the launcher; or ask one rank to stop
strike() {
    ranks_of "$1"
    case $((RANDOM % 4)) in
    0) kill -KILL "${rank[RANDOM % ${#rank[@]}]}" ;;
    1) kill -KILL "${rank[@]}" "$pid" ;;
    2) kill -KILL "$pid" ;;
    *) kill -USR1 "${rank[RANDOM % ${#rank[@]}]}" ;;
    esac 2> /dev/null
}
# is_over: every process ends in limited time; one that does not is killed by its id
is_over() {
    local from left
    from=$(ms)
    while :; do
        read -ra left <<< "$(alive "$pid" "${rank[@]}" | tr '\n' ' ')"
        [ "${#left[@]}" -gt 0 ] || break
        if [ $(($(ms) - from)) -gt $((guard * 1000)) ]; then
            complain "still running after $guard s: ${left[*]}: $(tail -n 3 output)"
            kill -KILL "${left[@]}"
            break
        fi
        sleep 0.01
    done
    from=$(($(ms) - from))
    [ "$from" -le "$longest" ] || longest=$from
}
# whole: files that have their final names are those of the uninterrupted run
whole() {
    [ ! -d run ] || differs "want-$mode" run | grep -v "^Only in want-$mode\|^Only in run: \.outputs\.tmp$"
}
# look_back: check output and files of the killed run
look_back() {
    local diffs
    if grep -q 'resuming an interrupted run' output; then
        continued=$((continued + 1))
        [ "$ranks" = "$before" ] || others=$((others + 1))
    fi
    diffs=$(whole)
    [ -z "$diffs" ] || complain "$mode, incomplete files: $(head -n 6 <<< "$diffs")"
    [ ! -e run/.outputs.tmp/committing ] || renaming=$((renaming + 1))
    [ "$status" != 75 ] || stopped=$((stopped + 1))
    [ -d run/.outputs.tmp ] || empty=$((empty + 1))
    before=$ranks
}
# compare: compare the result of a successful run
compare() {
    local diffs
    diffs=$(differs "want-$mode" run)
    [ -z "$diffs" ] || complain "$mode: it ended differently: $(head -n 6 <<< "$diffs")"
    finished=$((finished + 1))
    rm -rf run
    cycle=0
}

bad='' n=0 continued=0 others=0 stopped=0 finished=0 renaming=0 empty=0 longest=0 cycle=0 before=0 printed=0 mode=tiles
begun=$SECONDS
while [ "$n" -lt "$kills" ] && [ $((SECONDS - begun)) -lt "$seconds" ]; do
    counts=(1 1 2 2 3 4)
    ranks=${counts[RANDOM % 6]} status=0
    if [ "$cycle" = 0 ]; then
        modes=(tiles batches)
        mode=${modes[RANDOM % 2]}
    fi
    cycle=$((cycle + 1))
    start "$ranks"
    # After some kills the run may finish.
    if [ "$cycle" -le 6 ]; then
        nap=$((RANDOM * (took[$mode] + ranks * 80) / 32768))
        sleep "$(printf '%d.%03d' $((nap / 1000)) $((nap % 1000)))"
        strike "$ranks"
    fi
    wait "$pid" 2> /dev/null || status=$?
    is_over
    if [ "$status" = 0 ]; then
        compare
        continue
    elif [ "$cycle" -gt 6 ]; then
        complain "not killed, but status $status: $(cat output)"
        cycle=0
        rm -rf run
        continue
    fi
    n=$((n + 1))
    look_back
    if [ $((n * 10 / kills)) -gt "$printed" ]; then
        printed=$((n * 10 / kills))
        echo "# $n of $kills kills, $continued continued, $((SECONDS - begun)) s"
    fi
done

status=0
start 2
wait "$pid" || status=$?
result "the last run ends well" "$([ "$status" = 0 ] || { echo "status $status"; cat output; })"
[ "$status" != 0 ] || compare
result "stopped $n times: files are complete, and the same as without interruption" "$bad"
# With few kills these may not happen.
if [ "$n" -ge 100 ]; then
    result "runs continued, also on other numbers of ranks" "$([ "$others" -gt 0 ] || echo "$continued, $others")"
    result "runs stopped when asked" "$([ "$stopped" -gt 0 ] || echo "never")"
fi
echo "# $n kills in $((SECONDS - begun)) s: $continued times continued, $others of them on another number of ranks;" \
    "$stopped stopped with status 75, $renaming while files got their names, $empty without temporary files; $finished runs" \
    "finished; all processes were gone after at most $longest ms"
finish
