#!/bin/bash
# prepare.t - dnn-prepare on a private Slurm: with 1 to 4 ranks, killed and started again, and
# as a batch job that is stopped, requeued and continues.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck disable=SC2317  # functions are called through wait_for
# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"
cluster_need
command -v dnn-prepare > /dev/null || skip_all "no dnn-prepare here"
cluster_begin --nodes 1
jobs=$(cd "$srcdir/jobs" && pwd)
cd "$tmp" || exit 1

cat > prepare.json << EOF
{"generate": {"type": "blobs3d", "samples": 24, "seed": 5}, "to": "$tmp/out.bp", "seed": 7,
 "chunk": "64KiB", "piece": "64KiB",
 "steps": [{"split": {"train": 0.8, "test": 0.2}}, {"normalise": "channel"}, {"type": "i16"}]}
EOF

hash_of() {
    dnn-prepare --quiet --describe out.bp | sed -nE 's/^ +hash +//p'
}
pieces() {
    find .out.bp.work -name 'piece-*' 2> /dev/null | wc -l
}
some_pieces() {
    [ "$(pieces)" -ge 3 ]
}

check "without Slurm" guarded dnn-prepare --quiet prepare.json
want=$(hash_of)
for ranks in 1 2 3 4; do
    rm -rf out.bp
    check "srun with $ranks ranks" cl srun --mpi=pmix --overcommit -n $ranks dnn-prepare --quiet prepare.json
    check_text "$ranks ranks: the same dataset" "$(hash_of)" "$want"
done

# ---- killed ----

rm -rf out.bp
sed 's/"samples": 24/"samples": 600/' prepare.json > long.json
cl srun --mpi=pmix --overcommit -n 3 dnn-prepare --quiet "$tmp/long.json" > killed.out 2>&1 &
pid=$!
check "pieces appear" wait_for some_pieces
# One rank is enough: the others, and the job, end with it.
kill -KILL "$(pgrep -n -f "^[^ ]*dnn-prepare --quiet $tmp/long.json")"
status=0
wait $pid || status=$?
result "the job fails" "$([ "$status" -ne 0 ] || cat killed.out)"
result "after a killed rank there is no dataset" "$([ ! -e out.bp ] || echo "it is there")"
result "but finished pieces are kept" "$([ "$(pieces)" -ge 3 ] || ls -A)"
check "the same command continues, with another number of ranks" cl srun --mpi=pmix --overcommit -n 2 dnn-prepare --quiet "$tmp/long.json"
got=$(hash_of)
rm -rf out.bp
guarded dnn-prepare --quiet long.json
want=$(hash_of)
check_text "the dataset is the same as without Slurm" "$got" "$want"

# ---- SIGTERM ----

rm -rf out.bp
tasks=2
[ "$(nproc)" -ge 2 ] || tasks=1
id=$(submit --ntasks=$tasks "$jobs/prepare.sh" "$tmp/long.json")
check "pieces of a batch job appear" wait_for some_pieces
cl scancel --signal=TERM "$id"
stopped() {
    grep -q 'run the same command again to continue' "$tmp/$id.out"
}
check "SIGTERM stops it" wait_for stopped
check "the job is requeued" wait_for queued_again "$id"
# A requeued job waits for two minutes; start it as soon as the old step has ended.
check "the old step ends" wait_for grep -q "\[$id\.0\] .*done with step" "$cluster_dir/log/steps.n1.log"
cl scontrol update "jobid=$id" StartTime=now 2> out # it may have begun already
check "it is started again and completes" wait_for job_is "$id" COMPLETED
result "it continued" "$(grep -q 'continuing the interrupted preparation' "$tmp/$id.out" || cat "$tmp/$id.out")"
check_text "the dataset is the same" "$(hash_of)" "$want"
finish
