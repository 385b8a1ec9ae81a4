# dataset_file.py - read a dataset with Python's ADIOS2, as described in docs/dataset.md.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os

import numpy as np
from adios2.bindings import adios2_bindings_mpi as adios2

TYPES = {"int8_t": "i1", "uint8_t": "u1", "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4",
         "uint32_t": "u4", "int64_t": "i8", "uint64_t": "u8", "float": "f4", "double": "f8"}


class Dataset:
    def __init__(self, path):
        self.adios = adios2.ADIOS()
        self.io = self.adios.DeclareIO("dataset")
        self.io.SetEngine("BP5")
        self.engine = self.io.Open(path, adios2.Mode.ReadRandomAccess)
        self.attributes = self.io.AvailableAttributes()
        self.splits = self.texts_of("dataset/splits")

    def close(self):
        self.engine.Close()

    # ---- attributes ----

    def text(self, name):
        return self.io.InquireAttribute(name).DataString()[0]

    def texts_of(self, name):
        """A list of texts; None if there is none."""
        return json.loads(self.text(name)) if name in self.attributes else None

    def values(self, name):
        return np.asarray(self.io.InquireAttribute(name).Data())

    def values_or(self, name, default):
        return self.values(name) if name in self.attributes else default

    def count(self, split):
        return int(self.values(f"{split}/count")[0])

    # ---- arrays ----

    def array(self, name, dtype=None):
        """The array as stored; without a dtype, that of ADIOS2."""
        var = self.io.InquireVariable(name)
        out = np.zeros(var.Shape(), dtype or TYPES[var.Type()])
        self.engine.Get(var, out, adios2.Mode.Sync)
        return out

    def column(self, split, column):
        """The array as stored, also f16 and booleans."""
        name = f"{split}/{column}"
        kind = self.text(name + "/type") if name + "/type" in self.attributes else None
        return self.array(name).view({"f16": "f2", "bool": "?"}[kind]) if kind else self.array(name)

    def meant(self, split, column):
        """The values: stored numbers with scale and offset, in f64."""
        name = f"{split}/{column}"
        return self.column(split, column) * self.values_or(name + "/scale", np.ones(1)) \
            + self.values_or(name + "/offset", np.zeros(1))

    def texts(self, name, n):
        ends = self.array(name + ".end", np.int64)
        whole = self.array(name, np.uint8).tobytes()
        starts = [0, *ends[:-1]]
        return [whole[a:b].decode() for a, b in zip(starts, ends)][:n]

    def names(self, split):
        return self.texts(f"{split}/name", self.count(split))

    def groups(self, split):
        return self.texts(f"{split}/group", self.count(split))


def write_bp(path, arrays):
    """A plain BP5 file of arrays, in one step."""
    adios = adios2.ADIOS()
    io = adios.DeclareIO("plain")
    io.SetEngine("BP5")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    engine = io.Open(path, adios2.Mode.Write)
    engine.BeginStep()
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        shape = list(array.shape)
        var = io.DefineVariable(name, array, shape, [0] * array.ndim, shape, True)
        engine.Put(var, array, adios2.Mode.Sync)
    engine.EndStep()
    engine.Close()
