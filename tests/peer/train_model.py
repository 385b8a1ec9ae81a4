# train_model.py - the files of a trained network against the checkpoints of its run.
#
# Uses only docs/checkpoint.md and Keras 3's numbering of layers, no code of the toolkit.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import glob
import json
import os
import re
import subprocess
import tempfile
import zipfile

import h5py
import numpy as np
from adios2.bindings import adios2_bindings_mpi as adios2

from dataset_file import Dataset, TYPES
from tap import bail_out, finish, result, unless

EMA = 0.7


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        bail_out("%s: %s" % (" ".join(words), done.stderr))
    return done.stderr


def checkpoint(path):
    """Every array of a checkpoint by its name."""
    found = {}
    adios = adios2.ADIOS()
    io = adios.DeclareIO("checkpoint")
    io.SetEngine("BP5")
    engine = io.Open(path, adios2.Mode.ReadRandomAccess)
    for name in io.AvailableVariables():
        var = io.InquireVariable(name)
        found[name] = np.zeros(var.Shape(), TYPES[var.Type()])
        engine.Get(var, found[name], adios2.Mode.Sync)
    engine.Close()
    return found


def numbered(network):
    """The HDF5 path of each layer's arrays in a Keras 3 file."""
    seen, place = {}, {}
    for layer in network["config"]["layers"]:
        snake = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", layer["class_name"])
        snake = re.sub(r"([a-z])([A-Z])", r"\1_\2", snake).lower()
        n = seen.get(snake, 0)
        seen[snake] = n + 1
        place[layer["config"]["name"]] = "layers/%s%s/vars" % (
            snake,
            "_%d" % n if n else "",
        )
    return place


ORDER = ["kernel", "gamma", "bias", "beta", "moving_mean", "moving_variance"]


def compare(directory, arrays, suffix):
    """Compare the weight file with arrays of a checkpoint; returns errors."""
    with open(directory + "/model.json") as file:
        place = numbered(json.load(file))
    names = [n for n in arrays if "/" in n and "." not in n and not n.startswith("run/")]
    if len(names) < 20:
        return "only %d arrays" % len(names)
    with h5py.File(directory + "/model.weights.h5", "r") as file:
        for layer in {n.rsplit("/", 1)[0] for n in names}:
            own = [n for n in names if n.rsplit("/", 1)[0] == layer]
            own.sort(key=lambda n: ORDER.index(n.rsplit("/", 1)[1]))
            for k, name in enumerate(own):
                want = arrays.get(name + suffix, arrays[name])
                got = file["%s/%d" % (place[layer], k)][()]
                if got.shape != want.shape or got.tobytes() != want.tobytes():
                    return "%s is not the checkpoint's" % name
    return ""


def mean(steps, start):
    """The largest relative error of the EMA over the checkpoints of a run."""
    worst = 0
    names = [n for n in start if n + ".ema" in steps[0][1]]
    now = {n: start[n].astype(np.float64) for n in names}
    for step, arrays in steps:
        d = min(EMA, (1 + step) / (10 + step))
        for n in names:
            now[n] = d * now[n] + (1 - d) * arrays[n]
            off = np.abs(now[n] - arrays[n + ".ema"]).max()
            worst = max(worst, off / (np.abs(now[n]).max() + 1e-3))
    return len(names), worst


def scaling(archive, dataset):
    """What is wrong with the input scaling that a .keras file names: inputs scaled by it must
    have mean 0 and standard deviation 1, because the dataset was normalised."""
    with zipfile.ZipFile(archive) as file:
        about = json.loads(file.read("metadata.json"))["dnn_toolkit"]
    (only,) = about["inputs"].values()
    file = Dataset(dataset)
    stored = file.column("train", only["column"])
    file.close()
    values = stored * np.array(only["scale"]) + np.array(only["offset"])
    good = (
        about["preparation"][-1] == {"normalise": "channel"}
        and only["stored"] == "u8" and stored.dtype == np.uint8
        and abs(values.mean()) < 1e-6 and abs(values.std() - 1) < 1e-6
    )
    return unless(good, (about, stored.dtype, values.mean(), values.std()))


JOB = {
    "layers": {
        "zoo": "unet3d",
        "base": 2,
        "depth": 1,
        "classes": 3,
        "input": [8, 8, 8, 1],
    },
    "data": {"dataset": "blobs.bp", "batch_size": 3, "test_batch_size": 8},
    "num_epochs": 3,
    "loss": "cross_entropy",
    "optimizer": {"type": "Adam", "learning_rate": 0.02},
    "checkpoints": {"steps": 1, "keep": 100},
}
DATA = {
    "generate": {
        "type": "blobs3d",
        "samples": 20,
        "size": 8,
        "classes": 2,
        "noise": 0.05,
    },
    "to": "blobs.bp",
    "steps": [
        {"split": {"train": 0.6, "validation": 0.4}},
        {"type": "u8"},
        {"normalise": "channel"},
    ],
}


def write(path, what):
    with open(path, "w") as file:
        json.dump(what, file)


def main():
    write("prepare.json", DATA)
    run("dnn-prepare", "-q", "prepare.json")
    write("train.json", JOB)
    ours = ["dnn-train", "--kernels", "heuristic"]
    run(*ours, "--set", "dir=plain", "train.json")
    files = sorted(glob.glob("plain/checkpoints/ckpt-*.bp"))
    result("model.weights.h5 has the weights of the last checkpoint",
           compare("plain", checkpoint(files[-1]), ""))

    result("model.keras names the scaling of the inputs",
           scaling("plain/model.keras", "blobs.bp"))

    run(*ours, "--set", "dir=mean", "--set", "ema=%g" % EMA, "train.json")
    files = sorted(glob.glob("mean/checkpoints/ckpt-*.bp"))
    steps = [(i + 1, checkpoint(f)) for i, f in enumerate(files)]
    # The same run with learning rate 0 has the initial weights.
    still = 'optimizer={"type": "SGD", "learning_rate": 1e-30}'
    run(*ours, "--set", "dir=start", "--set", still, "train.json")
    start = checkpoint("start/checkpoints/ckpt-000000001.bp")
    n, worst = mean(steps, start)
    result("EMA of 22 weights in 12 steps",
           unless(len(steps) == 12 and n == 22, (len(steps), n)))
    result("the EMA is that computed by NumPy", unless(worst < 1e-5, worst))
    result("model.weights.h5 has the EMA", compare("mean", steps[-1][1], ".ema"))


with tempfile.TemporaryDirectory() as directory:
    os.environ["XDG_CACHE_HOME"] = directory
    os.environ["PATH"] = (
        os.path.abspath(os.environ["top_builddir"]) + ":" + os.environ["PATH"]
    )
    os.chdir(directory)
    main()
finish()
