#!/bin/bash
# prepare_errors.t - errors in data: exit status, one message that names file and sample, and no
# dataset.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
if ! guarded python3 -c 'import numpy' 2> /dev/null; then
    echo "1..0 # SKIP python3-numpy is not installed"
    exit 0
fi
scripts=$(realpath "${srcdir:-.}/tests/peer")
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-prepare.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/data" && cd "$tmp/data" || exit 1
lacking=$(PYTHONDONTWRITEBYTECODE=1 guarded python3 "$scripts/prepare_damaged.py" 2>&1)

# attempt STATUS MESSAGE FILTER OPTION...: prepare a.bp; status and filtered message must be these, and
# only the pieces to resume from may be left
attempt() {
    local want=$1 text=$2 filter=$3 got status=0 left
    shift 3
    guarded dnn-prepare -q "$@" --to a.bp > "$tmp/out" 2> "$tmp/err" || status=$?
    got=$(sed -E "$filter" "$tmp/err")
    left=$(find . -maxdepth 1 \( -name a.bp -o -name '.?*' \) ! -name .a.bp.work)
    if [ "$status" = "$want" ] && [ "$got" = "dnn-prepare: $text" ] && [ -z "$left" ] && [ ! -s "$tmp/out" ]; then
        result "$text" ""
    else
        result "$text" "$(printf 'status %s, wanted %s\n got: %s\n left: %s' "$status" "$want" "$got" "$left")"
    fi
    rm -rf a.bp .a.bp*
}
refused() {
    attempt "$1" "$2" '' "${@:3}"
}
# The same, with every number in the message replaced by N.
refused_alike() {
    attempt "$1" "$(sed -E 's/[0-9]+/N/g' <<< "$2")" 's/[0-9]+/N/g' "${@:3}"
}

# ---- nothing to read ----

mkdir empty other dirs dirs/b.npy links
echo x > a.xyz
echo x > other/a.xyz
ln -s nowhere links/b.npy
ln -s nowhere dangling.npy
printf 'here.npy\nempty\n' > directory.txt
printf 'here.npy\nnowhere.npy\n' > missing.txt
printf '# nothing\n' > comment.txt
refused 5 'nowhere: cannot be read: No such file or directory' --from nowhere
refused 5 'nowhere: cannot be read: No such file or directory' --from in --target nowhere
refused 4 'empty: contains no files' --from empty
refused 4 'empty: contains no files' --from in --target empty
refused 4 'dirs: contains no files' --from dirs
refused 4 'other: none of its 1 files has a known format' --from other
refused 4 'a.xyz: unknown file format (suffix ".xyz", and the content is not recognised)' --from a.xyz
refused 3 'unknown format "nyp"; known: png, jpeg, tiff, nifti, npy, npz, hdf5, bp, tfrecord, idx, cifar, csv, raw; did you mean "npy"?' \
    --from here.npy --input-format nyp
refused 5 'dangling.npy: cannot be read: No such file or directory' --from dangling.npy
refused 5 'links/b.npy: cannot be read: No such file or directory' --from links
refused 5 'directory.txt: empty: is a directory, not a file' --from directory.txt
refused 5 'nowhere.npy: cannot be read: No such file or directory' --from missing.txt
refused 4 'comment.txt: the list contains no files' --from comment.txt
refused 5 'gone.npy: cannot be read: No such file or directory' --from locate.csv --objects file --targets b

mkdir partly
cp here.npy partly/b.npy
touch partly/c.npx partly/a.txt
guarded dnn-prepare -q --from partly --to a.bp 2> "$tmp/err"
result "skipped files of a directory are logged once" \
    "$(diff "$tmp/err" - <<< 'import: warn: partly: skipped 2 of 3 files of unknown format; the first is a.txt')"
rm -rf a.bp

# ---- truncated files ----

# whole_first FILE OPTION...: the complete file can be read, so the error is due to truncation
whole_first() {
    local file=$1
    shift
    result "$file: the complete file is read" "$(guarded dnn-prepare -q --from "whole/$file" "$@" --to a.bp 2>&1)"
    rm -rf a.bp
}
# halves FORMAT FILE MESSAGE OPTION...
halves() {
    local format=$1 file=$2 text=$3
    shift 3
    if grep -qx "$format" <<< "$lacking"; then
        skip "half of $file" "no Python library writes $format here"
        return
    fi
    whole_first "$file" "$@"
    refused_alike 4 "half/$file: $text" --from "half/$file" "$@"
}
halves png a.png 'damaged PNG: truncated after N bytes'
halves jpeg a.jpg 'damaged JPEG: Premature end of JPEG file'
halves tiff a.tif 'damaged TIFF: page N: Can not read TIFF directory count'
halves nifti a.nii 'truncated: the header declares N bytes, but there are N'
halves nifti a.nii.gz 'decompression failed after N bytes: unexpected end of file'
halves numpy a.npy 'N bytes, but the header declares NxNxNxN of uN, which needs N'
halves numpy a.npz 'cannot be read as a zip archive: Possibly truncated or corrupted zip archive'
halves hdf5 a.h5 'HDFN cannot read it: truncated file: eof = N, sblock->base_addr = N, stored_eof = N'
halves tfrecord a.tfrecord 'record N: N bytes, but the file ends after N'
halves plain a.idx 'the header declares uN NxNxN, but N bytes follow it'
halves plain data_batch_1.bin \
    'N bytes is not a multiple of the record size of CIFAR-N (N, data_batch_N.bin) or CIFAR-N (N, train.bin)'
halves plain a.csv.gz 'decompression failed after N bytes: unexpected end of file'
halves plain a.raw 'N bytes after an offset of N is not a multiple of the sample size: uN NxN (N bytes each)' \
    --input-shape=5,6 --input-layout=none
for file in a.png a.npy a.npz a.h5 a.nii a.tif a.jpg a.tfrecord a.idx; do
    : > "none-$file"
done
refused 4 'none-a.npy: not a NumPy file: the magic bytes are missing' --from none-a.npy
refused 4 'none-a.idx: truncated: 0 of 4 bytes' --from none-a.idx
refused 4 'none-a.npz: cannot be read as a zip archive: Not a zip archive' --from none-a.npz
refused 4 'none-a.png: damaged PNG: truncated after 0 bytes' --from none-a.png
refused 4 'none-a.jpg: damaged JPEG: Empty input file' --from none-a.jpg
refused 4 'none-a.tif: damaged TIFF: Cannot read TIFF header' --from none-a.tif
refused 4 'none-a.h5: HDF5 cannot read it: file signature not found' --from none-a.h5
refused 4 'none-a.nii: truncated: 0 of 4 bytes' --from none-a.nii
refused 4 'none-a.tfrecord: contains no records' --from none-a.tfrecord
if [ -d pets ]; then
    refused 4 'pets/dog/1.png: damaged PNG: truncated after 900 bytes' --from pets
    refused 4 'pets/dog/1.png: damaged PNG: truncated after 900 bytes' \
        --from pets --split 0.5,0,0.5 --stratify --normalise channel
fi

# ---- datasets that are damaged ----

guarded dnn-prepare -q --from whole/a.npy --to good.bp
damaged() {
    rm -rf bad.bp
    cp -r good.bp bad.bp
}
damaged
truncate -s -100 bad.bp/data.0
refused_alike 4 'bad.bp/data.N: damaged or truncated: N bytes, but N were written' --from bad.bp
damaged
rm bad.bp/dnn.idx
refused 4 'bad.bp: incomplete dataset: the file dnn.idx, which is written last, is missing; prepare it again' --from bad.bp
damaged
printf '\377' | dd of=bad.bp/data.0 bs=1 seek=10 conv=notrunc 2> /dev/null
refused 4 'bad.bp: all: sample 0: checksum mismatch in input; the file is damaged' --from bad.bp

# ---- samples that do not belong together ----

refused 4 'in, out: inputs without a target of the same name: a.npy; targets without an input: d.npy' \
    --from in --target out --target-kind mask
rm out/d.npy
refused 4 'in, out: inputs without a target of the same name: a.npy' --from in --target out --target-kind mask
refused 4 'out, in: targets without an input of the same name: a.npy' --from out --target in --target-kind mask
refused 4 'in, whole/a.npy: 3 inputs, but 5 targets' --from in --target whole/a.npy
refused 4 'fewer.npz: x has 3 samples, but y has 2' --from fewer.npz --target-kind label
refused 4 'x-labels-idx1-ubyte: 4 labels, but x-images-idx3-ubyte has 5 samples' --from x-images-idx3-ubyte
refused 4 '2.npy: input is f32 6x5x1, but in 0.npy it is f32 4x5x1; resize, crop or pad them to one shape' \
    --from shapes --whole
if [ -d mixed ]; then
    refused 4 'dog/1.png: input is u8 20x30x1, but in cat/0.png it is u8 20x30x3; resize, crop or pad them to one shape' --from mixed
fi

# ---- values ----

refused 4 'nan.npy[2]: input: value 3 is NaN; set "allow_nan": true to accept it' --from nan.npy
refused 4 'inf.npy[2]: input: value 3 is infinite; set "allow_nan": true to accept it' --from inf.npy
refused 4 'minus.npz[1]: target: class -1; class numbers must be 0 or more' --from minus.npz --target-kind label
refused 4 'high.npz[1]: target: remap: element 0 is 5; classes are 0 to 2' \
    --from high.npz --target-kind label --remap 0,1,2
refused 4 'data_batch_1.bin: sample 1: label 12 is out of range; CIFAR-10 has 10 fine classes, 0 to 9' --from data_batch_1.bin
refused 4 'words.csv:3: column "b": "four" is not a number' --from words.csv
refused 4 'words.csv:1: there is no column "c"' --from words.csv --targets c
refused 4 'ragged.csv:3: 1 fields, but the header has 2' --from ragged.csv

# ---- steps that do not fit ----

refused 3 'command line:1: steps[0].resize: there is no column to apply it to' --from here.npy --resize 5x5
refused 3 'command line:1: steps[0].split: the fractions add up to 0.6, not 1; set "partial": true to leave the remaining samples out' \
    --from here.npy --split 0.5,0.1
refused 3 'command line:1: steps[0].type: dtype must be one of f32, f64, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64, bool, not "i5"; did you mean "i8"?' \
    --from here.npy --type i5
finish
