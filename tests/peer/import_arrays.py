# import_arrays.py - arrays written by NumPy, h5py and protobuf, read by the toolkit's
# importers and compared number by number.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import gzip
import io
import os
import subprocess
import tempfile
import zipfile

import h5py
import numpy as np
from PIL import Image

from import_writers import encoded, write_tfrecord as write
from tap import finish, result, unless

PROGRAM = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/import_check")
TYPES = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4",
         "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8", "bool": "?"}
rng = np.random.default_rng(7)


def read(*words):
    """(columns, samples): each sample a list of arrays; or the message."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PROGRAM, "--dump", folder, *words], capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip() or f"exit {done.returncode}"
        columns, samples = [], []
        for line in done.stdout.splitlines():
            word = line.split()
            if line.startswith("column "):
                columns.append(tuple(word[1:5]))
            elif line.startswith("sample "):
                samples.append([])
            elif line.startswith("  "):
                path = os.path.join(folder, f"{len(samples) - 1}.{len(samples[-1])}")
                shape = () if word[1] == "scalar" else tuple(map(int, word[1].split("x")))
                samples[-1].append(np.fromfile(path, TYPES[word[0]]).reshape(shape))
        return columns, samples


def same(got, *wanted):
    """How the columns differ from these arrays (axis 0: samples); empty if they do not."""
    if isinstance(got, str):
        return got
    columns, samples = got
    if len(samples) != len(wanted[0]) or len(columns) != len(wanted):
        return f"{len(samples)} samples of {len(columns)} columns"
    for i, sample in enumerate(samples):
        for array, want in zip(sample, (w[i] for w in wanted)):
            want = np.asarray(want)
            want = want.astype(want.dtype.newbyteorder("="))
            if array.dtype != want.dtype or array.shape != want.shape:
                return f"sample {i}: {array.dtype} {array.shape}, not {want.dtype} {want.shape}"
            if array.tobytes() != np.ascontiguousarray(want).tobytes():
                return f"sample {i}: {array} not {want}"
    return ""


def check(what, got, *wanted):
    result(what, same(got, *wanted))


def numbers(dtype, shape):
    """Random bits; floats without NaN, which has several representations."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    bits = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    array = bits.view(dtype).reshape(shape)
    return np.where(np.isnan(array), dtype.type(1), array).astype(dtype)


ALL = ["?", "i1", "u1", *[o + k for k in ("i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
                          for o in "<>"]]


# ---- NumPy ----

def npy(folder):
    path = os.path.join(folder, "a.npy")
    for dtype in ALL:
        for order in "CF":
            array = np.array(numbers(dtype, (5, 4, 6)), order=order)
            np.save(path, array)
            check(f"npy {dtype} in {order} order", read(path), array[..., None])
    for version in ((1, 0), (2, 0), (3, 0)):
        array = numbers("f4", (3, 7))
        with open(path, "wb") as f:
            np.lib.format.write_array(f, array, version)
        check(f"npy version {version[0]}", read(path), array)
    array = np.asfortranarray(numbers("f4", (2, 3, 5, 7)))
    np.save(path, array)
    check("npy whole in Fortran order, channels first",
          read("--whole", "true", "--input-layout", "first", path),
          np.moveaxis(array, 0, -1)[None])
    check("npy rows in Fortran order, channels first", read("--input-layout", "first", path),
          np.moveaxis(array, 1, -1))
    big = numbers("f4", (2000, 31))
    with gzip.open(path + ".gz", "wb") as f:
        np.save(f, big)
    check("npy in gzip", read(path + ".gz"), big)
    x, y = numbers("u1", (6, 8, 8)), rng.integers(0, 9, 6)
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y)
    check("npy with labels in another", read(path[:-5] + "x.npy", path[:-5] + "y.npy"),
          x[..., None], y)
    for odd in (np.array(["a", "b"]), np.array([None, 1], object), np.zeros(3, "c8"),
                np.zeros(2, [("a", "f4"), ("b", "i4")]), np.zeros(2, "M8[s]")):
        np.save(path, odd)
        got = read(path)
        result(f"npy {odd.dtype} is refused", unless("not numbers" in got or "not supported" in got, got))


def npz(folder):
    path = os.path.join(folder, "a.npz")
    x, y = numbers("u1", (7, 3, 9, 11)), rng.integers(0, 9, 7).astype("i2")
    wide = np.moveaxis(x, 1, -1)
    for save in (np.savez, np.savez_compressed):
        save(path, x=x, y=y)
        got = read(path)
        result(f"{save.__name__}: channels are not guessed", unless('set "layout"' in got, got))
        check(f"{save.__name__}: x and y, channels first", read("--input-layout", "first", path),
              wide, y)
        save(path, wide, y)
        check(f"{save.__name__}: without names", read(path), wide, y)
        save(path, x_train=wide, y_train=y, x_test=wide[:2], y_test=y[:2])
        check(f"{save.__name__}: a split", read("--split", "test", path), wide[:2], y[:2])
        save(path, *[numbers("f4", (1, 4, 4, 4)) for _ in range(12)])
        with np.load(path) as f:
            want = np.stack([f[f"arr_{i}"] for i in range(12)])
        check(f"{save.__name__}: each member a sample",
              read("--whole", "true", "--input-layout", "first", path),
              np.moveaxis(want, 1, -1))
    for dtype in ALL:
        array = np.asfortranarray(numbers(dtype, (4, 3, 5)))
        np.savez_compressed(path, data=array, label=y[:4])
        check(f"npz {dtype} in Fortran order", read(path), array[..., None], y[:4])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, array in (("x", wide), ("y", y)):
            with z.open(name + ".npy", "w", force_zip64=True) as f:
                np.save(f, array)
    check("npz with sizes of 64 bits", read(path), wide, y)
    for i in range(3):
        np.savez(os.path.join(folder, f"part{i}.npz"), x=wide + i, y=y + i)
    os.remove(path)
    check("a directory of npz", read(folder), np.concatenate([wide + i for i in range(3)]),
          np.concatenate([y + i for i in range(3)]).astype("i2"))


# ---- HDF5 ----

def hdf5(folder):
    path = os.path.join(folder, "a.h5")
    for dtype in ALL:
        array = numbers(dtype, (5, 4, 6))
        with h5py.File(path, "w") as f:
            f["features"] = array
            f["labels"] = np.arange(5)
        check(f"hdf5 {dtype}", read(path), array[..., None], np.arange(5))
    array = numbers("f4", (9, 20, 30, 3))
    for name, how in (("chunks", {"chunks": (4, 7, 30, 1)}),
                      ("gzip", {"chunks": (4, 20, 30, 3), "compression": "gzip"}),
                      ("shuffle and gzip", {"compression": "gzip", "shuffle": True}),
                      ("fletcher32", {"fletcher32": True}),
                      ("maxshape", {"maxshape": (None, 20, 30, 3)})):
        with h5py.File(path, "w", libver="latest" if name == "gzip" else None) as f:
            f.create_dataset("x", data=array, **how)
        check(f"hdf5 {name}", read(path), array)
    with h5py.File(path, "w") as f:
        f["deep/in/images"] = array
        f["deep/masks"] = array[..., 0].view("u4") % 5
        f["title"] = "a text"
    check("hdf5 groups", read("--input-name", "deep/in/images", "--target-name", "deep/masks", path),
          array, (array[..., 0].view("u4") % 5)[..., None])
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=array, compression="lzf")
    got = read(path)
    result("hdf5 with a filter that only h5py has is refused",
           unless("x: needs the HDF5 filter 32000 (lzf), which is not installed" in got,
                  got))
    with h5py.File(path, "w") as f:
        f["volume"] = array[..., 0]
    check("hdf5 one volume", read("--whole", "true", "--input-layout", "none", path),
          array[None, ..., 0, None])
    os.remove(path)
    names = []
    for i in range(4):  # as in NNLO: a list of files, each with features and labels
        names.append(f"part{3 - i}.h5")
        with h5py.File(os.path.join(folder, names[-1]), "w") as f:
            f["Images"] = array + i
            f["Labels"] = np.eye(3, dtype="f4")[np.arange(9) % 3]
    with open(os.path.join(folder, "train.txt"), "w") as f:
        f.write("\n".join(names) + "\n")
    check("a list of hdf5 files",
          read("--input-name", "Images", "--target-name", "Labels", os.path.join(folder, "train.txt")),
          np.concatenate([array + i for i in range(4)]),
          np.concatenate([np.eye(3, dtype="f4")[np.arange(9) % 3]] * 4))


# ---- TFRecord ----

def tfrecord(folder):
    path = os.path.join(folder, "a.tfrecord")
    images = [numbers("u1", (5 + i, 7, 3)) for i in range(6)]
    labels = list(rng.integers(-2**40, 2**40, 6))
    write(path, [{"image/encoded": encoded(a, "PNG"), "image/format": "png", "image/height": len(a),
                  "image/width": 7, "image/class/label": l, "image/class/text": "thing"}
                 for a, l in zip(images, labels)])
    check("tfrecord of PNG", read(path), images, labels)
    write(path, [{"image/encoded": encoded(a, "JPEG"), "image/class/label": 1} for a in images])
    check("tfrecord of JPEG", read(path),
          [np.array(Image.open(io.BytesIO(encoded(a, "JPEG")))) for a in images], [1] * 6)
    for name, opener in (("a.tfrecord", open), ("b.tfrecord.gz", gzip.open), ("train-00000-of-00001", open)):
        where = os.path.join(folder, name)
        write(where, [{"image_raw": a.tobytes(), "height": len(a), "width": 7, "depth": 3, "label": l}
                      for a, l in zip(images, labels)], opener)
        check(f"tfrecord of bytes, {name}", read(where), images, labels)
    values = numbers("f4", (20, 4, 5, 2))
    write(path, [{"x": v, "x/shape": v.shape, "y": v[0, 0]} for v in values])
    check("tfrecord of floats with a shape", read(path), values, values[:, 0, 0])
    whole = rng.integers(-2**62, 2**62, (20, 9))
    write(path, [{"stuff": v, "out": [0.5]} for v in whole])
    check("tfrecord of integers by name", read("--input-name", "stuff", "--target-name", "out", path),
          whole, np.full((20, 1), 0.5, "f4"))
    masks = [rng.integers(0, 4, (6, 8)).astype("u1") for _ in range(3)]
    write(path, [{"image": encoded(numbers("u1", (6, 8, 3)), "PNG"), "mask": encoded(m, "PNG")}
                 for m in masks])
    got = read(path)
    check("tfrecord with masks", got if isinstance(got, str) else (got[0][1:], [s[1:] for s in got[1]]),
          [m[..., None] for m in masks])


def main():
    for part in (npy, npz, hdf5, tfrecord):
        with tempfile.TemporaryDirectory() as folder:
            part(folder)
    finish()


main()
