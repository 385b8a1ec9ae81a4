# tap.sh - what a shell test says: TAP lines on stdout.  Sourced by tests/*/*.t.
#
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
: "${srcdir:=.}" "${top_builddir:=.}"
tap_count=0 tap_failed=0
# Tests do not judge how fast a machine is: what has not ended after so many seconds hangs.
guard=${DNN_TEST_GUARD:-300}

# guarded COMMAND...: run it, but end it if it hangs
guarded() {
    timeout -k 10 "$guard" "$@"
}

# wait_for COMMAND...: until it succeeds
wait_for() {
    local end=$((SECONDS + guard))
    until "$@" > /dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# catches_usr1 PID: whether it is dnn-train already, not a copy of this shell, and has a handler for
# SIGUSR1
catches_usr1() {
    local caught
    caught=$(sed -n '/^Name:\tdnn-train$/,/^SigCgt:/s/^SigCgt:\t//p' "/proc/$1/status")
    [ $((0x${caught:-0} >> 9 & 1)) = 1 ]
}

# result NAME COMPLAINTS: good if there are none; else they are shown
result() {
    tap_count=$((tap_count + 1))
    if [ -z "$2" ]; then
        echo "ok $tap_count - $1"
    else
        printf '%s\n' "$2" | head -40 | sed 's/^/# /'
        echo "not ok $tap_count - $1"
        tap_failed=1
    fi
}

# skip NAME REASON: it cannot be tried here; counted, never silent
skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

# finish: the last thing a test does
finish() {
    echo "1..$tap_count"
    exit "$tap_failed"
}
