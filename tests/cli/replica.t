#!/bin/bash
# replica.t - training steps on several ranks: the same as on one, and bit by bit the
# same if that was asked for.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export OMP_NUM_THREADS=1

# steps RANKS ARGS...: output in $tmp/out-RANKS; what went wrong on stdout.
steps() {
    local n=$1
    shift
    guarded "$MPIEXEC" -n "$n" "$top_builddir/tests/mpi/replica_steps" "$@" \
        >"$tmp/out-$n" 2>"$tmp/err" || { echo "$n ranks: status $?"; cat "$tmp/err"; }
}

# With batch norm and dropout, batches that divide by nothing, and a last one with fewer
# samples than parts; without statistics to exchange; on both backends.
for case in "cpu unet2d 10 7" "cpu simplecnn 9 2" "ref unet2d 10 3"; do
    # shellcheck disable=SC2086  # words
    result "deterministic: the same bits on 1, 2, 3, 4, 5 and 8 ranks ($case)" "$(
        for n in 1 2 3 4 5 8; do
            steps $n $case 6 deterministic
            diff "$tmp/out-1" "$tmp/out-$n"
        done
        grep -q '^weights' "$tmp/out-1" || echo "no weights were printed")"
done

# Where there are parts enough each thread computes some alone, what is left they share:
# of eight parts, six of one rank's are computed alone, three of each of two, none of four.
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

# near RANKS FAR: losses of $tmp/out-1 and $tmp/out-RANKS agree to a relative FAR.
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
result "also when some of them have nothing of the last batch" "$(
    steps 1 cpu unet2d 12 2 6
    steps 4 cpu unet2d 12 2 6
    near 4 1e-5)"
result "parts one after the other work on several ranks, some without samples" "$(
    steps 3 cpu unet2d 10 2 6 accumulate)"
# Means over what only the data knows, and sums over the whole batch.
loss='[{"function": "xent", "weight": [1, 2, 0.5], "ignore_index": 1}, '
loss+='{"function": "dice", "per": "batch", "factor": 2}]'
result "so do losses that divide by what all ranks have" "$(
    steps 1 cpu unet2d 12 2 6 - "$loss"
    steps 4 cpu unet2d 12 2 6 - "$loss"
    near 4 1e-5)"
result "deterministic, too" "$(
    steps 1 cpu unet2d 12 7 6 deterministic "$loss"
    steps 3 cpu unet2d 12 7 6 deterministic "$loss"
    diff "$tmp/out-1" "$tmp/out-3")"
for half in bf16 fp16; do
    result "gradients as $half: near what they are" "$(
        steps 1 cpu simplecnn 12 5 6
        steps 3 cpu simplecnn 12 5 6 $half
        near 3 0.02)"
done
result "more ranks than parts are refused" "$(
    guarded "$MPIEXEC" -n 4 "$top_builddir/tests/mpi/replica_steps" cpu simplecnn 3 0 1 \
        deterministic >/dev/null 2>"$tmp/err"
    status=$?
    [ $status -eq 3 ] || echo "status $status, not 3"
    grep -q '4 ranks, but a batch is cut into 3 parts that do not depend on them; set "micro_batches" to 4 or more' \
        "$tmp/err" || cat "$tmp/err")"
finish
