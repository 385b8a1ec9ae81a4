#!/bin/bash
# ckpt_kill.t - a run that saves checkpoints is killed at random moments, and its system
# calls fail, one at each place: the newest checkpoint is then the old or the new one,
# whole, and so is the best.
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

# complaints DIR: what is wrong there after a check, if anything
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
    "$prog" loop "$dir" > "$tmp/going" 2> "$tmp/said" &
    pid=$!
    wait_for test -s "$tmp/going"
    # On a slow disk a run may be killed each time before its first checkpoint.
    [ $((n % 3)) -ne 0 ] || wait_for newer "$dir" "$last"
    sleep "0.$(printf %03d $((RANDOM % 250)))"
    kill -KILL "$pid" 2> /dev/null || bad="${bad}kill $n: it had ended: $(cat "$tmp/said")"$'\n'
    wait "$pid" 2> /dev/null
    grep -v '^$' "$tmp/said" > "$tmp/words" && bad="${bad}kill $n: $(cat "$tmp/words")"$'\n'
    if ! now=$(guarded "$prog" check "$dir" 2> "$tmp/said") || [ -s "$tmp/said" ]; then
        bad="${bad}kill $n: $(cat "$tmp/said")"$'\n'
    fi
    read -r newest now_best <<< "$now"
    [ "$newest" -ge "$last" ] || bad="${bad}kill $n: back from step $last to $newest"$'\n'
    [ "$now_best" -ge "$best" ] || bad="${bad}kill $n: best: back from $best to $now_best"$'\n'
    # Every third is the best, and stays so when the run is killed right after it.
    [ "$newest" -lt 0 ] || [ "$now_best" = $((newest / 3 * 3)) ] ||
        bad="${bad}kill $n: step $newest, but the best is $now_best"$'\n'
    [ "$newest" -gt "$last" ] && more=$((more + 1))
    last=$newest best=$now_best
    bad="$bad$(complaints "$dir")"
    : > "$tmp/going"
done
echo "# $kills kills, the last step $last; $more times there was a newer one"
result "killed at any moment: what there is is whole, and nothing is lost" "$bad"
# A run that is killed right after a save does not come to remove the oldest.
said=$(guarded "$prog" one "$dir" 2>&1 > /dev/null)
result "the last run is not killed" "$said"
result "two and the best stay" \
    "$([ "$(find "$dir" -mindepth 1 -maxdepth 1 -type d | wc -l)" -le 3 ] || ls "$dir")"
result "and the runs got on" "$([ "$more" -gt 0 ] || echo "never")"

# ---- calls that fail ----

# attempt CALL:N:WHAT: from step 2 to 3, which is the best.  Prints what is wrong.
attempt() {
    rm -rf "$tmp/w" "$tmp/log"
    cp -a "$tmp/two" "$tmp/w"
    ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} LD_PRELOAD=$inject \
        DNN_INJECT=$1 DNN_INJECT_UNDER=$tmp/w DNN_INJECT_LOG=$tmp/log \
        guarded "$prog" one "$tmp/w" > /dev/null 2> "$tmp/err"
    local status=$? now
    now=$(guarded "$prog" check "$tmp/w" 2>&1)
    case $status/$now in
    '0/3 3') ;;                      # it did not matter
    5/'2 0') ;;                      # it failed, and all is as it was
    5/'3 '[03]) grep -q 'is written, but' "$tmp/err" || echo "$1: the message is $(cat "$tmp/err")" ;;
    137/'2 0' | 137/'3 3') ;;        # killed
    *) echo "$1: exit $status, then: $now, said: $(cat "$tmp/err")" ;;
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
    *) words='never said' ;;
    esac
    # What ADIOS2 closes through a C++ stream has no better words.
    words="$words\|iostream error"
    bad='' all=0
    : > "$tmp/statuses"
    for call in write fsync rename; do
        [ "$what $call" != "ENOSPC fsync" ] || break
        for ((n = 1; n <= 40; n++)); do
            said=$(attempt "$call:$n:$what" "$words" 2>&1)
            [ -z "$said" ] || bad="$bad$said"$'\n'
            [ -s "$tmp/log" ] || break
            all=$((all + 1))
        done
        [ "$n" -gt 1 ] || bad="$bad$call is never called"$'\n'
    done
    hit=$(grep -vc '^0$' "$tmp/statuses")
    echo "# $what at each of $all places: $hit times it mattered"
    result "$what: old or new, never half" "$bad"
done

finish
