#!/bin/bash
# cluster_crash.t - no processes or interfaces remain if dnn-cluster is killed or fails to start.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"
cluster_need
links=$(ip -o link | wc -l)
dir=$tmp/k

running() {
    dnn-cluster status --dir "$dir"
}

check "start" guarded dnn-cluster -q start --nodes 2 --dir "$dir"
pid=$(running | sed -n 's/^supervisor *//p')
check "a job runs" guarded dnn-cluster run --dir "$dir" -- sbatch --output=/dev/null \
    --wrap='sleep 300'
kill -KILL "$pid"
check "SIGKILL of the supervisor leaves no process" wait_for clean "$dir"
check_text "and no interface" "$(ip -o link | wc -l)" "$links"
out=$(running 2>&1)
check_text "status: it is not running" $? 5

# Killed at any moment.  If the cluster was up before start was killed, it keeps running,
# as it should.
# shellcheck disable=SC2317
ended() {
    if grep -qs ': up$' "$dir/log/supervisor.log"; then
        dnn-cluster -q stop --dir "$dir"
    fi
    clean "$dir"
}
for ms in 005 010 020 040 060 080 120; do
    dnn-cluster -q start --nodes 2 --dir "$dir" 2> /dev/null &
    pid=$!
    sleep "0.$ms"
    kill -KILL "$pid" 2> /dev/null
    wait "$pid" 2> /dev/null
    check "SIGKILL of start after $ms ms leaves nothing" wait_for ended
done

# Several at once: one starts it, the others find it.
for i in 1 2 3; do
    guarded dnn-cluster start --dir "$dir" > "$tmp/at-once.$i" 2>&1 &
done
wait
check_text "one of three concurrent starts starts it" "$(cat "$tmp"/at-once.* | grep -c 'is up')" 1
check_text "and two find it running" "$(cat "$tmp"/at-once.* | grep -c 'already running')" 2
dnn-cluster run --dir "$dir" -- sh -c "touch $tmp/in && exec sleep 300" &
run=$!
wait_for test -e "$tmp/in"
kill -STOP "$run"
check "a suspended run does not block stop" guarded dnn-cluster -q stop --dir "$dir"
kill -CONT "$run"
wait "$run"
check_text "and it ends with the cluster" $? 137

check "start again" guarded dnn-cluster -q start --dir "$dir"
pid=$(running | sed -n 's/^supervisor *//p')
kill -STOP "$pid"
check "stop kills a supervisor that does not respond" guarded dnn-cluster -q stop --dir "$dir"
check "and all its processes" wait_for clean "$dir"

out=$(dnn-cluster start --name 'a b' 2>&1)
check_text "a bad name" "$? $out" \
    '2 dnn-cluster: --name: must be 1 to 40 letters, digits, - and _, not "a b"'
mkdir "$tmp/full" && touch "$tmp/full/precious"
out=$(dnn-cluster start --dir "$tmp/full" 2>&1)
check_text "a directory with other files" "$? $out" "2 dnn-cluster: $tmp/full: contains files \
that are not of a cluster; choose an empty or new directory"
check "they are not changed" test -e "$tmp/full/precious"

# Hide a program, then replace one by a broken one, for this process only.
hidden() {
    local file=$1
    shift
    # shellcheck disable=SC2016
    unshare --mount --propagation unchanged sh -c \
        'mount --bind /dev/null "$0" && exec "$@"' "$file" "$@"
}
plugin=$(find /usr/lib* -name sched_backfill.so 2> /dev/null | head -n 1)
if [ "$(id -u)" -eq 0 ] && [ -n "$plugin" ]; then
    out=$(hidden "$(command -v munged)" dnn-cluster start --dir "$dir" 2>&1)
    check_text "a missing program" "$? $out" \
        "5 dnn-cluster: not installed: munged; on Debian: apt install munge"
    out=$(hidden "$plugin" dnn-cluster start --dir "$dir" 2>&1)
    check_text "a slurmctld that ends at once" "$? ${out##*$'\n'}" "5 dnn-cluster: slurmctld \
ended (exit status 1), see $dir/log/slurmctld.log"
    check "its log is shown" grep -q "sched/backfill" <(echo "$out")
    check "no process is left" wait_for clean "$dir"
else
    skip "a missing program" "not root"
fi
finish
