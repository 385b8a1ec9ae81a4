#!/bin/bash
# output_files.t - files of outputs in all formats, read by h5py, numpy, ADIOS2, nibabel, tifffile
# and PIL.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
prog=$(realpath "${top_builddir:-.}/tests/output_run")
check=$(realpath "$srcdir/tests/peer/output_files.py")
export PYTHONDONTWRITEBYTECODE=1
if ! python3 -c 'import h5py, numpy, nibabel, tifffile, PIL, adios2' 2> /dev/null; then
    echo "1..0 # SKIP h5py, numpy, nibabel, tifffile, PIL or adios2 is not installed"
    exit 0
fi
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-output.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT

# A volume with the axes of the first sample, and an oblique orientation.
export OUTPUT_LIKE=$tmp/like.nii.gz
python3 - << 'END'
import os
import nibabel, numpy
affine = numpy.array([[-0.9, 0.1, 0, 10], [0.1, 1.1, 0.2, -20], [0, -0.3, 2.5, 30], [0, 0, 0, 1]])
image = nibabel.Nifti1Image(numpy.zeros((5, 6, 9), "int16"), affine)
image.set_sform(affine, 4)
nibabel.save(image, os.environ["OUTPUT_LIKE"])
END

while read -r kind precision flags; do
    formats=hdf5,npy,bp5
    case $kind in
    volumes | masks | images) formats=$formats,nifti,tiff,png,overlay ;;
    vectors | binary) formats=$formats,csv,json ;;
    esac
    dir=$tmp/$kind$precision
    result "$kind is written, precision $precision $flags" "$(
        guarded "$prog" "$dir" "$kind" "$formats" values,classes "$precision" -1 "" "$flags" \
            2>&1 > "$tmp/paths" || cat "$tmp/paths"
        find "$dir" -name '.*')"
    mapfile -t lines < <(guarded python3 "$check" "$dir" "$kind" "$precision" "$flags" 2>&1)
    for line in "${lines[@]}"; do
        case $line in
        'ok '*) result "${line#*- }" "" ;;
        'not ok '*) result "${line#*- }" "differs" ;;
        1..*) ;;
        *) echo "# $line" ;;
        esac
    done
    [[ ${lines[-1]} == 1..* ]] || result "$kind is checked" "${lines[*]: -3}"
done << 'END'
volumes 0
volumes 1 gzip,copy
volumes 2 last
masks 0
masks 2 gzip
images 0
images 1
vectors 0
vectors 2 name,top2
binary 0
two 0
two 1 last
END
finish
