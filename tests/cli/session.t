#!/bin/bash
# session.t - what runs the other tests: tests/session.sh, and the limits in tests/tap.sh.
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

# session STATUS COMMAND... TEST: complaints if it ends otherwise
session() {
    local want=$1 status=0
    shift
    top_builddir=$tmp "$srcdir/tests/session.sh" "$@" || status=$?
    [ "$status" = "$want" ] || echo "status $status, not $want"
}
result "the status is the test's" "$(session 3 env STATUS=3 "$tmp/tests/fails.t")"
dir=$(cat "$tmp/tests/fails.t.dir")
result "its directory for mpirun was there, and is removed" "$([ -n "$dir" ] && [ ! -e "$dir" ] || echo "\"$dir\"")"
result "one that hangs is ended" "$(DNN_SESSION_GUARD=1 session 124 "$tmp/tests/hangs.t")"
result "the seconds of both are noted" "$(
    sed 's/^[0-9][0-9]* //' "$tmp/tests/seconds" | diff - <(printf 'tests/fails.t\ntests/hangs.t\n'))"

guard=1
result "what hangs is ended" "$(
    status=0
    guarded sleep 3600 || status=$?
    [ "$status" = 124 ] || echo "status $status")"
result "what ends keeps its status" "$(! guarded false || echo "none")"
result "waiting ends without success" "$(! wait_for false || echo "it waits no longer")"
# shellcheck disable=SC2317  # called through wait_for
third_time() {
    echo >> "$tmp/times"
    [ "$(wc -l < "$tmp/times")" -ge 3 ]
}
guard=900
result "or with it" "$(wait_for third_time || echo "never")"
finish
