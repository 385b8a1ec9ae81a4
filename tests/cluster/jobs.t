#!/bin/bash
# jobs.t - the batch scripts in jobs/, as a user submits them to a one-node cluster.
#
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"
cluster_need
cluster_begin --nodes 1
jobs=$(cd "$srcdir/jobs" && pwd)
cd "$tmp" || exit 1
[ "$(nproc)" -ge 2 ] || skip_all "jobs/topo.sh needs two cores"

check "sbatch jobs/topo.sh succeeds" cl sbatch --wait "$jobs/topo.sh"
log=$(echo dnn-topo-*.log)
result "the log is named after the job" "$([ -f "$log" ] || ls)"
result "two ranks are in the table" "$([ "$(grep -cE '^ +[01] +n1 ' "$log")" = 2 ] || cat "$log")"
result "their cores do not overlap" "$(grep -q 'overlaps: none' "$log" || cat "$log")"
result "srun started them through PMIx" "$(grep -q 'srun --mpi=pmix' "$log" || cat "$log")"

check "arguments after the script are passed to dnn-bench" cl sbatch --wait --output=json.log "$jobs/topo.sh" --json
result "the output is JSON" "$(grep -q '"ranks": \[' json.log || cat json.log)"
check "an option of sbatch overrides the script" cl sbatch --wait --ntasks=1 --output=one.log "$jobs/topo.sh"
result "one rank is in the table" "$(grep -q '^1 rank on 1 node' one.log || cat one.log)"

status=0
cl sbatch --wait --output=bad.log "$jobs/topo.sh" --bnid=off > /dev/null 2>&1 || status=$?
check_text "a wrong option ends the job with status 2" "$status" 2
check_text "and is reported once, by one rank" "$(grep -c 'unknown option --bnid; did you mean --bind?' bad.log)" 1
finish
