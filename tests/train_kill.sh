#!/bin/bash
# train_kill.sh - dnn-train is killed many times, at random moments and while it writes a
# checkpoint, on 1 to 4 ranks; sometimes its newest checkpoint is damaged.  The result is bitwise
# that of an uninterrupted run.
#
#     tests/train_kill.sh [KILLS [SECONDS]]      SECONDS: no more kills after this time
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/train_config.sh
. "${srcdir:-.}/tests/train_config.sh"
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

# Five batches per epoch; the last one is smaller.
make_config 27 16 3

# newest DIR: print the name of its newest checkpoint
newest() {
    find "$1/checkpoints" -maxdepth 1 -name 'ckpt-*.bp' | sort | tail -n 1
}
# sums DIR: print checksums of the arrays of the newest checkpoint, without that of the seconds
sums() {
    dnn-train --verify "$(newest "$1")" | grep -v 'run/seconds\|run/bucket\|^checkpoint\|ckpt-'
}
# rows DIR: print metrics.csv without times.  Validation metrics are sums over ranks: their last
# digits depend on the number of ranks.
rows() {
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        { printf "%s %s %s %.9g %.9g\n", $c["epoch"], $c["step"], $c["loss"], $c["val_loss"], $c["val_accuracy"] }' \
        "$1/metrics.csv"
}
# lines DIR: print the epochs of metrics.jsonl, in order
lines() {
    sed -E 's/"(time|seconds|samples_per_second|data|compute|comm|straggler)": *[^,}]*//g; s/"val_[a-z]*": *[^,}]*//g' \
        "$1/metrics.jsonl" | grep '"epoch"'
}
ms() {
    echo $((${EPOCHREALTIME/[.,]/} / 1000))
}
# nap MS
nap() {
    sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
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

begin=$(ms)
result "an uninterrupted run" "$(guarded dnn-train -q --set dir=want train.json 2>&1 || echo "status $?")"
took=$(($(ms) - begin))
sums want > want.sums
rows want > want.rows
lines want > want.lines
result "has weights and epochs to compare with" "$(
    [ "$(wc -l < want.sums)" -gt 10 ] || cat want.sums
    [ "$(wc -l < want.rows)" = 16 ] || cat want.rows
    [ "$(wc -l < want.lines)" -ge 16 ] || cat want.lines)"

# ---- starting ----

# start RANKS: start a run; sets $pid
start() {
    : > output
    rank=()
    if [ "$1" = 1 ]; then
        dnn-train --set dir=run train.json > output 2>&1 &
    else
        # A killed mpirun does not remove its session directory; a later one with the same
        # process id would fail.
        rm -rf "$tmp/session"
        mkdir "$tmp/session"
        PRTE_MCA_prte_tmpdir_base=$tmp/session "$mpirun" -n "$1" \
            dnn-train --set dir=run train.json > output 2>&1 &
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
# damage: change a bit or the end of a file of the newest checkpoint, if there is an older one; sets $hurt
damage() {
    local files file size at byte
    hurt=
    [ "$(find run/checkpoints -maxdepth 1 -name 'ckpt-*.bp' 2> /dev/null | wc -l)" -ge 2 ] || return
    hurt=$(newest run)
    mapfile -t files < <(find "$hurt" -type f -size +0 | sort)
    file=${files[RANDOM % ${#files[@]}]}
    size=$(stat -c %s "$file")
    at=$(((RANDOM * 32768 + RANDOM) % size))
    if [ $((RANDOM % 3)) = 0 ]; then
        truncate -s "$at" "$file"
    else
        byte=$(od -An -tu1 -j "$at" -N 1 "$file")
        printf '%b' "\\x$(printf %02x $((byte ^ 1 << RANDOM % 8)))" |
            dd of="$file" bs=1 seek="$at" conv=notrunc status=none
    fi
    what="$file at byte $at of $size"
    damages=$((damages + 1))
}
# is_found: the next run has found the damage
is_found() {
    grep -q "^ckpt: warn: $hurt.*; renamed to $hurt\.damaged.*; using the one before it\$" output ||
        complain "damage of $what was not found: $(cat output)"
    [ -e "$hurt.damaged" ] || complain "$hurt was not set aside"
    hurt=
}

# ---- killing ----

# until_inside: wait until a checkpoint is being written, and a random time more
until_inside() {
    local i now was='' more=$((RANDOM % 8))
    for ((i = 1; more >= 0; i++)); do
        set -- run/checkpoints/.ckpt-*.part
        now=$1
        case $now in
        "$was" | *\**) ;;
        *) was=$now more=$((more - 1)) ;;
        esac
        ((i % 50)) || [ -n "$(alive "$pid")" ] || return
    done
    [ $((inside * 5)) -lt $((n * 2)) ] || for ((i = RANDOM % 4 * (RANDOM % 1000); i > 0; i--)); do :; done
}
# loaded: it has resumed from a checkpoint, or ended
# shellcheck disable=SC2317  # called through wait_for
loaded() {
    grep -q '^train: run directory:\|^trained' output || [ -z "$(alive "$pid")" ]
}
# strike RANKS: kill one rank, all ranks, or only the launcher
strike() {
    local victims
    one=0
    ranks_of "$1"
    case $((RANDOM % 3)) in
    0) victims=("${rank[RANDOM % ${#rank[@]}]}") one=$((${#rank[@]} > 1)) ;;
    1) victims=("${rank[@]}" "$pid") ;;
    *) victims=("$pid") ;;
    esac
    kill -KILL "${victims[@]}" 2> /dev/null
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
# compare: compare the result of a successful run
compare() {
    local diffs
    diffs=$(
        sums run | diff want.sums -
        rows run | diff want.rows -
        lines run | diff want.lines -
        find run/checkpoints -mindepth 1 -maxdepth 1 -name '.*'
    )
    [ -z "$diffs" ] || complain "it ended differently: $(head -n 6 <<< "$diffs")"
    finished=$((finished + 1))
    rm -rf run
    cycle=0 before=0
}
# look_back: check the output of the killed run
look_back() {
    if grep -q 'resuming from the checkpoint' output; then
        resumed=$((resumed + 1))
        [ "$ranks" = "$before" ] || [ "$before" = 0 ] || others=$((others + 1))
    fi
    # The other ranks or the launcher report the killed rank, and nothing else.
    [ "$one" = 0 ] || grep -q 'died (process [0-9]*; killed?)\|signal 9 (Killed)' output ||
        complain "the killed rank was not reported: $(cat output)"
    ! grep '^dnn-train: ' output | grep -qv 'died (process' || complain "messages: $(grep '^dnn-train: ' output)"
    ! compgen -G 'run/checkpoints/.ckpt-*.part' > /dev/null || inside=$((inside + 1))
    before=$ranks
}

bad='' n=0 inside=0 resumed=0 others=0 damages=0 finished=0 longest=0 cycle=0 before=0 hurt='' printed=0
begun=$SECONDS
while [ "$n" -lt "$kills" ] && [ $((SECONDS - begun)) -lt "$seconds" ]; do
    counts=(1 1 2 2 3 4)
    ranks=${counts[RANDOM % 6]} cycle=$((cycle + 1)) status=0
    [ $((RANDOM % 5)) != 0 ] || damage
    start "$ranks"
    if [ -n "$hurt" ]; then
        wait_for loaded
        is_found
    fi
    # After some kills the run may finish.
    if [ "$cycle" -le 7 ]; then
        # Some kills that should hit a checkpoint come after it.
        if [ $((inside * 5)) -lt $((n * 2)) ] || [ $((RANDOM % 3)) = 0 ]; then
            until_inside
        else
            nap $((RANDOM * took / 32768))
        fi
        strike "$ranks"
    fi
    wait "$pid" 2> /dev/null || status=$?
    is_over
    if [ "$status" = 0 ]; then
        compare
        continue
    elif [ "$cycle" -gt 7 ]; then
        complain "not killed, but status $status: $(cat output)"
        cycle=0
        continue
    fi
    n=$((n + 1))
    look_back
    if [ $((n * 10 / kills)) -gt "$printed" ]; then
        printed=$((n * 10 / kills))
        echo "# $n of $kills kills, $inside inside a checkpoint, $((SECONDS - begun)) s"
    fi
done

status=0
start 2
wait "$pid" || status=$?
result "the last run ends well" "$([ "$status" = 0 ] || { echo "status $status"; cat output; })"
[ "$status" != 0 ] || compare
result "killed $n times: every run that finished has the same weights and epochs" "$bad"
# With few kills these may not happen.
if [ "$n" -ge 20 ]; then
    result "a third of the kills were inside a checkpoint" "$([ $((inside * 3)) -ge "$n" ] || echo "$inside of $n")"
    result "runs resumed, also on other numbers of ranks" "$([ "$others" -gt 0 ] || echo "$resumed, $others")"
    result "checkpoints were damaged" "$([ "$damages" -gt 0 ] || echo "never")"
fi
echo "# $n kills in $((SECONDS - begun)) s: $inside inside a checkpoint, $resumed times resumed, $others of them on another" \
    "number of ranks; $damages damages, $finished runs finished; all processes were gone after at most $longest ms"
finish
