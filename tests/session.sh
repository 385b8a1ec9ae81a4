#!/bin/sh
# session.sh COMMAND... TEST - run a test with a place of its own for the sessions of mpirun: one
# that is killed leaves its session behind, and a later one that gets the same process id
# would not start.  How long the test took is added to tests/seconds: "SECONDS tests/NAME".
# One that hangs is ended: tests do not judge how fast a machine is, so this is after a long time.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
PRTE_MCA_prte_tmpdir_base=$(mktemp -d "${TMPDIR:-/tmp}/dnn-mpi.XXXXXX") || exit 99
export PRTE_MCA_prte_tmpdir_base
trap 'rm -rf "$PRTE_MCA_prte_tmpdir_base"' EXIT
began=$(date +%s)
timeout --foreground -k 30 "${DNN_SESSION_GUARD:-1800}" "$@"
status=$?
for name; do :; done
echo "$(($(date +%s) - began)) tests/${name##*/tests/}" >> "${top_builddir:-.}/tests/seconds"
exit $status
