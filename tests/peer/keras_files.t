#!/bin/bash
# keras_files.t - compare our weight files with those of Keras, read by h5py.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import h5py' 2> /dev/null; then
    echo "1..0 # SKIP python3-h5py is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/keras_layout.py" "$@"
