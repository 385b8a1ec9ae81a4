#!/bin/sh
# session.sh COMMAND... - run a test with a place of its own for the sessions of mpirun: one
# that is killed leaves its session behind, and a later one that gets the same process id
# would not start.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
PRTE_MCA_prte_tmpdir_base=$(mktemp -d "${TMPDIR:-/tmp}/dnn-mpi.XXXXXX") || exit 99
export PRTE_MCA_prte_tmpdir_base
trap 'rm -rf "$PRTE_MCA_prte_tmpdir_base"' EXIT
"$@"
