# tap.sh - functions of shell tests, which print TAP on stdout.  Sourced by tests/*/*.t.
#
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
: "${srcdir:=.}" "${top_builddir:=.}"
tap_count=0 tap_failed=0
# Tests do not depend on the speed of a machine: a command that has not ended after this time hangs.
guard=${DNN_TEST_GUARD:-900}

# guarded COMMAND...: run it with a time limit against hangs
guarded() {
    timeout -k 10 "$guard" "$@"
}

# wait_for COMMAND...: repeat it until it succeeds
wait_for() {
    local end=$((SECONDS + guard))
    until "$@" > /dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# catches_usr1 PID: whether the process is dnn-train (not still this shell) and has a handler for
# SIGUSR1
catches_usr1() {
    local caught
    caught=$(sed -n '/^Name:\tdnn-train$/,/^SigCgt:/s/^SigCgt:\t//p' "/proc/$1/status")
    [ $((0x${caught:-0} >> 9 & 1)) = 1 ]
}

# result NAME ERRORS: the test passes if ERRORS is empty; else they are printed
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

# skip NAME REASON: count a test as skipped
skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

# finish: print the TAP plan; last line of a test
finish() {
    echo "1..$tap_count"
    exit "$tap_failed"
}
