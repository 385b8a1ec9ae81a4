# infer_keras.py - raw files in, outputs as of Keras: dnn-prepare normalises, dnn-train trains a
# network of the zoo, and dnn-infer applies its model.dnn to raw files.  Keras opens the same
# model.dnn, and gets values that NumPy has prepared.  Outputs agree to 1e-5 of the largest value.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import shutil
import tempfile

import keras
import nibabel
import numpy as np
from PIL import Image

from infer_tools import differs, infer, run, write
from tap import finish, result, unless

rng = np.random.default_rng(11)


def save(path, x):
    """A PNG, an array or a volume, whose axes are z, y, x in memory."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if path.endswith(".npy"):
        np.save(path, x)
    elif ".nii" in path:
        nibabel.save(nibabel.Nifti1Image(x.transpose(2, 1, 0), np.diag([2.0, 1, 1, 1])), path)
    else:
        Image.fromarray(x).save(path)


def blobs(shape, dtype):
    """Numbers with another mean and spread in each channel."""
    low, high = np.sort(rng.integers(0, 256 if dtype == np.uint8 else 2000, (2, shape[-1])), 0)
    return (low + rng.random(shape) * (high - low)).astype(dtype)


def network(name, steps, layers, loss, sources):
    """Prepare and train; the directory of the run."""
    write(f"{name}.prepare.json", {"to": f"{name}.bp", "steps": steps, "sources": [
        {"split": split, **source} for split, source in sources.items()]})
    run("dnn-prepare", "-q", f"{name}.prepare.json")
    write(f"{name}.json", {
        "layers": layers, "data": {"dataset": f"{name}.bp", "batch_size": 2, "test_batch_size": 2},
        "num_epochs": 2, "loss": loss, "optimizer": {"type": "Adam", "learning_rate": 0.01}})
    run("dnn-train", "-q", "--kernels", "heuristic", f"{name}.json")
    return f"run-{name}"


def opened(where, extents=None):
    """The model.dnn as a function of a batch in Keras; for other extents if they are given."""
    shutil.copy(f"{where}/model.dnn", f"{where}/renamed.keras")
    model = keras.models.load_model(f"{where}/renamed.keras")
    if extents is not None:
        network = json.loads(model.to_json())
        network["config"]["layers"][0]["config"]["batch_shape"] = [None] + extents
        wide = keras.models.model_from_json(json.dumps(network))
        wide.set_weights(model.get_weights())
        model = wide
    return lambda x: keras.ops.convert_to_numpy(
        model(x.astype(np.float32), training=False))


def compare(what, where, raw, prepared, model, ranks=1, how=()):
    """raw: the directory or files for dnn-infer; prepared: name -> the input for Keras."""
    out, wrong = f"{where}/out", []
    keys = [word for key in ("inference.activation=none", *how) for word in ("--set", key)]
    infer(f"{where}/model.dnn", *raw, "--output", out, "--format", "npy", *keys, ranks=ranks)
    for (name, _), want in zip(prepared.items(), model(np.stack(list(prepared.values())))):
        wrong += differs(name, np.load(f"{out}/{name}.npy"), want)
    count = sum(name.endswith(".npy") for _, _, names in os.walk(out) for name in names)
    result(what, wrong + unless(count == len(prepared) > 2, sorted(os.listdir(out))))
    shutil.rmtree(out)


def standard(train):
    """Scales a sample by mean and standard deviation of each channel of the train split."""
    every = np.concatenate([x.reshape(-1, x.shape[-1]) for x in train]).astype(np.float64)
    return lambda x: (x - every.mean(0)) / every.std(0)


def classes():
    train = []
    for split in "train", "validation":
        for k in "ab":
            for i in range(4):
                x = blobs((16, 16, 3), np.uint8)
                save(f"photos/{split}/{k}/{i}.png", x)
                train += [x / 255] if split == "train" else []
    where = network("photos", [{"normalise": "channel"}],
                    {"zoo": "resnet20", "base": 4, "classes": 2, "input": [16, 16, 3]},
                    "cross_entropy", {s: {"from": f"photos/{s}"} for s in ("train", "validation")})
    prepared, scale = {}, standard(train)
    for name in "new/one", "new/two", "three":
        x = blobs((16, 16, 3), np.uint8)
        save(f"raw/{name}.png", x)
        prepared[name] = scale(x / 255)
    compare("resnet20: directories of PNG, standardised", where, ["raw"], prepared,
            opened(where), 2)


def masks():
    train = []
    for split in "train", "validation":
        for i in range(4):
            x = blobs((20, 24, 2), np.float32)
            save(f"slides/{split}/{i}.npy", x)
            save(f"regions/{split}/{i}.npy", rng.integers(0, 3, (20, 24)).astype(np.uint8))
            train += [x] if split == "train" else []
    where = network(
        "slides", [{"normalise": "channel"}, {"crop": {"size": [16, 24]}}, {"type": "f16"}],
        {"zoo": "unet2d", "base": 4, "depth": 2, "classes": 3, "input": [16, 24, 2]},
        "cross_entropy",
        {s: {"from": {"input_path": f"slides/{s}", "target_path": f"regions/{s}", "whole": True,
                      "input_layout": "last", "target_layout": "none", "target_kind": "mask"}}
         for s in ("train", "validation")})
    prepared, scale = {}, standard(train)
    for name in "s1", "s2", "s3":
        x = blobs((20, 24, 2), np.float32)
        save(f"flat/{name}.npy", x)
        prepared[name] = scale(x)[2:18].astype(np.float16)
    compare("unet2d: arrays of several channels, standardised, cropped, stored as f16", where,
            [f"flat/{name}.npy" for name in prepared], prepared, opened(where))


def flipped(model, axes):
    """The mean of the outputs for all flips along these axes of the batch."""
    ways = [[a for a in axes if way >> axes.index(a) & 1] for way in range(1 << len(axes))]
    return lambda x: sum(np.flip(model(np.flip(x, way)), way) for way in ways) / len(ways)


def volumes():
    for split in "train", "validation":
        for i in range(3):
            save(f"scans/{split}/{i}.nii.gz", blobs((8, 12, 8, 1), np.int16)[..., 0])
            save(f"organs/{split}/{i}.nii.gz", rng.integers(0, 3, (8, 12, 8)).astype(np.int16))
    where = network(
        "scans", [{"normalise": "volume"}],
        {"zoo": "unet3d", "base": 4, "depth": 2, "norm": "instance", "classes": 3,
         "input": [8, 12, 8, 1]}, "dice",
        {s: {"from": {"input_path": f"scans/{s}", "target_path": f"organs/{s}",
                      "target_kind": "mask"}} for s in ("train", "validation")})
    for extents in [8, 12, 8], [12, 8, 16]:
        prepared, raw = {}, f"scans{extents[0]}"
        for name in "p1", "p2", "p3":
            x = blobs(extents + [1], np.int16)
            save(f"{raw}/{name}.nii.gz", x[..., 0])
            prepared[name] = standard([x])(x)
        model = opened(where, extents + [1])
        if extents[0] == 8:
            compare("unet3d: NIfTI, each volume standardised", where, [raw], prepared, model, 2)
        else:
            compare("unet3d: whole volumes of other extents, with flips", where, [raw], prepared,
                    flipped(model, [1, 3]), 2, ["inference.tiles=whole", "inference.flips=[0, 2]"])


def main():
    for test in classes, masks, volumes:
        test()
    finish()


with tempfile.TemporaryDirectory() as directory:
    os.environ["XDG_CACHE_HOME"] = directory
    os.chdir(directory)
    main()
