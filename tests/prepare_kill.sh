#!/bin/bash
# prepare_kill.sh - dnn-prepare is killed many times, at random moments.  After each kill the
# dataset is absent or complete; the result is that of an uninterrupted run.
#
#     tests/prepare_kill.sh [KILLS [LAUNCHER...]]      e.g.  50 mpirun -n 3
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
kills=${1:-20}
shift
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-kill.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
seed=${SEED:-$$}
RANDOM=$seed
echo "# SEED=$seed"

cat > "$tmp/prepare.json" << EOF
{"generate": {"type": "blobs3d", "samples": 40, "seed": 5},
 "to": "$tmp/out.bp", "seed": 7, "chunk": "64KiB", "piece": "256KiB",
 "steps": [{"split": {"train": 0.8, "test": 0.2}}, {"normalise": "channel"},
           {"slice": {"sizes": [16, 16, 16]}}, {"type": "i16"}]}
EOF

# run LAUNCHER...: prepare; prints status and output if it fails
run() {
    local output
    output=$(guarded "$@" dnn-prepare --quiet "$tmp/prepare.json" 2>&1) || echo "status $?: $output"
}

# hash_of DATASET
hash_of() {
    dnn-prepare --quiet --describe "$1" | sed -nE 's/^ +hash +//p'
}

begin=$(date +%s%N)
result "an uninterrupted run" "$(run "$@")"
took=$((($(date +%s%N) - begin) / 1000000))
want=$(hash_of "$tmp/out.bp")
result "has a hash" "$([ "${#want}" = 32 ] || echo "hash: $want")"
rm -rf "$tmp/out.bp"

bad='' finished=0 continued=0 n=0
while [ "$n" -lt "$kills" ]; do
    setsid "$@" dnn-prepare "$tmp/prepare.json" > "$tmp/output" 2>&1 &
    pid=$!
    ms=$((RANDOM * took / 32768))
    sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
    kill -KILL -- "-$pid" 2> /dev/null
    status=0
    wait "$pid" 2> /dev/null || status=$?
    # A run that ended before the signal does not count.
    [ "$status" != 137 ] || n=$((n + 1))
    while pgrep -f "^dnn-prepare $tmp/prepare.json" > /dev/null; do sleep 0.05; done
    grep -q 'continuing the interrupted preparation' "$tmp/output" && continued=$((continued + 1))
    [ -e "$tmp/out.bp" ] || continue
    if ! guarded dnn-prepare --quiet --verify "$tmp/out.bp" > "$tmp/verified" 2>&1; then
        bad="$bad$(cat "$tmp/verified")"$'\n'
    fi
    got=$(hash_of "$tmp/out.bp")
    [ "$got" = "$want" ] || bad="${bad}hash $got"$'\n'
    finished=$((finished + 1))
    rm -rf "$tmp/out.bp"
done
echo "# $n kills, $continued times continued, $finished times there was a dataset (also from runs that ended before the kill)"
result "after a kill the dataset is absent or complete" "$bad"

result "the last run ends well" "$(run "$@")"
check=$(guarded dnn-prepare --quiet --verify "$tmp/out.bp" 2>&1 > /dev/null)
result "its checksums are right" "$check"
result "the same dataset as without any kill" "$([ "$(hash_of "$tmp/out.bp")" = "$want" ] || echo "another hash")"
result "no temporary files are left" "$(find "$tmp" -mindepth 1 -maxdepth 1 -name '.*')"
finish
