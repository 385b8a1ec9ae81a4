#!/bin/bash
# ckpt_kill.t - a program that saves checkpoints is killed at random moments, and each of its
# system calls fails once.  Afterwards the newest checkpoint is the old or the new one and
# complete, and so is the best.
#
#     tests/cli/ckpt_kill.t [KILLS]
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
set -u
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"

kills=${1:-30}
build=${top_builddir:-.}
inject=$(realpath "${DNN_INJECT_SO:-$build/tests/inject.so}")
prog=$(realpath "${DNN_CKPT_LOOP:-$build/tests/ckpt_loop}")
for need in "$inject" "$prog"; do
    if [ ! -e "$need" ]; then
        echo "1..0 # SKIP $need is not built"
        exit 0
    fi
done
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-ckpt.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
seed=${SEED:-$$}
RANDOM=$seed
echo "# SEED=$seed"

# complaints DIR: print what is wrong in DIR
complaints() {
    find "$1" -mindepth 1 -maxdepth 1 ! -name lock ! -name best.bp \
        ! -name 'ckpt-[0-9]*[0-9].bp' -printf 'left: %f\n'
}

# newer DIR STEP: whether there is a checkpoint of a later step
# shellcheck disable=SC2317  # called by wait_for
newer() {
    find "$1" -maxdepth 1 -name 'ckpt-*.bp' 2> /dev/null |
        awk -F '[-.]' -v step="$2" '$(NF - 1) + 0 > step { found = 1 } END { exit !found }'
}

# ---- killed ----

bad='' last=-1 best=-1 dir=$tmp/kill more=0
for ((n = 1; n <= kills; n++)); do
    "$prog" loop "$dir" > "$tmp/going" 2> "$tmp/output" &
    pid=$!
    wait_for test -s "$tmp/going"
    # On a slow disk a run may be killed each time before its first checkpoint.
    [ $((n % 3)) -ne 0 ] || wait_for newer "$dir" "$last"
    sleep "0.$(printf %03d $((RANDOM % 250)))"
    kill -KILL "$pid" 2> /dev/null || bad="${bad}kill $n: it had ended: $(cat "$tmp/output")"$'\n'
    wait "$pid" 2> /dev/null
    grep -v '^$' "$tmp/output" > "$tmp/words" && bad="${bad}kill $n: $(cat "$tmp/words")"$'\n'
    if ! now=$(guarded "$prog" check "$dir" 2> "$tmp/output") || [ -s "$tmp/output" ]; then
        bad="${bad}kill $n: $(cat "$tmp/output")"$'\n'
    fi
    read -r newest now_best <<< "$now"
    [ "$newest" -ge "$last" ] || bad="${bad}kill $n: back from step $last to $newest"$'\n'
    [ "$now_best" -ge "$best" ] || bad="${bad}kill $n: best: back from $best to $now_best"$'\n'
    # Every third checkpoint is the best, also if the run is killed right after it.
    [ "$newest" -lt 0 ] || [ "$now_best" = $((newest / 3 * 3)) ] ||
        bad="${bad}kill $n: step $newest, but the best is $now_best"$'\n'
    [ "$newest" -gt "$last" ] && more=$((more + 1))
    last=$newest best=$now_best
    bad="$bad$(complaints "$dir")"
    : > "$tmp/going"
done
echo "# $kills kills, the last step $last; $more times there was a newer one"
result "killed at random moments: checkpoints are complete, and none is lost" "$bad"
# A run that is killed right after a save has not removed the oldest checkpoint yet.
output=$(guarded "$prog" one "$dir" 2>&1 > /dev/null)
result "the last run is not killed" "$output"
result "the last two and the best checkpoint are kept" \
    "$([ "$(find "$dir" -mindepth 1 -maxdepth 1 -type d | wc -l)" -le 3 ] || ls "$dir")"
result "and the runs made progress" "$([ "$more" -gt 0 ] || echo "never")"

# ---- calls that fail ----

# attempt CALL:N:WHAT: save step 3, the best, after step 2.  Prints what is wrong.
attempt() {
    rm -rf "$tmp/w" "$tmp/log"
    cp -a "$tmp/two" "$tmp/w"
    ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} LD_PRELOAD=$inject \
        DNN_INJECT=$1 DNN_INJECT_UNDER=$tmp/w DNN_INJECT_LOG=$tmp/log \
        guarded "$prog" one "$tmp/w" > /dev/null 2> "$tmp/err"
    local status=$? now
    now=$(guarded "$prog" check "$tmp/w" 2>&1)
    case $status/$now in
    '0/3 3') ;;                      # the failure was handled
    5/'2 0') ;;                      # it failed, and nothing has changed
    5/'3 '[03]) grep -q 'is written, but' "$tmp/err" || echo "$1: the message is $(cat "$tmp/err")" ;;
    137/'2 0' | 137/'3 3') ;;        # killed
    *) echo "$1: exit $status, then: $now, message: $(cat "$tmp/err")" ;;
    esac
    if [ "$status" = 5 ] && ! grep -q "^ckpt_loop: $tmp/w/.*: .*\($2\)" "$tmp/err"; then
        echo "$1: the message is $(cat "$tmp/err")"
    fi
    complaints "$tmp/w"
    echo "$status" >> "$tmp/statuses"
}

for step in 0 1 2; do
    guarded "$prog" one "$tmp/two" > /dev/null || result "step $step" "failed"
done
result "three steps" "$([ "$(guarded "$prog" check "$tmp/two")" = '2 0' ] || ls "$tmp/two")"

for what in EIO ENOSPC KILL; do
    case $what in
    EIO) words='Input/output error' ;;
    ENOSPC) words='No space left on device\|the disk is full' ;;
    *) words='never output' ;;
    esac
    # ADIOS2 closes files through a C++ stream, which gives no better message.
    words="$words\|iostream error"
    bad='' all=0
    : > "$tmp/statuses"
    for call in write fsync rename; do
        [ "$what $call" != "ENOSPC fsync" ] || break
        for ((n = 1; n <= 40; n++)); do
            output=$(attempt "$call:$n:$what" "$words" 2>&1)
            [ -z "$output" ] || bad="$bad$output"$'\n'
            [ -s "$tmp/log" ] || break
            all=$((all + 1))
        done
        [ "$n" -gt 1 ] || bad="$bad$call is never called"$'\n'
    done
    hit=$(grep -vc '^0$' "$tmp/statuses")
    echo "# $what at each of $all places: $hit times it made a difference"
    result "$what: the checkpoint is the old or the new one, never incomplete" "$bad"
done

finish
