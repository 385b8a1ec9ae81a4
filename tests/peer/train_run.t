#!/bin/bash
# train_run.t - pictures, captions and events of a run, computed again from data and weights.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import google.protobuf, numpy, PIL; from adios2.bindings import adios2_bindings_mpi' 2> /dev/null; then
    echo "1..0 # SKIP python3-adios2, -protobuf or -pil is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/train_run.py" "$@"
