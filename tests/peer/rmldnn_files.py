# rmldnn_files.py - small files in the formats of rmldnn, and checks of the outputs.
#
# make                 files and networks into the current directory
# look FILE.h5         a line for each dataset: its name, type and shape
# same A.h5 B.h5       whether they have the same names and numbers
# is FILE.h5 DIR       whether its datasets are the arrays of DIR, twice
# volume FILE.h5 NAME VOLUME.npy [EXTENTS]
#                      whether a dataset is a volume, or its first EXTENTS
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import sys

import h5py
import numpy as np
from PIL import Image

rng = np.random.default_rng(7)


def picture(path, shape, levels=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    a = rng.integers(0, 256, shape) if levels is None else rng.choice(levels, shape)
    Image.fromarray(a.astype(np.uint8)).save(path)


def array(path, a):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    np.save(path, a)


def layer(kind, name, **config):
    return {"class_name": kind, "config": dict(config, name=name)}


def network(path, *layers):
    with open(path, "w", encoding="ascii") as f:
        json.dump({"class_name": "Sequential", "keras_version": "2.8.0",
                   "config": {"name": "net", "layers": layers}}, f)


def conv(axes, name, filters, size=3, **more):
    return layer("Conv%dD" % axes, name, filters=filters, kernel_size=[size] * axes,
                 padding="same", **more)


def make_files():
    for part, n in (("training", 6), ("testing", 2)):
        for k in ("cat", "dog"):
            for i in range(n):
                picture(f"pets/{part}/{k}/{i}.png", (9 + i, 10, 3))
        for i in range(n):
            picture(f"seg/{part}/in/p{i}.png", (12, 10 + i, 3))
            picture(f"seg/{part}/bw/p{i}.png", (12, 10 + i), [0, 255])
            picture(f"seg/{part}/levels/p{i}.png", (12, 10 + i), [0, 1, 2])
            array(f"arrays/{part}/in/a{i}.npy", rng.random((1, 6, 8), dtype=np.float32))
            array(f"arrays/{part}/to/a{i}.npy", rng.integers(0, 3, (6, 8)).astype(np.uint8))
    for i in range(20):
        array(f"many/a{i:02d}.npy", np.full((1, 4, 4), i, np.float32))
    for k in ("cat", "dog", "owl"):
        picture(f"bad/three/{k}/0.png", (9, 10, 3))
    os.makedirs("bad/levels"), os.makedirs("bad/few"), os.makedirs("bad/empty")
    for i in range(6):
        picture(f"bad/levels/p{i}.png", (12, 10 + i), [0, 1, 2] if i != 4 else [0, 1, 7])
        if i != 2:
            picture(f"bad/few/p{i}.png", (12, 10 + i), [0, 1, 2])
        array(f"bad/shape/a{i}.npy", rng.integers(0, 3, (6, 8 - (i == 3))).astype(np.uint8))
    for part, n in (("train", 9), ("test", 7)):
        volume, classes = rng.random((n, 10, 13), dtype=np.float32), rng.integers(0, 3, (n, 10, 13))
        array(f"volume_{part}.npy", volume)
        array(f"classes_{part}.npy", classes.astype(np.uint8))
        with h5py.File(f"volume_{part}.h5", "w") as f:
            f["input"] = volume[None]
        with h5py.File(f"classes_{part}.h5", "w") as f:
            f["target"] = classes.astype(np.int32)[None]


def make_networks():
    os.makedirs("net")
    ones = {"kernel_initializer": {"class_name": "Ones", "config": {}}}
    network("net/classes.json", conv(2, "c", 4, batch_input_shape=[None, 12, 12, 1], strides=[2, 2]),
            layer("Flatten", "f"), layer("Dense", "d", units=2, activation="log_softmax"))
    network("net/bw.json", conv(2, "a", 4, batch_input_shape=[None, 12, 12, 3], activation="relu"),
            conv(2, "b", 1, activation="sigmoid"))
    network("net/levels.json", conv(2, "a", 4, batch_input_shape=[None, 12, 12, 3], activation="relu"),
            conv(2, "b", 3, activation="softmax"))
    network("net/arrays.json", conv(2, "a", 3, batch_input_shape=[None, 6, 8, 1],
                                activation="log_softmax"))
    network("net/many.json", conv(2, "a", 1, batch_input_shape=[None, 4, 4, 1]))
    network("net/same2d.json", conv(2, "a", 2, 1, batch_input_shape=[None, 6, 8, 1], **ones))
    network("net/boxes.json", conv(3, "a", 3, batch_input_shape=[None, 4, 5, 6, 1],
                               activation="log_softmax"))
    network("net/same_boxes.json", conv(3, "a", 2, 1, batch_input_shape=[None, 4, 6, 7, 1], **ones))
    network("net/same_planes.json", conv(2, "a", 1, 1, batch_input_shape=[None, 12, 14, 1], **ones))


def datasets(path):
    found = {}

    def see(name, what):
        if isinstance(what, h5py.Dataset):
            found[name] = what[...]

    with h5py.File(path) as f:
        f.visititems(see)
    return found


def main(words):
    if words[0] == "make":
        make_files()
        make_networks()
    elif words[0] == "look":
        for name, a in datasets(words[1]).items():
            print(name, a.dtype, "x".join(map(str, a.shape)))
    elif words[0] == "same":
        a, b = datasets(words[1]), datasets(words[2])
        if list(a) != list(b):
            print(list(a), list(b))
        for name in a:
            if a[name].dtype != b[name].dtype or not np.array_equal(a[name], b[name]):
                print(name, "differs")
    elif words[0] == "is":
        found = datasets(words[1])
        if sorted(found) != sorted(os.listdir(words[2])):
            print(sorted(found))
        for name, a in found.items():
            want = np.load(os.path.join(words[2], name))
            if a.shape != (2, 6, 8) or not np.array_equal(a, np.concatenate([want, want])):
                print(name, a.shape, a.reshape(-1)[:4], want.reshape(-1)[:4])
    elif words[0] == "volume":
        a, want = datasets(words[1])[words[2]], np.load(words[3])
        crop = [int(x) for x in words[4:]]
        want = want[tuple(slice(0, n) for n in crop)]
        if a.shape[:-1] != want.shape:
            print("shape", a.shape, "not", want.shape)
        elif abs(a - want[..., None]).max() > 1e-6:
            print("differs by", abs(a - want[..., None]).max())


if __name__ == "__main__":
    main(sys.argv[1:])
