#!/bin/bash
# import_formats.t - IDX, CIFAR, raw files, tables, directories, pairs and lists, value by value.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, nibabel, PIL' 2> /dev/null; then
    echo "1..0 # SKIP python3-numpy, -nibabel or -pil is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/import_formats.py" "$@"
