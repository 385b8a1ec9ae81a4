#!/bin/bash
# session.t - tests/session.sh, which runs the other tests, and the time limits of tests/tap.sh.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-session.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tests"
# shellcheck disable=SC2016  # the test's shell expands it
printf '#!/bin/sh\n[ -d "$PRTE_MCA_prte_tmpdir_base" ] && echo "$PRTE_MCA_prte_tmpdir_base" >"$0.dir"\nexit "$STATUS"\n' \
    > "$tmp/tests/fails.t"
printf '#!/bin/sh\nexec sleep 3600\n' > "$tmp/tests/hangs.t"
chmod +x "$tmp"/tests/*.t

# session STATUS COMMAND... TEST: prints an error if it ends with another status
session() {
    local want=$1 status=0
    shift
    top_builddir=$tmp "$srcdir/tests/session.sh" "$@" || status=$?
    [ "$status" = "$want" ] || echo "status $status, not $want"
}
result "the exit status is that of the test" "$(session 3 env STATUS=3 "$tmp/tests/fails.t")"
dir=$(cat "$tmp/tests/fails.t.dir")
result "its session directory for mpirun existed and is removed" "$([ -n "$dir" ] && [ ! -e "$dir" ] || echo "\"$dir\"")"
result "a test that hangs is ended" "$(DNN_SESSION_GUARD=1 session 124 "$tmp/tests/hangs.t")"
result "the times of both are recorded" "$(
    sed 's/^[0-9][0-9]* //' "$tmp/tests/seconds" | diff - <(printf 'tests/fails.t\ntests/hangs.t\n'))"

guard=1
result "guarded ends a command that hangs" "$(
    status=0
    guarded sleep 3600 || status=$?
    [ "$status" = 124 ] || echo "status $status")"
result "guarded returns the status of a command" "$(! guarded false || echo "none")"
result "wait_for returns an error after the time limit" "$(! wait_for false || echo "it waits no longer")"
# shellcheck disable=SC2317  # called through wait_for
third_time() {
    echo >> "$tmp/times"
    [ "$(wc -l < "$tmp/times")" -ge 3 ]
}
guard=900
result "wait_for returns when the command succeeds" "$(wait_for third_time || echo "never")"
finish
