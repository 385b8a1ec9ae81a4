# infer_read.py - for tests/cli/infer.t: outputs of dnn-infer in any format as arrays, and checks.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""infer_read.py CODE: run CODE with the functions below; failed checks are printed."""
import csv
import json
import os
import sys

import numpy as np


def nifti(path):
    """A volume of a NIfTI file with the axes of the toolkit, channels last."""
    import nibabel
    x = np.asarray(nibabel.load(path).dataobj)
    if x.ndim == 5:
        return x[:, :, :, 0].transpose(2, 1, 0, 3)
    return x.T


def tiff(path):
    import tifffile
    with tifffile.TiffFile(path) as file:
        pages = [page.asarray() for page in file.pages]
    return np.stack(pages) if len(pages) > 1 else pages[0]


def png(path):
    from PIL import Image
    return np.asarray(Image.open(path))


def hdf5(path, name):
    """A dataset of an HDF5 file, with channels last if it has any."""
    import h5py
    with h5py.File(path) as file:
        x = file[name][()]
    return x if name.endswith("_classes") else np.moveaxis(x, 0, -1)


def bp5(path, name, like):
    from adios2.bindings import adios2_bindings_mpi as adios2
    adios = adios2.ADIOS()
    io = adios.DeclareIO("outputs")
    engine = io.Open(path, adios2.Mode.ReadRandomAccess)
    x = np.zeros(like.shape, like.dtype)
    engine.Get(io.InquireVariable(name), x, adios2.Mode.Sync)
    engine.Close()
    return x


def table(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def read_json(path):
    with open(path) as file:
        return json.load(file)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def same(what, got, want, most=0):
    """Complain unless shapes are equal and values differ by at most so much."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        print(f"{what}: shape {got.shape}, not {want.shape}")
    elif got.size == 0 or not np.abs(got.astype("f8") - want.astype("f8")).max() <= most:
        print(f"{what}: differs by {np.abs(got.astype('f8') - want.astype('f8')).max()}")


def is_true(what, good):
    if not good:
        print(what)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    exec(sys.argv[1])  # pylint: disable=exec-used
