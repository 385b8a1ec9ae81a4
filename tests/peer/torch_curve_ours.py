# torch_curve_ours.py - the toolkit's part of torch_curve.py: datasets of dnn-prepare, runs of
# dnn-train, and their results.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import glob
import gzip
import json
import os
import struct
import subprocess

import h5py
import numpy as np
from adios2.bindings import adios2_bindings_mpi as adios2

from dataset_file import TYPES, Dataset

BUILT = os.path.abspath(os.environ.get("top_builddir", "."))
FASHION = "/usr/share/datasets/fashion-mnist"
IMAGES = 405  # the last batch of an epoch is smaller


def run(*words, status=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise RuntimeError(f"{' '.join(map(str, words))}: status {done.returncode}\n"
                           f"{done.stdout}{done.stderr}")
    return done.stdout


def tool(name):
    return os.path.join(BUILT, name)


# ---- data ----

def some_images():
    """Images and classes: the first of Fashion-MNIST, else generated ones with as many
    classes: stripes of different width and direction in noise."""
    if os.path.isdir(FASHION):
        with gzip.open(f"{FASHION}/train-images-idx3-ubyte.gz") as file:
            file.read(16)
            images = np.frombuffer(file.read(IMAGES * 784), np.uint8)
        with gzip.open(f"{FASHION}/train-labels-idx1-ubyte.gz") as file:
            file.read(8)
            return images.reshape(-1, 28, 28), np.frombuffer(file.read(IMAGES), np.uint8)
    random = np.random.default_rng(3)
    classes = random.integers(0, 10, IMAGES).astype(np.uint8)
    at = np.arange(28)
    turn = np.where(classes % 2 == 0, 0, 1)[:, None, None]
    stripes = np.where(turn == 0, at[:, None], at[None, :]) // (classes // 2 + 1)[:, None, None]
    images = 100 * (stripes % 2) + random.integers(0, 150, (IMAGES, 28, 28))
    return images.astype(np.uint8), classes


def prepare(config):
    with open("prepare.json", "w") as file:
        json.dump(config, file)
    run(tool("dnn-prepare"), "-q", "prepare.json")


def make_images():
    """Stored both as bytes with scale and offset, and as the scaled values,
    whose conversion does not round."""
    images, classes = some_images()
    with open("some-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">4I", 2051, *images.shape) + images.tobytes())
    with open("some-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">2I", 2049, len(classes)) + classes.tobytes())
    steps = [{"split": {"train": 1}}, {"resize": [14, 14]}, {"normalise": "channel"}]
    prepare({"from": "some-images-idx3-ubyte", "to": "images.bp", "steps": steps})
    prepare({"from": "some-images-idx3-ubyte", "to": "numbers.bp",
             "steps": [*steps, {"type": "f32"}]})


def make_volumes(size, to):
    prepare({"generate": {"type": "blobs3d", "samples": 26, "size": size, "classes": 2,
                          "noise": 0.05}, "to": to, "seed": 3,
             "steps": [{"split": {"train": 1}}]})


class Samples:
    """Inputs (channels first) and classes of a dataset, read by Python's ADIOS2."""

    def __init__(self, path):
        data = Dataset(path)
        columns = data.texts_of("train/columns")
        role = {data.text(f"train/{c}/role"): c for c in columns}
        # Inputs of a network are f32.
        self.inputs = np.moveaxis(data.meant("train", role["input"]).astype("f4"), -1, 1)
        self.classes = data.column("train", role["target"]).astype("i8")
        if self.classes.ndim > 1 and self.classes.shape[-1] == 1:
            self.classes = self.classes[..., 0]
        data.close()


def order(config, steps):
    """The numbers of the samples of each batch."""
    data = config["data"]
    output = run(os.path.join(BUILT, "tests/peer/feed_order"), data["dataset"], "train",
               data["batch_size"], config["seed"],
               json.dumps(data.get("shuffle", True)), steps)
    return [[int(n) for n in line.split()] for line in output.splitlines()]


# ---- runs ----

def write_config(config, name):
    with open(f"{name}.json", "w") as file:
        json.dump(config, file)


def network(layers, name):
    """A network of the zoo as Keras JSON, and in a file of that name."""
    write_config({"layers": layers}, "export")
    run(tool("dnn-train"), "-q", "--export", name, "export.json")
    with open(name) as file:
        return json.load(file)


def checkpoint(path):
    """Weights and states of a checkpoint: {(layer, name): array}."""
    adios = adios2.ADIOS()
    io = adios.DeclareIO("checkpoint")
    io.SetEngine("BP5")
    engine = io.Open(path, adios2.Mode.ReadRandomAccess)
    found = {}
    for key in io.AvailableVariables():
        var = io.InquireVariable(key)
        layer, name = key.rsplit("/", 1)
        if layer.split("/")[0] == "run" or var.Type() not in ("float", "double"):
            continue
        found[layer, name] = np.zeros(var.Shape(), TYPES[var.Type()])
        engine.Get(var, found[layer, name], adios2.Mode.Sync)
    engine.Close()
    return found


def first_weights(config, name):
    """The initial weights of a run: its weights after an epoch with learning rate 0."""
    config = dict(config, num_epochs=1, dir=name,
               optimizer={"type": "SGD", "learning_rate": 1e-300})
    write_config(config, name)
    run(tool("dnn-train"), "-q", f"{name}.json")
    return checkpoint(glob.glob(f"{name}/checkpoints/ckpt-*.bp")[0])


def write_keras(weights, path):
    """Write a weight file of Keras 2."""
    with h5py.File(path, "w") as file:
        layers = list(dict.fromkeys(layer for layer, _ in weights))
        file.attrs["layer_names"] = np.array(layers, "S")
        for layer in layers:
            names = [f"{layer}/{name}:0" for at, name in weights if at == layer]
            group = file.create_group(layer)
            group.attrs["weight_names"] = np.array(names, "S")
            for name in names:
                group[name] = weights[layer, name.split("/")[-1][:-2]]


def losses(config, name, ranks, steps):
    """The loss of each step of a run."""
    write_config(dict(config, dir=name, telemetry={"jsonl": True, "steps": 1,
                                             "report": False}), name)
    words = [tool("dnn-train"), "-q", f"{name}.json"]
    if ranks > 1:
        words = [*os.environ.get("MPIEXEC", "mpirun").split(), "-n", ranks, *words]
    run(*words)
    with open(f"{name}/metrics.jsonl") as file:
        records = [json.loads(line) for line in file]
    return np.array([r["loss"] for r in records if r["event"] == "step"])[:steps]
