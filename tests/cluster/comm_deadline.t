#!/bin/bash
# comm_deadline.t - one rank of four is suspended, is killed or calls another operation, on one
# and on two nodes: the others report the rank, its node and the operation, and all ranks end.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"
cluster_need
program=${top_builddir:-.}/tests/cluster/comm_fate
[ -x "$program" ] || skip_all "no $program"
cp "$program" "$tmp/fate"
cluster_begin --nodes 2
start='barrier #1 (start of epoch)'
bucket='all-reduce #2 (bucket 3)'

# none_left: no process of the job is running, by its command line; zombies have none
# shellcheck disable=SC2317
none_left() {
    local proc
    for proc in /proc/[0-9]*; do
        ! tr '\0' ' ' 2> /dev/null < "$proc/cmdline" | grep -q "^$tmp/fate " || return 1
    done
}

# fate DEADLINE NAME RANK SRUN-OPTION...: run it; sets $status and $words (lines of the program).
# Each run has its own output file, because an earlier launcher may still write.  DEADLINE is
# long if something else than the time limit must be detected.
runs=0
fate() {
    local deadline=$1 name=$2 rank=$3 try
    shift 3
    for try in 1 2 3; do
        runs=$((runs + 1)) status=0
        mkdir "$tmp/in.$runs"
        out=$tmp/out.$runs
        DNN_DEADLINE=$deadline cl srun --overcommit "$@" "$tmp/fate" "$name" "$rank" "$tmp/in.$runs" \
            > "$out" 2>&1 || status=$?
        grep -aq 'aborted before step completely launched' "$out" || break
        echo "# Slurm did not launch the step, try $try: $(tr '\n' ' ' < "$out")"
    done
    words=$(sed -n 's/^fate: //p' "$out")
}

# ended NAME STATUS: check the end of the last run
ended() {
    check_text "$1: status" "$status" "$2"
    [ "$status" -eq "$2" ] || sed 's/^/# /' "$out"
    check "$1: it ends by itself" test "$status" -ne 124
    check "$1: no process is left" wait_for none_left
}

fate 60 none 0 -N2 -n4
check_text "without a failure: no messages" "$words" ""
ended "without an accident" 0

for nodes in 1 2; do
    host=n$nodes where=(-N2 -n4)
    [ "$nodes" -eq 2 ] || where=(-N1 -n4 -w n1)
    fate 8 stop 3 "${where[@]}"
    check_text "stopped, $nodes nodes: message" "$words" \
        "$bucket: no answer from rank 3 on $host after 8 s; rank 3 is stopped and last entered $start and has left it; terminating all ranks"
    ended "stopped, $nodes nodes" 7

    for strict in 0 1; do
        what="killed, $nodes nodes, --kill-on-bad-exit=$strict"
        fate 60 kill 3 "${where[@]}" --kill-on-bad-exit="$strict"
        check_text "$what: message" \
            "$(sed 's/process [0-9]*/process N/; s/; rank [0-2] .*/; .../' <<< "$words")" \
            "rank 3 on $host died (process N; killed?) after $start; ..."
        check "$what: operation" grep -q "; rank [0-2] [a-z ]* in $bucket; terminating all ranks\$" \
            <<< "$words"
        ended "$what" 7
    done
done

# One rank per node: no other rank on the node can see the failure.
fate 8 stop 1 -N2 -n2
check_text "stopped, alone on its node: message" "$words" \
    "$bucket: no answer from rank 1 on n2 after 8 s; rank 1 was last seen in $start; terminating all ranks"
ended "stopped, alone on its node" 7
fate 60 kill 1 -N2 -n2
check_text "killed, alone on its node: message" "$words" \
    "$bucket: rank 0 on n1 lost the connection to rank 1 on n2; terminating all ranks"
ended "killed, alone on its node" 7

fate 8 nap 1 -N2 -n4
check_text "a rank that computes too long: message" "$words" \
    "$bucket: no answer from rank 1 on n1 after 8 s; rank 1 is alive and last entered $start and has left it; terminating all ranks"
ended "too long at work" 7
fate 8 other 2 -N2 -n4
check_text "another operation: message" "$words" \
    "$bucket: not finished after 8 s; rank 2 on n2 called barrier #2 (end of epoch); all ranks must call the same operations in the same order; terminating all ranks"
ended "another operation" 7
fate 60 watch 0 -N2 -n4
check_text "a watched call hangs: message" "$words" \
    "rank 0 on n1: opening data.bp: not finished after 2 s; terminating all ranks"
ended "a watched call hangs" 7

# Cancelling is not a failure: no rank may report it.
mkdir "$tmp/cancelled"
DNN_DEADLINE=3600 cl srun --overcommit -N2 -n4 --job-name=cancelled "$tmp/fate" nap 1 "$tmp/cancelled" > "$tmp/cancelled.out" 2>&1 &
# shellcheck disable=SC2317
all_wait() {
    [ -e "$tmp/cancelled/0" ] && [ -e "$tmp/cancelled/2" ] && [ -e "$tmp/cancelled/3" ]
}
check "a long job starts" wait_for all_wait
check "scancel" cl scancel --name=cancelled
wait "$!"
check_text "cancelled: no messages" "$(sed -n 's/^fate: //p' "$tmp/cancelled.out")" ""
check "cancelled: no process is left" wait_for none_left

fate 60 abort 3 -N2 -n4
check_text "abort: no messages" "$words" ""
ended "abort" 4

finish
