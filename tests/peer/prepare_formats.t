#!/bin/bash
# prepare_formats.t - every format, from its files to the dataset, value by value.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, PIL, h5py, nibabel, tifffile, google.protobuf; from adios2.bindings import adios2_bindings_mpi' 2> /dev/null; then
    echo "1..0 # SKIP python3-adios2, -pil, -h5py, -nibabel, -tifffile or -protobuf is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/prepare_formats.py" "$@"
