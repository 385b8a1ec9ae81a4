#!/bin/bash
# evaluate.t - evaluations against formulas in NumPy and SciPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, scipy.ndimage, scipy.stats' 2> /dev/null; then
    echo "1..0 # SKIP python3-numpy or python3-scipy is not installed"
    exit 0
fi
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/evaluate.py" "$@"
