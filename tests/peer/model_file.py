# model_file.py - model files as Keras 3 and Python's zipfile see them: a model.dnn, renamed to
# .keras, has the outputs of the toolkit in Keras.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import shutil
import subprocess
import tempfile
import zipfile

import keras_real as peer
import keras
import numpy as np

from tap import finish

NETWORKS = [
    ("simplecnn", ["input=[12,12,1]"]),
    ("resnet20", ["base=4", "input=[16,16,3]"]),
    ("unet3d", ["base=4", "depth=2", "norm=instance", "input=[8,8,12,1]"]),
]
SEAL = "dnn-toolkit model; bytes %020d; XXH3-128 "
TRAIN = {
    "layers": {"zoo": "unet3d", "base": 2, "depth": 1, "classes": 3, "input": [8, 8, 8, 1]},
    "data": {"dataset": "blobs.bp", "batch_size": 4, "test_batch_size": 4},
    "num_epochs": 2, "loss": "cross_entropy",
    "optimizer": {"type": "Adam", "learning_rate": 0.01},
}
PREPARE = {
    "generate": {"type": "blobs3d", "samples": 12, "size": 8, "classes": 2, "noise": 0.05},
    "to": "blobs.bp",
    "steps": [{"split": {"train": 0.5, "validation": 0.5}}, {"type": "u8"},
              {"normalise": "channel"}],
}


def renamed(where):
    """The model file as Keras wants its name."""
    shutil.copy(f"{where}/model.dnn", f"{where}/renamed.keras")
    return keras.models.load_model(f"{where}/renamed.keras")


def zoo(name, words, where):
    title = " ".join([name] + words)
    status, text, error = peer.run("net_run", "zoo", name, *words)
    if status == 0:
        with open(f"{where}/net.json", "w", encoding="utf-8") as file:
            file.write(text)
        status, _, error = peer.run("keras_run", f"{where}/net.json", where)
    if status != 0:
        peer.check(False, title, error)
        return
    want = peer.predict(renamed(where), where)
    apart = peer.distance(peer.ours(where, len(want)), want)
    peer.check(apart <= peer.LIMIT, f"{title}: outputs in Keras", f"apart by {apart:g}")


def write(path, what):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(what, file)


def command(where, *words):
    done = subprocess.run([os.path.abspath(f"{peer.TOP}/{words[0]}"), *words[1:]], cwd=where,
                          stderr=subprocess.PIPE, timeout=300, text=True)
    peer.check(done.returncode == 0, words[0], done.stderr)


def trained(where):
    """A file of dnn-train: what Python reads in it, and the weights in Keras."""
    write(f"{where}/prepare.json", PREPARE)
    write(f"{where}/train.json", TRAIN)
    command(where, "dnn-prepare", "-q", "prepare.json")
    command(where, "dnn-train", "--kernels", "heuristic", "train.json")
    path = f"{where}/run-train/model.dnn"
    with zipfile.ZipFile(path) as file:
        names, bad, comment = file.namelist(), file.testzip(), file.comment.decode()
        about = json.loads(file.read("dnn.json"))
        network = file.read("network.json")
    seal = SEAL % os.path.getsize(path)
    peer.check(names == ["dnn.json", "network.json", "metadata.json", "config.json",
                         "model.weights.h5"] and bad is None, "members", f"{names} {bad}")
    peer.check(comment.startswith(seal) and len(comment) == len(seal) + 32, "the comment",
               comment)
    with open(f"{where}/run-train/model.json", "rb") as file:
        peer.check(file.read() == network, "network.json is model.json", "")
    (one,), (mask,) = about["inputs"], about["targets"]
    peer.check(one["shape"] == [8, 8, 8, 1] and one["stored"] == "u8"
               and len(one["scale"]) == 1 and mask["classes"] == 3
               and about["preparation"]["steps"][-1] == {"normalise": "channel"}
               and about["inference"]["loss"] and about["training"]["epochs"] == 2
               and about["training"]["metrics"]["val_loss"] > 0
               and len(about["training"]["data"]["hash"]) == 32, "dnn.json", str(about))
    model = renamed(f"{where}/run-train")
    want = keras.models.load_model(f"{where}/run-train/model.keras").get_weights()
    got = model.get_weights()
    peer.check(len(got) == len(want) > 10
               and all(np.array_equal(a, b) for a, b in zip(got, want)),
               "weights of dnn-train in Keras", "other weights")


def main():
    for name, words in NETWORKS:
        peer.each("zoo:", zoo, name, words)
    with tempfile.TemporaryDirectory() as where:
        os.environ["XDG_CACHE_HOME"] = where
        trained(where)
    finish()


if __name__ == "__main__":
    main()
