#!/bin/bash
# torch_curve.t - losses of dnn-train, step by step, against PyTorch.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import h5py, numpy, torch; from adios2.bindings import adios2_bindings_mpi' 2> /dev/null; then
    echo "1..0 # SKIP python3-torch, -h5py or -adios2 is not installed"
    exit 0
fi
# Small networks: threads mostly wait for each other, and should not spin.
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/torch_curve.py" "$@"
