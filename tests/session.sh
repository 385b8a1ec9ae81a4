#!/bin/sh
# session.sh COMMAND... TEST - run a test with its own session directory for mpirun.  A killed
# mpirun does not remove its session directory, and a later one with the same process id would not
# start.  The time of the test is appended to tests/seconds: "SECONDS tests/NAME".  A test that
# hangs is ended after a long time.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
PRTE_MCA_prte_tmpdir_base=$(mktemp -d "${TMPDIR:-/tmp}/dnn-mpi.XXXXXX") || exit 99
export PRTE_MCA_prte_tmpdir_base
trap 'rm -rf "$PRTE_MCA_prte_tmpdir_base"' EXIT
began=$(date +%s)
timeout --foreground -k 30 "${DNN_SESSION_GUARD:-3600}" "$@"
status=$?
for name; do :; done
echo "$(($(date +%s) - began)) tests/${name##*/tests/}" >> "${top_builddir:-.}/tests/seconds"
exit $status
