#!/bin/bash
# train_model.t - files of a run, read by h5py and Python's ADIOS2: the trained network has the
# weights of the checkpoint, and the EMA is that computed by NumPy from the weights of every
# step.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, h5py; from adios2.bindings import adios2_bindings_mpi' 2> /dev/null; then
    echo "1..0 # SKIP python3-numpy, python3-h5py or python3-adios2 is not installed"
    exit 0
fi
export OMP_NUM_THREADS=1
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/train_model.py" "$@"
