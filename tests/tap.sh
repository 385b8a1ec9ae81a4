# tap.sh - what a shell test says: TAP lines on stdout.  Sourced by tests/*/*.t.
#
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
: "${srcdir:=.}" "${top_builddir:=.}"
tap_count=0 tap_failed=0

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
