#!/bin/bash
# augment.t - transforms of samples against NumPy, SciPy and PyTorch.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, scipy.ndimage, torch' 2> /dev/null; then
    echo "1..0 # SKIP python3-torch or python3-scipy is not installed"
    exit 0
fi
export OMP_NUM_THREADS=1
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/augment.py" "$@"
