#!/bin/bash
# prepare_steps.t - the steps, from files to the dataset, against NumPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, PIL; from adios2.bindings import adios2_bindings_mpi' 2> /dev/null; then
    echo "1..0 # SKIP python3-adios2 or -pil is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/prepare_steps.py" "$@"
