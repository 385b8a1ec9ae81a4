#!/bin/bash
# hessian.t - dnn-train with {"type": "Hessian"} against SciPy's and PyTorch's L-BFGS on
# the same loss.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, scipy.optimize, torch' 2> /dev/null; then
    echo "1..0 # SKIP python3-numpy, python3-scipy or python3-torch is not installed"
    exit 0
fi
export OMP_NUM_THREADS=1
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/hessian.py"
