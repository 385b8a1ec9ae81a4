# output_files.py - files of outputs, read by other programs' libraries, value by value.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""output_files.py DIR KIND PRECISION FLAGS: check the files that tests/output_run wrote."""
import csv
import json
import os
import sys

import h5py
import nibabel
import numpy as np
import tifffile
from PIL import Image
from adios2.bindings import adios2_bindings_mpi as adios2

import tap

where, kind, precision, flags = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
FLOAT = ["float32", "float16", "float64"][precision]
NAMES = ["scans/a.nii.gz", "scans/a.nii", "b.tif", "deep/er/c.npy", "b.tif", "scans/x[7]"]
STEMS = ["scans/a", "scans/a~2", "b", "deep/er/c", "b~2", "scans/x[7]"]
SHAPES = {
    "volumes": [[(9, 6, 5, 3)], [(9, 6, 5, 3)], [(4, 7, 8, 3)], [(1, 3, 2, 3)]],
    "masks": [[(5, 6, 7, 1)], [(5, 6, 7, 1)], [(4, 7, 8, 1)], [(6, 3, 2, 1)]],
    "vectors": [[(4,)]] * 4,
    "binary": [[(1,)]] * 4,
    "images": [[(6, 5, 3)], [(8, 9, 3)], [(6, 5, 3)], [(1, 1, 3)]],
    "two": [[(6, 5, 2), (4,)], [(6, 5, 2), (4,)], [(6, 7, 2), (4,)], [(6, 5, 2), (4,)]],
}[kind]
COUNT = {"volumes": 6, "masks": 6, "vectors": 40, "binary": 9, "images": 7, "two": 5}[kind]
OUTPUTS = ["mask", "label"]
CLASSES = ["cat", 'dog, "big"', "owl", "fox"]
COLOURS = [(0, 0, 0), (0xE6, 0x32, 0x3C), (0x3C, 0xB4, 0x4B), (0x4C, 0x7D, 0xFF)]


def value(sample, k, shape):
    index = np.arange(np.prod(shape)).reshape(shape)
    return (((sample * 7919 + k * 1009 + index * 37) % 2003 - 1000) / 64).astype("float32")


def classes(x):
    return (x[..., 0] > 0.5).astype(int) if x.shape[-1] == 1 else x.argmax(-1)


def unit_range(x):
    low, high = x.min(), x.max()
    return np.rint(255 * ((x - low) / (high - low))) if high > low else np.zeros_like(x)


def middle(x, space):
    return x[x.shape[0] // 2] if space == 3 else x


def name(sample):
    return NAMES[sample] if sample < 6 else f"n{sample}.png"


def stem(sample):
    return STEMS[sample] if sample < 6 else f"n{sample}"


def dataset(sample):
    return "b.tif~2" if sample == 4 else name(sample)


def prefix(k):
    return f"{OUTPUTS[k]}/" if len(SHAPES[0]) > 1 else ""


def items():
    for sample in range(COUNT):
        for k, shape in enumerate(SHAPES[sample % 4]):
            yield sample, k, value(sample, k, shape)


def same(what, got, want, kinds):
    got = np.asarray(got)
    if got.shape != want.shape:
        return [f"{what}: shape {got.shape}, not {want.shape}"]
    if got.dtype.kind not in kinds:
        return [f"{what}: type {got.dtype}"]
    return [] if (got == want).all() else [f"{what}: other values"]


def check_hdf5(path):
    bad, seen = [], 0
    with h5py.File(path) as file:
        for sample, k, x in items():
            at = prefix(k) + dataset(sample)
            want = x if "last" in flags else np.moveaxis(x, -1, 0)
            bad += same(at, file[at][()], want, "f")
            bad += tap.unless(file[at].dtype == FLOAT, f"{at}: {file[at].dtype}")
            bad += same(at + "_classes", file[at + "_classes"][()], classes(x), "u")
            seen += 2
        found = []
        file.visititems(lambda n, o: found.append(n) if isinstance(o, h5py.Dataset) else None)
    return bad + tap.unless(len(found) == seen, f"{len(found)} datasets, not {seen}: {found}")


def check_npy():
    bad = []
    for sample, k, x in items():
        at = f"{where}/{prefix(k)}{stem(sample)}"
        got = np.load(at + ".npy")
        bad += same(at, got, x, "f") + tap.unless(got.dtype == FLOAT, f"{at}: {got.dtype}")
        bad += same(at + " classes", np.load(at + "_classes.npy"), classes(x), "u")
    return bad


def check_bp():
    adios = adios2.ADIOS()
    io = adios.DeclareIO("outputs")
    engine = io.Open(where + "/outputs.bp", adios2.Mode.ReadRandomAccess)
    bad = []
    for sample, k, x in items():
        at = prefix(k) + dataset(sample)
        for name_at, want, dtype in ((at, x, "uint16" if precision == 1 else FLOAT),
                                     (at + "_classes", classes(x), "uint8")):
            got = np.zeros(want.shape or (1,), dtype)
            engine.Get(io.InquireVariable(name_at), got, adios2.Mode.Sync)
            if dtype == "uint16":
                got = got.view("float16")
            bad += same(name_at, got.reshape(want.shape), want, "fu")
    engine.Close()
    return bad


def check_nifti():
    bad, suffix = [], ".nii.gz" if "gzip" in flags else ".nii"
    for sample, k, x in items():
        at = f"{where}/{stem(sample)}"
        space = x.ndim - 1
        image = nibabel.load(at + suffix)
        got = np.asarray(image.dataobj)
        got = got.reshape(got.shape[:space] + got.shape[4:]) if x.shape[-1] > 1 else got
        axes = list(range(space))[::-1]
        want = np.transpose(x, axes + [space]) if x.shape[-1] > 1 else \
            np.transpose(x[..., 0], axes)
        bad += same(at, got, want, "f")
        image = nibabel.load(at + "_classes" + suffix)
        bad += same(at, np.asarray(image.dataobj), np.transpose(classes(x), axes), "u")
        zooms = [3, 2.5, 2][:space][::-1]
        affine, code = image.header.get_base_affine(), 0
        if sample == 0 and kind == "volumes":  # others have other axes
            like = nibabel.load(os.environ["OUTPUT_LIKE"])
            zooms, affine = like.header.get_zooms()[:space], like.affine
            code = like.header["sform_code"]
        bad += tap.unless(image.header["sform_code"] == code, f"{at}: sform_code")
        bad += tap.unless(np.allclose(image.header.get_zooms()[:space], zooms), f"{at}: zooms")
        bad += tap.unless(np.allclose(image.affine, affine, atol=1e-5), f"{at}: affine")
    return bad


def check_tiff():
    bad = []
    for sample, _, x in items():
        at = f"{where}/{stem(sample)}"
        want = x[..., 0] if x.shape[-1] == 1 else x
        for path, array, kinds in ((at, want, "f"), (at + "_classes", classes(x), "u")):
            with tifffile.TiffFile(path + ".tif") as file:
                pages = [page.asarray() for page in file.pages]
            got = np.stack(pages) if x.ndim == 4 else pages[0]
            bad += same(path, got, array, kinds)
    return bad


def check_png():
    bad = []
    for sample, _, x in items():
        at, space = f"{where}/{stem(sample)}", x.ndim - 1
        plane = middle(x, space)
        want = unit_range(plane)
        got = np.asarray(Image.open(at + ".png"))
        bad += same(at, got, want[..., 0] if x.shape[-1] == 1 else want, "u")
        image = Image.open(at + "_classes.png")
        bad += tap.unless(image.mode == "P", f"{at}: {image.mode}")
        bad += same(at, np.asarray(image), classes(plane), "u")
        palette = image.getpalette()[:12]
        bad += tap.unless(palette == [c for colour in COLOURS for c in colour], f"{palette}")
        below = unit_range(middle(value(sample, 9, x.shape[:-1] + (1,)), space)).astype(int)
        below = np.repeat(below, 3, -1)
        class_of = classes(plane)
        colour = np.asarray(COLOURS)[class_of]
        want = np.where(class_of[..., None] > 0, (below + colour) // 2, below)
        bad += same(at + " overlay", np.asarray(Image.open(at + "_overlay.png")), want, "u")
    return bad


def ranked(x):
    if len(x) == 1:
        one = x[0] > 0.5
        return [(int(one), x[0] if one else 1 - x[0]), (int(not one), 1 - x[0] if one else x[0])]
    return [(int(c), x[c]) for c in np.argsort(-x, kind="stable")]


def check_table():
    with open(f"{where}/{'made' if 'name' in flags else 'outputs'}.csv", newline="") as file:
        rows = list(csv.reader(file))
    with open(f"{where}/{'made' if 'name' in flags else 'outputs'}.json") as file:
        objects = json.load(file)
    head = ["row_id"] + ["name"] * ("name" in flags) + ["output_class", "confidence"]
    bad = tap.unless(rows[0] == head, f"{rows[0]}")
    bad += tap.unless(len(rows) == COUNT + 1 and len(objects) == COUNT, "number of rows")
    for sample, _, x in items():
        best = [(CLASSES[c] if "name" in flags else c, float(p)) for c, p in ranked(x)]
        want = [str(sample)] + [name(sample)] * ("name" in flags) + [str(best[0][0])]
        bad += tap.unless(rows[sample + 1][:-1] == want and
                          float(rows[sample + 1][-1]) == best[0][1], f"{rows[sample + 1]}")
        top = best[:2] if "top2" in flags else best
        want = {"row_id": sample, "name": name(sample),
                "classes": [{"class": c, "probability": p} for c, p in top]}
        bad += tap.unless(objects[sample] == want, f"{objects[sample]} not {want}")
    return bad


about = f"{kind}, {FLOAT} {flags}"
shared = "made" if "name" in flags else "outputs"
tap.result(f"HDF5: {about}", check_hdf5(f"{where}/{shared}.h5"))
if "copy" in flags:
    tap.result(f"a second HDF5 file: {about}", check_hdf5(f"{where}/co/py.h5"))
tap.result(f"NPY: {about}", check_npy())
if "name" not in flags:
    tap.result(f"BP5: {about}", check_bp())
if kind in ("volumes", "masks", "images"):
    tap.result(f"NIfTI: {about}", check_nifti())
    tap.result(f"TIFF: {about}", check_tiff())
    tap.result(f"PNG: {about}", check_png())
if kind in ("vectors", "binary"):
    tap.result(f"CSV and JSON: {about}", check_table())
tap.finish()
