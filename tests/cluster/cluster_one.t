#!/bin/bash
# cluster_one.t - a cluster of one node: jobs, records, requeue, preemption.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"
cluster_need
links=$(ip -o link | wc -l)
mounts=$(wc -l < /proc/self/mountinfo)
cluster_begin --grace 3

status() {
    dnn-cluster status --dir "$cluster_dir"
}

check "status shows an idle node" grep -q '^n1 *127.0.0.1 *idle *[0-9]' <(status)
check_text "srun --mpi=pmix" "$(cl srun -n1 --mpi=pmix hostname)" n1
# shellcheck disable=SC2016
check_text "PMIx is the default" \
    "$(cl srun -n1 bash -c 'echo ${PMIX_RANK-none}')" 0
check_text "tasks are bound" "$(cl srun -n1 -c1 nproc)" 1

# Two jobs that are requeued, one by scontrol and one by preemption; the first waits
# while the second is tested.
cat > "$tmp/again.sh" <<'END'
#!/bin/bash
echo "start ${SLURM_RESTART_COUNT-0}"
[ "${SLURM_RESTART_COUNT-0}" -gt 0 ] || sleep 3600
END
again=$(submit -n1 "$tmp/again.sh")
wait_for grep -q '^start 0' "$tmp/$again.out"
check "scontrol requeue" cl scontrol requeue "$again"

cat > "$tmp/long.sh" <<'END'
#!/bin/bash
echo "start ${SLURM_RESTART_COUNT-0}"
[ "${SLURM_RESTART_COUNT-0}" -eq 0 ] || exit 0
srun bash -c 'trap "echo terminated" TERM; echo ready; while :; do sleep 0.1; done'
END
long=$(submit --exclusive -p batch "$tmp/long.sh")
wait_for grep -q ready "$tmp/$long.out"
check "an urgent job gets the cores" cl srun -p urgent --exclusive -n1 true
check "the preempted job got SIGTERM" wait_for grep -q terminated "$tmp/$long.out"
check "it runs again" wait_for grep -q '^start 1' "$tmp/$long.out"
check "so does the requeued one" wait_for grep -q '^start 1' "$tmp/$again.out"
check "and is done" wait_for job_is "$again" COMPLETED

job=$(submit --wrap='exit 75')
wait_for job_is "$job" FAILED
check "scontrol shows exit code 75" \
    grep -q ExitCode=75:0 <(cl scontrol show job "$job")
check "the record file has it" wait_for grep -q "^JobId=$job .* ExitCode=75:0" "$cluster_dir/jobs.txt"

cl sh -c 'exit 7'
check_text "run returns the exit status" $? 7
# shellcheck disable=SC2016
cl sh -c 'kill -9 $$'
check_text "also that of a signal" $? 137
check_text "run keeps the directory" "$(cd "$tmp" && cl pwd)" "$tmp"
dnn-cluster run --dir "$cluster_dir" -- \
    bash -c 'trap "echo passed; exit 3" TERM; echo up; while :; do sleep 0.1; done' \
    > "$tmp/signal" &
pid=$!
wait_for grep -q up "$tmp/signal"
kill -TERM "$pid"
wait "$pid"
check_text "run passes signals on" "$? $(tail -n 1 "$tmp/signal")" "3 passed"

out=$(eval "$(dnn-cluster env --dir "$cluster_dir")" && guarded srun -n1 hostname)
check_text "env is enough for one node" "$out" n1

out=$(dnn-cluster start --dir "$cluster_dir" 2>&1)
check_text "starting a running cluster is no error" "$? ${out/[0-9]*/}" \
    '0 cluster: "main" is already running, supervisor '
out=$(dnn-cluster start --dir "$cluster_dir" --nodes 2 2>&1)
check_text "with another number of nodes it is" "$? $out" "2 dnn-cluster: cluster \"main\" is running with \
1 node, not 2; stop it first (dnn-cluster stop) or choose another --name"
out=$(dnn-cluster fail n2 --dir "$cluster_dir" 2>&1)
check_text "no such node" "$? $out" '2 dnn-cluster: no node "n2": this cluster has only n1'

check "a second cluster starts" guarded dnn-cluster -q start --name "o$$" --dir "$tmp/other"
check_text "and is another one" \
    "$(dnn-cluster run --dir "$tmp/other" -- scontrol show config | grep -o "= o$$")" "= o$$"
check "both work" guarded dnn-cluster run --dir "$tmp/other" -- srun -n1 true
check "the second stops" dnn-cluster -q stop --dir "$tmp/other"
check_text "the first is not affected" "$(cl srun -n1 hostname)" n1

# Ranks on one node need no network, unless the user sets one.
# shellcheck disable=SC2016  # the task's shell expands it
check_text "Open MPI does not use the network" \
    "$(cl srun -n1 sh -c 'echo "$OMPI_MCA_btl"')" "^tcp"
# shellcheck disable=SC2016
check_text "unless the user sets OMPI_MCA_btl" \
    "$(OMPI_MCA_btl=self,sm cl srun -n1 sh -c 'echo "$OMPI_MCA_btl"')" "self,sm"

check "restart" dnn-cluster -q restart --dir "$cluster_dir"
check_text "it works again, with the same number of nodes" "$(cl srun -n1 hostname; cl sinfo -h -o %D -p batch)" "n1
1"
stuck=$(submit --wrap='sleep 300')
wait_for job_is "$stuck" RUNNING
check "stop" dnn-cluster -q stop --dir "$cluster_dir"
check "no process is left" clean "$cluster_dir"
check_text "no mount, no interface" \
    "$(wc -l < /proc/self/mountinfo) $(ip -o link | wc -l)" "$mounts $links"
check "stop again is no error" dnn-cluster -q stop --dir "$cluster_dir"
out=$(status 2>&1)
check_text "status: it is not running" "$? ${out%% (*}" '5 dnn-cluster: cluster "main" is not running'
finish
