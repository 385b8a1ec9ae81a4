# import_reader.py - the output of import_check as NumPy arrays.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import os
import subprocess

import numpy as np

PROGRAM = os.path.abspath(
    os.path.join(os.environ.get("top_builddir", "."), "tests/peer/import_check"))
TYPES = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2",
         "i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8", "bool": "?"}


class Source:
    """What was read: columns by name, and for each sample its name, class, group and arrays."""

    def __init__(self, text):
        self.columns, self.files, self.samples, self.count, self.split = {}, [], [], 0, None
        for line in text.splitlines():
            word = line.split(" ")
            if line.startswith("  "):
                self.samples[-1]["arrays"].append(self.array(line))
            elif word[0] == "count":
                self.count = int(word[1])
            elif word[0] == "split":
                self.split = word[1]
            elif word[0] == "file":
                self.files.append(line[5:])
            elif word[0] == "column":
                names = line.split(" ", 7)[7].split(",") if len(word) > 7 else None
                self.columns[word[1]] = {"role": word[2], "kind": word[3], "type": word[4],
                                         "shape": word[5], "classes": int(word[6]),
                                         "names": names}
            elif word[0] == "sample":
                sample = {"name": word[2], "class": None, "group": None, "arrays": []}
                for key in "class", "group":
                    if key in word[3:]:
                        sample[key] = word[word.index(key, 3) + 1]
                self.samples.append(sample)

    @staticmethod
    def array(line):
        head, _, values = line.partition(" :")
        kind, shape = head.split()[:2]
        dims = () if shape == "scalar" else tuple(map(int, shape.split("x")))
        whole = kind[0] in "iu"
        numbers = [int(v) if whole else float(v) for v in values.split()]
        return np.array(numbers).astype(TYPES[kind]).reshape(dims)


def read(*words):
    """A Source, or the error message."""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip() or f"exit {done.returncode}"
    return Source(done.stdout)


def differ(source, *wanted):
    """How the samples differ from these: a list of arrays for each column."""
    if isinstance(source, str):
        return source
    if len(source.samples) != len(wanted[0]):
        return f"{len(source.samples)} samples, not {len(wanted[0])}"
    if len(source.columns) != len(wanted):
        return f"columns {list(source.columns)}, not {len(wanted)}"
    for i, sample in enumerate(source.samples):
        for k, (got, want) in enumerate(zip(sample["arrays"], (w[i] for w in wanted))):
            want = np.asarray(want)
            if got.dtype != want.dtype or got.shape != want.shape:
                return (f"sample {i}, column {k}: {got.dtype} {got.shape}, not {want.dtype} "
                        f"{want.shape}")
            if not np.array_equal(got, want):
                return f"sample {i}, column {k}: {np.sum(got != want)} numbers differ"
    return ""
