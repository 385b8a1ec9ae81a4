#!/bin/bash
# import_images.t - PNG, JPEG, TIFF and NIfTI files of other writers, value by value.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, PIL, tifffile, nibabel' 2> /dev/null; then
    echo "1..0 # SKIP python3-pil, python3-tifffile or python3-nibabel is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/import_images.py" "$@"
