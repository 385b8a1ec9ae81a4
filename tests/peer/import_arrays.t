#!/bin/bash
# import_arrays.t - NPY, NPZ, HDF5 and TFRecord files of other writers, value by value.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, h5py, google.protobuf, PIL' 2> /dev/null; then
    echo "1..0 # SKIP python3-numpy, -h5py, -protobuf or -pil is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/import_arrays.py" "$@"
