#!/usr/bin/env python3
# keras_layout.py - our weight files have the layout of Keras: the same groups, names, order and
# numbers as in the files that Keras wrote for the same network.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import glob
import os
import subprocess
import sys
import tempfile

try:
    import h5py
except ImportError:
    print("1..0 # SKIP no h5py")
    sys.exit(0)

from tap import finish, result, unless


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def texts(at, name):
    """A list of names, which may be split into several attributes."""
    if name in at.attrs:
        return [text(v) for v in at.attrs[name]]
    out, k = [], 0
    while "%s%d" % (name, k) in at.attrs:
        out += [text(v) for v in at.attrs["%s%d" % (name, k)]]
        k += 1
    return out


def arrays(file):
    found = {}
    file.visititems(
        lambda n, o: found.update({n: o}) if isinstance(o, h5py.Dataset) else None
    )
    return found


def same_array(a, b):
    # Keras 1 has one axis more in Conv1D.
    shapes = [[n for n in x.shape if n != 1] for x in (a, b)]
    return (
        shapes[0] == shapes[1]
        and a.dtype == b.dtype
        and (a[()].ravel() == b[()].ravel()).all()
    )


def compare_numbered(ours, theirs):
    """Keras 3: every array, every "vars", and their names if there are any."""
    mine, real = arrays(ours), arrays(theirs)
    if sorted(mine) != sorted(real):
        return "arrays differ: %s" % sorted(set(mine) ^ set(real))
    for path, data in real.items():
        if not same_array(mine[path], data):
            return "%s differs" % path
    wrong = []

    def look(path, group):
        if not path.endswith("vars") or not isinstance(group, h5py.Group):
            return
        if path not in ours:
            wrong.append("%s is missing" % path)
        elif "name" in group.attrs and path != "vars":
            name = text(group.attrs["name"])
            if text(ours[path].attrs["name"]) != name:
                wrong.append("%s is not called %s" % (path, name))

    theirs.visititems(look)
    return "; ".join(wrong)


def compare_named(ours, theirs):
    """Keras 2: layers that have weights in the same order, their arrays too."""
    if "model_weights" in theirs:
        theirs = theirs["model_weights"]
    layers = [
        [n for n in texts(f, "layer_names") if texts(f[n], "weight_names")]
        for f in (ours, theirs)
    ]
    if layers[0] != layers[1]:
        return "layers are %s, not %s" % tuple(layers)
    for layer in layers[0]:
        mine, real = [
            [f[layer][w] for w in texts(f[layer], "weight_names")]
            for f in (ours, theirs)
        ]
        if len(mine) != len(real):
            return "%s has %d arrays, not %d" % (layer, len(mine), len(real))
        for a, b in zip(mine, real):
            if not same_array(a, b):
                return "%s: %s is not %s" % (layer, a.name, b.name)
    return ""


def main():
    source = os.path.join(os.environ.get("srcdir", "."), "tests/data/keras")
    program = os.path.join(
        os.environ.get("top_builddir", "."), "tests/peer/keras_resave"
    )
    files = sorted(glob.glob(source + "/k[123]_*.h5"))
    files = [f for f in files if not f.endswith(".data.h5")]
    result("there are weight files", unless(len(files) > 0))
    with tempfile.TemporaryDirectory() as directory:
        for file in files:
            name = os.path.basename(file)
            numbered = name.endswith(".weights.h5")
            network = file[: -len(".weights.h5" if numbered else ".h5")] + ".json"
            out = os.path.join(directory, name)
            done = subprocess.run(
                [program, network, file, out], capture_output=True
            )
            if done.returncode != 0:
                result("%s is written again" % name, [done.stderr.decode().strip()])
                continue
            with h5py.File(out, "r") as ours, h5py.File(file, "r") as theirs:
                why = (compare_numbered if numbered else compare_named)(ours, theirs)
            result("%s is written as by Keras" % name, why)
    finish()


main()
