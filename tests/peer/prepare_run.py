# prepare_run.py - run dnn-prepare and compare its dataset, for prepare_*.py.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import shutil
import subprocess
import tempfile

import numpy as np

from dataset_file import Dataset
from tap import finish, result

PROGRAM = os.path.abspath(os.path.join(os.environ.get("top_builddir", "."), "dnn-prepare"))


def run(*words):
    """The error message of dnn-prepare; empty if it succeeds."""
    done = subprocess.run([PROGRAM, "-q", *map(str, words)], capture_output=True, text=True)
    return done.stderr.strip() or ("" if done.returncode == 0 else f"status {done.returncode}")


def array_differs(got, want):
    """How got differs from want; empty if it does not."""
    want = np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype} {got.shape}, not {want.dtype} {want.shape}"
    same = (got == want) | ((got != got) & (want != want))
    return "" if same.all() else f"{np.sum(~same)} of {same.size} numbers differ"


def list_differs(got, want):
    got, want = list(got), list(want)
    if got == want:
        return ""
    at = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), min(len(got), len(want)))
    return f"{len(got)}, wanted {len(want)}; at {at}: {got[at:at + 3]}, wanted {want[at:at + 3]}"


def split_differs(data, split, want):
    """want: arrays by column, and lists by "names", "groups" and "COLUMN classes"."""
    columns = data.texts_of(f"{split}/columns")
    wanted = [k for k, v in want.items() if isinstance(v, np.ndarray)]
    if columns != wanted:
        return f"columns {columns}, not {wanted}"
    for column in columns:
        why = array_differs(data.column(split, column), want[column])
        why = why or list_differs(data.texts_of(f"{split}/{column}/class_names") or [],
                                  want.get(column + " classes", []))
        if not why and np.asarray(want[column]).dtype == "u1" and \
                data.text(f"{split}/{column}/kind") == "image":
            scale = data.values_or(f"{split}/{column}/scale", None)
            why = "" if np.array_equal(scale, [1 / 255]) else f"scale {scale}"
        if why:
            return f"{column}: {why}"
    why = list_differs(data.names(split), want["names"]) if "names" in want else ""
    if not why and "groups" in want:
        why = list_differs(data.groups(split), want["groups"])
    return why and f"names or groups: {why}"


def made_differs(path, splits):
    """How the dataset differs from splits (see split_differs()); empty if it does not."""
    data = Dataset(path)
    try:
        why = list_differs(data.splits, splits)
        for split, want in splits.items():
            why = why or split_differs(data, split, want)
            why = why and f"{split}: {why}"
        return why
    finally:
        data.close()


def prepared(what, words, splits, to="made.bp"):
    """Prepare, compare every number, verify; true if all is correct."""
    shutil.rmtree(to, ignore_errors=True)
    why = run(*words, "--to", to) or made_differs(to, splits) or run("--verify", to)
    result(what, why)
    return not why


def configured(config):
    """Prepare with a configuration; returns the dataset, or the error message."""
    shutil.rmtree(config["to"], ignore_errors=True)
    with open("prepare.json", "w") as f:
        json.dump(config, f)
    return run("prepare.json") or Dataset(config["to"])


def tests(*parts):
    """Run each test in an empty directory; called at the end."""
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            part()
            os.chdir("/")
    finish()
