#!/bin/bash
# generate.t - Sobol's points and fields of diffusivity against SciPy and NumPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, scipy.stats' 2> /dev/null; then
    echo "1..0 # SKIP python3-scipy is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/generate.py" "$@"
