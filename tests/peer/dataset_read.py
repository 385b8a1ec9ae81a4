# dataset_read.py - read a dataset with Python's ADIOS2 and compare it with what was written.
#
# Uses only docs/dataset.md and the formulas of tests/dataset_made.h, no code of the toolkit.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import sys

import numpy as np

from dataset_file import Dataset
from tap import finish, result, skip, unless

try:
    import xxhash
except ImportError:
    xxhash = None

path, want_hash = sys.argv[1], sys.argv[2]
dataset = Dataset(path)
io, text, values = dataset.io, dataset.text, dataset.values
array, texts = dataset.array, dataset.texts


def made(split, col, sample, size):
    i = np.arange(size)
    return ((split * 101 + col * 37 + sample * 5 + i // 100) % 256).astype(np.uint8)


result("format", unless(text("dataset/format") == "dnn-toolkit dataset"))
result("version", unless(values("dataset/version") == [1]))
result("hash", unless(text("dataset/hash") == want_hash))
result("provenance is JSON", unless("command" in json.loads(text("dataset/provenance"))))
splits = json.loads(text("dataset/splits"))
result("splits", unless(splits == ["train", "test"]))
stored = {
    "input": (np.uint8, (16, 12, 3)),
    "mask": (np.int16, (16, 12, 1)),
    "target": (np.int32, ()),
    "half": (np.uint16, (7,)),
    "affine": (np.float64, (4, 4)),
}
for s, split in enumerate(splits):
    n = [23, 5][s]
    columns = json.loads(text(f"{split}/columns"))
    result(f"{split}: columns", unless(columns == list(stored)[: 3 if s else 5]))
    result(f"{split}: count", unless(values(f"{split}/count") == [n]))
    for k, column in enumerate(columns):
        dtype, shape = stored[column]
        if split == "test" and column == "mask":
            dtype = np.uint8
            result("a type ADIOS2 does not have: bool", unless(text("test/mask/type") == "bool"))
        if column == "half":
            result("a type ADIOS2 does not have: f16", unless(text("train/half/type") == "f16"))
        got = array(f"{split}/{column}", dtype)
        size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
        same = got.shape == (n, *shape)
        for i in range(n):
            if column == "target":
                same &= got[i] == i % 3
            else:
                same &= got[i].tobytes() == made(s, k, i, size).tobytes()
        result(f"{split}/{column}: every value of every sample", unless(same))
        if xxhash is None:
            skip(f"{split}/{column}: sums", "no python3-xxhash")
        else:
            sums = array(f"{split}/{column}.sum", np.uint64)
            mine = [xxhash.xxh3_64_intdigest(a.tobytes()) for a in got]
            result(f"{split}/{column}: sums", unless(mine == list(sums)))
    names = texts(f"{split}/name", n)
    result(f"{split}: names",
           unless(names == ["" if i % 7 == 3 else f"{'ab'[s]}/{i}.png" for i in range(n)]))
result("groups", unless(texts("train/group", 23) == [f"p{i // 2}" for i in range(23)]))
result("folds", unless(list(array("train/fold", np.int32)) == [i % 3 for i in range(23)]))
result("names of classes",
       unless(json.loads(text("train/target/class_names")) == ["cat", 'dog "big"', "café"]))
result("scale", unless(np.array_equal(values("train/input/scale"), [1 / 255, 1 / 256, 1 / 257])))
result("means", unless(np.array_equal(values("train/input/stats/mean"), [0.1, 0.1 * 2, 0.1 * 3])))
result("counts of classes",
       unless(list(array("train/target.class_count", np.int64)) == [10, 11, 12]))
result("histogram",
       unless(list(array("train/input.histogram", np.int64)) == [i % 17 for i in range(4096)]))


def spell(shape):
    return "x".join(map(str, shape)) if shape else "scalar"


def whole_hash():
    h = xxhash.xxh3_128()
    names = {"uint8_t": "u8", "int16_t": "i16", "int32_t": "i32", "double": "f64"}
    for split in splits:
        n = values(f"{split}/count")[0]
        folds = values(f"{split}/folds")[0] if split == "train" else 0
        h.update(f"split {split} {n} {folds}\n".encode())
        for column in json.loads(text(f"{split}/columns")):
            at = f"{split}/{column}"
            var = io.InquireVariable(at)
            attrs = io.AvailableAttributes()
            kind = text(at + "/type") if at + "/type" in attrs else names[var.Type()]
            classes = values(at + "/classes")[0] if at + "/classes" in attrs else 0
            role = text(at + "/role")
            h.update(
                f"column {column} {role} {text(at + '/kind')} {kind} "
                f"{spell(var.Shape()[1:])} {classes}\n".encode()
            )
            if at + "/class_names" in attrs:
                for name in json.loads(text(at + "/class_names")):
                    h.update(name.encode() + b"\0")
            for what in ("scale", "offset"):
                if f"{at}/{what}" in attrs:
                    h.update(values(f"{at}/{what}").astype("<f8").tobytes())
            spacing = values(at + "/spacing") if at + "/spacing" in attrs else np.zeros(3)
            h.update(np.asarray(spacing).astype("<f8").tobytes())
            h.update(array(at + ".sum", np.uint64).tobytes())
        h.update(array(f"{split}/name", np.uint8).tobytes())
        h.update(array(f"{split}/name.end", np.int64).tobytes())
        if split == "train":
            h.update(array("train/fold", np.int32).tobytes())
            h.update(array("train/group", np.uint8).tobytes())
            h.update(array("train/group.end", np.int64).tobytes())
    return h.hexdigest()


def about_sums():
    names, groups = texts("train/name", 23), texts("train/group", 23)
    folds = array("train/fold", np.int32)
    return [
        xxhash.xxh3_64_intdigest(
            names[i].encode() + b"\0" + folds[i].tobytes() + groups[i].encode() + b"\0"
        )
        for i in range(23)
    ]


if xxhash is None:
    skip("the hash of the dataset", "no python3-xxhash")
else:
    result("the hash of the dataset", unless(whole_hash() == want_hash))
    result("sums of names", unless(about_sums() == list(array("train/name.sum", np.uint64))))
dataset.close()
finish()
