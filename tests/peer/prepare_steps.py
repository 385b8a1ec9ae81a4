# prepare_steps.py - the steps of dnn-prepare from files to the dataset, against NumPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import os
import shutil

import numpy as np
from PIL import Image

from dataset_file import Dataset
from prepare_run import array_differs, configured, list_differs, prepared, run, tests
from tap import result, unless

rng = np.random.default_rng(5)
PARTS = ["train", "validation", "test"]


def made(what, *words):
    """The dataset of these options, verified; None if it could not be made."""
    shutil.rmtree("made.bp", ignore_errors=True)
    why = run(*words, "--to", "made.bp") or run("--verify", "made.bp")
    result(what, why)
    return None if why else Dataset("made.bp")


def places(data, split):
    """The row numbers of the samples."""
    return [int(n[n.index("[") + 1:-1]) for n in data.names(split)]


def near(got, want, limit):
    """The largest error if it is above limit; empty if it is not."""
    if got.shape != want.shape:
        return f"{got.shape}, not {want.shape}"
    off = np.abs(got - want).max()
    return "" if off <= limit else f"off by {off:g}"


# ---- splits ----

def stratified():
    classes = np.repeat([0, 1, 2], [100, 60, 40])
    rng.shuffle(classes)
    x = rng.integers(0, 256, (200, 3, 2, 1)).astype("u1")
    np.savez("a.npz", x=x, y=classes)
    data = made("a stratified split", "--from", "a.npz", "--target-kind", "label", "--split",
                "0.7,0.2,0.1", "--stratify", "--seed", 4)
    if data is None:
        return
    result("its splits", list_differs(data.splits, PARTS))
    counts = [np.bincount(data.column(s, "target"), minlength=3).tolist() for s in data.splits]
    result("each class has its exact fraction",
           list_differs(counts, [[70, 42, 28], [20, 12, 8], [10, 6, 4]]))
    at = {s: places(data, s) for s in data.splits}
    result("every sample once", list_differs(sorted(sum(at.values(), [])), range(200)))
    why = ""
    for split, rows in at.items():
        why = why or array_differs(data.column(split, "input"), x[rows])
        why = why or array_differs(data.column(split, "target"), classes[rows])
        why = why or list_differs(data.array(f"{split}/target.class_count"),
                                  np.bincount(classes[rows]))
    result("values, labels and counts of classes belong together", why)
    first = at
    data.close()
    data = made("another seed", "--from", "a.npz", "--target-kind", "label", "--split",
                "0.7,0.2,0.1", "--stratify", "--seed", 5)
    if data is not None:
        result("gives another split", unless(places(data, "train") != first["train"], "the same"))
        data.close()


def grouped():
    sizes, order = [5, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1], []
    os.makedirs("in")
    for group, n in enumerate(sizes):
        for i in range(n):
            order.append(f"p{group}_{i}.png")
            Image.fromarray(np.full((3, 4), 10 * group + i, "u1")).save("in/" + order[-1])
    data = made("a split by groups", "--from", "in", "--group", "_", "--split", "0.5,0.25,0.25")
    if data is None:
        return
    of = {s: data.groups(s) for s in data.splits}
    result("every file once",
           list_differs(sorted(sum((data.names(s) for s in of), [])), sorted(order)))
    result("no group is in two splits",
           list_differs(sorted(g for s in of for g in set(of[s])),
                        sorted(f"p{i}" for i in range(len(sizes)))))
    result("the sizes of the splits", list_differs([data.count(s) for s in PARTS], [12, 6, 6]))
    result("the group of each sample",
           list_differs([g for s in of for g in of[s]],
                        [n.split("_")[0] for s in of for n in data.names(s)]))
    data.close()


def folds():
    np.save("a.npy", rng.normal(size=(20, 4)).astype("f4"))
    data = made("folds", "--from", "a.npy", "--split", "0.75,0,0.25", "--folds", 4)
    if data is None:
        return
    found = np.bincount(data.array("train/fold", np.int32))
    result("of about the same size",
           list_differs(sorted(found), [3, 4, 4, 4]) or
           list_differs(data.values("train/folds"), [4]))
    data.close()


# ---- values ----

def normalised():
    x = rng.integers(0, 256, (40, 6, 5, 3)).astype("u1") // np.array([1, 2, 5]).astype("u1")
    np.save("x.npy", x)
    data = made("normalised by channel", "--from", "x.npy", "--split", "0.5,0,0.5", "--normalise",
                "channel")
    if data is None:
        return
    rows = {s: places(data, s) for s in data.splits}
    train = x[rows["train"]] / 255.0
    mean, std = train.mean(axis=(0, 1, 2)), train.std(axis=(0, 1, 2))
    why = ""
    for split in data.splits:
        why = why or array_differs(data.column(split, "input"), x[rows[split]])
        why = why or near(data.meant(split, "input"), (x[rows[split]] / 255.0 - mean) / std, 1e-6)
    result("by mean and deviation of the train split; bytes stay bytes", why)
    result("statistics are normalised",
           near(data.values("train/input/stats/mean"), np.zeros(3), 1e-6) or
           near(data.values("train/input/stats/std"), np.ones(3), 1e-6))
    data.close()
    for name in "f16", "i16":
        data = made(f"stored as {name}", "--from", "x.npy", "--split", "0.5,0,0.5", "--normalise",
                    "channel", "--type", name)
        if data is None:
            continue
        why = ""
        for split in data.splits:
            at = places(data, split)
            want = (x[at] / 255.0 - mean) / std
            got, stored = data.meant(split, "input"), data.column(split, "input")
            step = np.abs(want) * 2.0**-11 + 1e-7 if name == "f16" else \
                data.values(f"{split}/input/scale") * 0.5 + 1e-7
            why = why or list_differs([stored.dtype], [np.dtype("f2" if name == "f16" else "i2")])
            why = why or ("" if (np.abs(got - want) <= step).all() else
                          f"off by {np.abs(got - want).max():g}")
        result(f"{name}: every value within half a step", why)
        data.close()
    values = rng.normal(5, 3, (30, 4)).astype("f4")
    np.save("v.npy", values)
    data = configured({"from": "v.npy", "to": "made.bp", "steps": [
        {"type": {"as": "i16", "range": [0, 10]}}]})
    if isinstance(data, str):
        result("i16 over a range", data)
        return
    step = 10 / 65535
    result("i16 over a range that is given: clipped, within half a step",
           near(data.values("all/input/scale"), np.array([step]), 1e-9) or
           near(data.meant("all", "input"), np.clip(values, 0, 10), step * 0.5 + 1e-6))
    data.close()


def one_hot():
    y = rng.integers(0, 5, 12)
    y[:5] = range(5)
    np.savez("a.npz", x=np.zeros((12, 3), "f4"), y=y)
    prepared("one-hot", ["--from", "a.npz", "--target-kind", "label", "--one-hot"],
             {"all": {"input": np.zeros((12, 3), "f4"), "target": np.eye(5, dtype="f4")[y]}})


# ---- space ----

def linear(image, size):
    """Linear interpolation along each axis; voxel centers are at half-integers."""
    for axis, n in enumerate(size):
        old = image.shape[axis]
        at = np.clip((np.arange(n) + 0.5) * old / n - 0.5, 0, old - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, old - 1)
        part = (at - low).reshape([-1 if a == axis else 1 for a in range(image.ndim)])
        image = image.take(low, axis) * (1 - part) + image.take(high, axis) * part
    return image


def nearest(image, size):
    for axis, n in enumerate(size):
        at = np.floor((np.arange(n) + 0.5) * image.shape[axis] / n).astype(int)
        image = image.take(at, axis)
    return image


def space():
    images, masks, names = {}, {}, ["a.png", "b.png", "c.png"]
    os.makedirs("in")
    os.makedirs("out")
    for k, name in enumerate(names):
        images[name] = rng.integers(0, 256, (9 + k, 14 - k, 3)).astype("u1")
        masks[name] = rng.integers(0, 3, (9 + k, 14 - k)).astype("u1")
        Image.fromarray(images[name]).save("in/" + name)
        Image.fromarray(masks[name]).save("out/" + name)
    pairs = ["--from", "in", "--target", "out", "--target-kind", "mask"]
    data = made("resized", *pairs, "--resize", "6x21")
    if data is not None:
        want = np.stack([linear(images[n].astype(float), (6, 21)) for n in names])
        result("images linearly",
               near(data.column("all", "input").astype(float), want, 0.5 + 1e-3))
        want = np.stack([nearest(masks[n], (6, 21)) for n in names])[..., None]
        result("masks by the nearest point", array_differs(data.column("all", "target"), want))
        data.close()

    def fitted(array, size):
        """Pad on both sides (an odd voxel at the end), then crop the center."""
        for axis, n in enumerate(size):
            more = max(0, n - array.shape[axis])
            array = np.pad(array, [(more // 2, more - more // 2) if a == axis else (0, 0)
                                   for a in range(array.ndim)])
            start = (array.shape[axis] - n) // 2
            array = array.take(range(start, start + n), axis)
        return array

    prepared("padded, then cropped", [*pairs, "--pad", "10x13", "--crop", "10x13"],
             {"all": {"input": np.stack([fitted(images[n], (10, 13)) for n in names]),
                      "target": np.stack([fitted(masks[n], (10, 13))[..., None] for n in names]),
                      "names": names}})


def boxes(volume, sizes, strides, whole):
    """All boxes and their indices, last axis fastest; zeros beyond the end."""
    full = volume.shape[:3]
    count = [(n - s) // t + 1 if whole else -((s - n) // t) + 1
             for n, s, t in zip(full, sizes, strides)]
    reach = [max(n, (c - 1) * t + s) for n, c, s, t in zip(full, count, sizes, strides)]
    volume = np.pad(volume, [*((0, r - n) for r, n in zip(reach, full)), (0, 0)])
    for place in np.ndindex(*count):
        yield place, volume[tuple(slice(p * t, p * t + s) for p, s, t in zip(place, sizes, strides))]


def sliced():
    volumes = [rng.normal(size=(9, 10, 7, 1)).astype("f4"), rng.normal(size=(7, 12, 9, 1)).astype("f4")]
    masks = [rng.integers(0, 3, v.shape).astype("u1") for v in volumes]
    os.makedirs("in")
    os.makedirs("out")
    for i in range(2):
        np.save(f"in/v{i}.npy", volumes[i])
        np.save(f"out/v{i}.npy", masks[i])
    sizes, strides = (4, 5, 3), (3, 4, 3)
    for whole in False, True:
        want = {"input": [], "target": [], "names": [], "groups": []}
        for i in range(2):
            for (place, a), (_, b) in zip(boxes(volumes[i], sizes, strides, whole),
                                          boxes(masks[i], sizes, strides, whole)):
                want["input"].append(a)
                want["target"].append(b)
                want["names"].append(f"v{i}.npy[{','.join(map(str, place))}]")
                want["groups"].append(f"v{i}.npy")
        want["input"], want["target"] = np.stack(want["input"]), np.stack(want["target"])
        data = configured({"from": {"input_path": "in", "target_path": "out", "whole": True,
                                    "target_kind": "mask"}, "to": "made.bp", "steps": [
            {"slice": {"sizes": sizes, "strides": strides, "discard_remainders": whole}}]})
        what = f"slices, remainders {'discarded' if whole else 'kept'}: {len(want['names'])}"
        if isinstance(data, str):
            result(what, data)
            continue
        result(what,
               list_differs(data.names("all"), want["names"]) or
               list_differs(data.groups("all"), want["groups"]) or
               array_differs(data.column("all", "input"), want["input"]) or
               array_differs(data.column("all", "target"), want["target"]))
        data.close()


if __name__ == "__main__":
    tests(stratified, grouped, folds, normalised, one_hot, space, sliced)
