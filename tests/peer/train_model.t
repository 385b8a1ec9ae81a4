#!/bin/bash
# train_model.t - what a run leaves, read by h5py and by Python's ADIOS2: the files of the
# trained network hold the checkpoint's numbers, and the running mean of the weights is
# what NumPy makes of the weights of every step.
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
