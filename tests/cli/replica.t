#!/bin/bash
# replica.t - training steps on several ranks: the same as on one rank up to rounding, and
# bitwise the same with deterministic.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export OMP_NUM_THREADS=1

# steps RANKS ARGS...: run steps; output is in $tmp/out-RANKS; prints errors.
steps() {
    local n=$1
    shift
    guarded "$MPIEXEC" -n "$n" "$top_builddir/tests/mpi/replica_steps" "$@" \
        >"$tmp/out-$n" 2>"$tmp/err" || { echo "$n ranks: status $?"; cat "$tmp/err"; }
}

# With batch norm and dropout, batch sizes that are not divisible, and a last batch with fewer
# samples than micro-batches; without batch norm; on both backends.
for case in "cpu unet2d 10 7" "cpu simplecnn 9 2" "ref unet2d 10 3"; do
    # shellcheck disable=SC2086  # words
    result "deterministic: the same bits on 1, 2, 3, 4, 5 and 8 ranks ($case)" "$(
        for n in 1 2 3 4 5 8; do
            steps $n $case 6 deterministic
            diff "$tmp/out-1" "$tmp/out-$n"
        done
        grep -q '^weights' "$tmp/out-1" || echo "no weights were printed")"
done

# If there are enough micro-batches, each thread computes some alone; all threads share the
# others.  Of eight micro-batches with three threads, one rank computes six this way, each of two
# ranks three, each of four ranks none.
for case in "cpu unet2d 10 7" "cpu simplecnn 9 2"; do
    # shellcheck disable=SC2086  # words
    result "the same with three threads ($case)" "$(
        export OMP_NUM_THREADS=3
        for n in 1 2 4; do
            steps $n $case 6 deterministic
            diff "$tmp/out-1" "$tmp/out-$n"
        done
        grep -q '^weights' "$tmp/out-1" || echo "no weights were printed")"
done

# near RANKS LIMIT: losses of $tmp/out-1 and $tmp/out-RANKS differ by at most LIMIT, relative.
near() {
    paste "$tmp/out-1" "$tmp/out-$1" | awk -v far="$2" '
        $1 == "step" { d = $4 - $10; if (d < 0) d = -d; n++
            if (d > far * $4) print "step " $2 ": " $4 " and " $10 }
        END { if (n != 6) print n + 0 " steps" }'
}

result "ranks change a loss only by rounding" "$(
    steps 1 cpu unet2d 12 6 6
    steps 3 cpu unet2d 12 6 6
    near 3 1e-5)"
result "also if some ranks have no samples of the last batch" "$(
    steps 1 cpu unet2d 12 2 6
    steps 4 cpu unet2d 12 2 6
    near 4 1e-5)"
result "gradient accumulation works on several ranks, some without samples" "$(
    steps 3 cpu unet2d 10 2 6 accumulate)"
# Losses whose divisor depends on the data, and sums over the whole batch.
loss='[{"function": "xent", "weight": [1, 2, 0.5], "ignore_index": 1}, '
loss+='{"function": "dice", "per": "batch", "factor": 2}]'
result "losses with a divisor over all ranks" "$(
    steps 1 cpu unet2d 12 2 6 - "$loss"
    steps 4 cpu unet2d 12 2 6 - "$loss"
    near 4 1e-5)"
result "deterministic, too" "$(
    steps 1 cpu unet2d 12 7 6 deterministic "$loss"
    steps 3 cpu unet2d 12 7 6 deterministic "$loss"
    diff "$tmp/out-1" "$tmp/out-3")"
for half in bf16 fp16; do
    result "gradients exchanged as $half: small errors" "$(
        steps 1 cpu simplecnn 12 5 6
        steps 3 cpu simplecnn 12 5 6 $half
        near 3 0.02)"
done
result "more ranks than micro-batches are refused" "$(
    guarded "$MPIEXEC" -n 4 "$top_builddir/tests/mpi/replica_steps" cpu simplecnn 3 0 1 \
        deterministic >/dev/null 2>"$tmp/err"
    status=$?
    [ $status -eq 3 ] || echo "status $status, not 3"
    grep -q 'deterministic training on 4 ranks needs at least as many micro-batches, but there are 3; set "micro_batches" to 4 or more' \
        "$tmp/err" || cat "$tmp/err")"
finish
