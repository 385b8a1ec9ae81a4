# make_import_corpus.py - small files of every format, for the fuzzer of the importers:
# make_import_corpus.py OUT.tar.gz [FOUND...].  Files and directories FOUND of an earlier run
# are added.
#
# The first byte of each selects the importer, as in tests/fuzz/importers.c.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import gzip
import hashlib
import io
import os
import struct
import sys
import tarfile
import tempfile

import h5py
import nibabel
import numpy as np
import tifffile
from PIL import Image

(PNG, JPEG, TIFF, NIFTI, NPY, NPZ, HDF5, TFRECORD, IDX, CIFAR, CSV, RAW, NIFTI_GZ, CSV_GZ,
 IDX_IMAGES, ANY) = range(16)
TARGET, WHOLE, NO_CHANNELS, GRAY = 16, 32, 64, 128
rng = np.random.default_rng(5)
corpus = {}


def add(first, content):
    for byte in first if isinstance(first, tuple) else (first,):
        content = bytes(content)
        corpus[hashlib.sha1(bytes([byte]) + content).hexdigest()[:16]] = bytes([byte]) + content


def written(write, suffix):
    with tempfile.TemporaryDirectory() as room:
        path = os.path.join(room, "x" + suffix)
        write(path)
        with open(path, "rb") as f:
            return f.read()


def u8(*shape):
    return rng.integers(0, 256, shape, dtype="u1")


def images():
    for mode in "L", "RGB", "RGBA", "LA", "P", "1", "I;16":
        if mode == "I;16":
            image = Image.fromarray(rng.integers(0, 65536, (5, 4)).astype("u2"))
        else:
            image = Image.fromarray(u8(5, 4, 4), "RGBA").convert("RGB" if mode == "P" else "RGBA")
            image = image.convert(mode)
        out = io.BytesIO()
        image.save(out, "PNG")
        add((PNG, PNG | TARGET, PNG | GRAY, ANY), out.getvalue())
        for how in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
            out = io.BytesIO()
            image.save(out, "TIFF", compression=how)
            add((TIFF, TIFF | TARGET), out.getvalue())
    for mode in "L", "RGB", "CMYK":
        for more in {}, {"progressive": True}:
            out = io.BytesIO()
            Image.fromarray(u8(9, 10, 4), "CMYK").convert(mode).save(out, "JPEG", **more)
            add((JPEG, JPEG | GRAY), out.getvalue())
    stack = rng.normal(size=(3, 16, 16)).astype("f4")
    add(TIFF, written(lambda p: tifffile.imwrite(p, stack), ".tif"))
    add(TIFF, written(lambda p: tifffile.imwrite(p, stack, tile=(16, 16), bigtiff=True), ".tif"))
    for kind in "i2", "f4", "u1":
        volume = nibabel.Nifti1Image((rng.normal(size=(3, 4, 5)) * 9).astype(kind), np.eye(4))
        two = nibabel.Nifti2Image((rng.normal(size=(3, 4, 5)) * 9).astype(kind), np.eye(4))
        add((NIFTI, NIFTI | TARGET), written(volume.to_filename, ".nii"))
        add(NIFTI, written(two.to_filename, ".nii"))
        add(NIFTI_GZ, written(volume.to_filename, ".nii.gz"))


def arrays():
    for array in (np.arange(6.0), u8(3, 4, 5), rng.normal(size=(2, 3, 4, 2)).astype(">f4"),
                  np.asfortranarray(rng.normal(size=(3, 4))), np.array([True, False]),
                  np.array(3, "i2"), np.arange(4, dtype="f2")):
        out = io.BytesIO()
        np.save(out, array)
        add((NPY, NPY | WHOLE, NPY | NO_CHANNELS, NPY | TARGET, ANY), out.getvalue())
    for save in np.savez, np.savez_compressed:
        out = io.BytesIO()
        save(out, x=u8(3, 4, 4), y=np.array([0, 1, 0]))
        add((NPZ, NPZ | WHOLE), out.getvalue())

    def h5(path, **more):
        with h5py.File(path, "w") as f:
            f.create_dataset("x", data=u8(4, 5, 5), **more)
            f.create_dataset("y", data=np.array([0, 1, 2, 1]))

    add((HDF5, HDF5 | NO_CHANNELS), written(h5, ".h5"))
    add(HDF5, written(lambda p: h5(p, chunks=(1, 5, 5), compression="gzip"), ".h5"))


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def crc(data):
    """CRC-32C, masked as TFRecord wants it."""
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    value ^= 0xffffffff
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff)


def records():
    def feature(name, number, content):
        return field(1, field(1, name) + field(2, field(number, content)))

    out = io.BytesIO()
    Image.fromarray(u8(4, 5, 3)).save(out, "PNG")
    for features in (
            feature(b"image", 1, field(1, out.getvalue()))
            + feature(b"label", 3, field(1, varint(3))),
            feature(b"x", 2, field(1, struct.pack("<3f", 1, 2, 3)))
            + feature(b"y", 3, field(1, varint(1)))):
        example = field(1, features)
        length = struct.pack("<Q", len(example))
        record = length + crc(length) + example + crc(example)
        add(TFRECORD, record * 2)
        add(TFRECORD, gzip.compress(record, mtime=0))


def plain():
    for code, kind in (8, ">u1"), (11, ">i2"), (13, ">f4"):
        array = (rng.normal(size=(3, 2, 4)) * 50).astype(kind)
        head = struct.pack(">BBBB3I", 0, 0, code, 3, *array.shape)
        add((IDX, IDX_IMAGES, ANY), head + array.tobytes())
    add(IDX, gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 3) + b"\0\1\2", mtime=0))
    add(CIFAR, bytes([3]) + bytes(3072))
    add(CIFAR, bytes([3, 77]) + bytes(3072))
    for text in ("x,y\n1,2\n3,4\n", "x;y\r\n1.5;cat\r\n-2e3;\"do\"\"g\"\r\n",
                 "\"a\nb\"\ty\n1\t0\n\n2\t1", "\ufeffx,y\n1,2.5\n"):
        add((CSV, CSV | GRAY, CSV | TARGET), text.encode())
        add((CSV_GZ, CSV_GZ | GRAY), gzip.compress(text.encode(), mtime=0))
    add((RAW, RAW | WHOLE, RAW | TARGET), bytes(range(6)))
    add(RAW, bytes(range(18)))


def found(path):
    for where, _, names in os.walk(path):
        for name in names:
            found(os.path.join(where, name))
    if os.path.isfile(path):
        with open(path, "rb") as f:
            content = f.read()
        corpus[hashlib.sha1(content).hexdigest()[:16]] = content


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: make_import_corpus.py OUT.tar.gz [FOUND...]")
    for make in images, arrays, records, plain:
        make()
    for path in sys.argv[2:]:
        found(path)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(corpus):
            about = tarfile.TarInfo(name)
            about.size = len(corpus[name])
            tar.addfile(about, io.BytesIO(corpus[name]))
    with open(sys.argv[1], "wb") as f:
        f.write(gzip.compress(out.getvalue(), mtime=0))


if __name__ == "__main__":
    main()
