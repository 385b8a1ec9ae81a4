#!/usr/bin/env python3
# train_run.py - pictures, captions and events of a run, computed again from data and weights.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""Two small networks are trained: images of two classes, and volumes with masks.  NumPy computes
their predictions from the checkpoint and compares them with captions, pixels of the pictures,
and TensorBoard's scalars, histograms and images."""
import csv
import glob
import io
import json
import os
import re
import subprocess
import tempfile

import numpy as np
import PIL.Image

from dataset_file import Dataset, adios2
from event_reader import make_event, run_of
from tap import bail_out, finish, result, unless

PALETTE = np.array([[0, 0, 0], [0xE6, 0x32, 0x3C], [0x3C, 0xB4, 0x4B]])
GAP, TOP = 10, 30  # around panels, and above them


def run(*words):
    env = dict(os.environ, OMP_NUM_THREADS="1", XDG_CACHE_HOME=os.path.abspath("cache"))
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        bail_out("%s: %s" % (words[0], done.stderr))
    return done


def write(name, value):
    with open(name, "w") as f:
        json.dump(value, f)


def weights(directory):
    """The arrays of the newest checkpoint."""
    path = sorted(glob.glob(directory + "/checkpoints/ckpt-*.bp"))[-1]
    adios = adios2.ADIOS()
    reader = adios.DeclareIO("checkpoint")
    reader.SetEngine("BP5")
    engine = reader.Open(path, adios2.Mode.ReadRandomAccess)
    found = {}
    for name in ("out/kernel", "out/bias"):
        var = reader.InquireVariable(name)
        found[name] = np.zeros(var.Shape(), np.float32)
        engine.Get(var, found[name], adios2.Mode.Sync)
    engine.Close()
    return found


def panel(picture, number, height, width):
    """The pixels of a panel, one for each pixel of the image."""
    zoom = -(-192 // max(height, width))
    left = GAP + number * (width * zoom + GAP)
    return np.asarray(picture)[TOP + zoom // 2:TOP + height * zoom:zoom,
                               left + zoom // 2:left + width * zoom:zoom]


def captions(directory):
    text = open(directory + "/report.html", encoding="utf-8").read()
    return re.findall(r"<figcaption>(sample [^<]*)</figcaption>", text)


def rows(path):
    return list(csv.DictReader(open(path, newline="")))


# ---- images of two classes ----

def make_pictures():
    random = np.random.default_rng(1)
    for name in ("bars", "spots"):
        os.makedirs("raw/" + name)
        for i in range(16):
            image = random.integers(0, 60, (12, 12))
            if name == "bars":
                image[:, random.integers(1, 11)] += 150
            else:
                image[random.integers(1, 11), random.integers(1, 11)] += 190
            PIL.Image.fromarray(image.astype(np.uint8)).save("raw/%s/%d.png" % (name, i))
    write("prepare.json", {"from": "raw", "to": "raw.bp", "seed": 1,
                           "steps": [{"split": {"train": 0.5, "validation": 0.5}}]})
    run("dnn-prepare", "-q", "prepare.json")
    write("pictures.json", {
        "layers": [
            {"class_name": "InputLayer",
             "config": {"name": "in", "batch_input_shape": [None, 12, 12, 1]}},
            {"class_name": "Flatten", "config": {"name": "flat"}},
            {"class_name": "Dense",
             "config": {"name": "out", "units": 2, "activation": "softmax"}}],
        "data": {"dataset": "raw.bp", "validation": "validation", "batch_size": 5,
                 "test_batch_size": 8},
        "num_epochs": 4, "loss": "cross_entropy",
        "optimizer": {"type": "Adam", "learning_rate": 0.02},
        "telemetry": {"tensorboard": True, "steps": 1, "pictures": 5}})


def expect(data):
    """Image, label and probabilities of the validation samples."""
    image = data.meant("validation", "input").astype(np.float32)
    label = data.column("validation", "target").reshape(len(image))
    w = weights("run-pictures")
    score = image.reshape(len(image), -1) @ w["out/kernel"] + w["out/bias"]
    p = np.exp(score - score.max(1, keepdims=True))
    return image, label, p / p.sum(1, keepdims=True), w


def test_classes():
    make_pictures()
    run("dnn-train", "-q", "--kernels=heuristic", "--set", "num_epochs=2", "pictures.json")
    run("dnn-train", "-q", "--kernels=heuristic", "pictures.json")
    image, label, p, w = expect(Dataset("raw.bp"))
    name, bad = ("bars", "spots"), []
    output = captions("run-pictures")
    for i, line in enumerate(output):
        got = re.fullmatch(r"sample (\d+): target (\w+), predicted (\w+) \(([\d.]+)\)", line)
        if got is None:
            bad.append(line)
            continue
        n = int(got[1])
        bad += unless(n == i and got[2] == name[label[n]] and got[3] == name[p[n].argmax()]
                      and abs(float(got[4]) - p[n].max()) < 0.0051,
                      "%s, but %s %s" % (line, name[label[n]], p[n]))
    result("captions have the probabilities computed by NumPy", bad + unless(len(output) == 5, str(output)))
    bad = []
    for i in range(5):
        path = "run-pictures/pictures/prediction-%02d.png" % (i + 1)
        grey = panel(PIL.Image.open(path).convert("L"), 0, 12, 12).astype(float)
        bad += unless(np.corrcoef(grey.ravel(), image[i].ravel())[0, 1] > 0.99,
                      path + " shows another sample")
    result("pictures show the samples", bad)
    test_events(w)
    record = json.load(open("run-pictures/run.json"))
    result("layers of the configuration are in run.json", unless(
        record["network"]["layers"] == json.load(open("pictures.json"))["layers"],
        str(record["network"])))


def test_events(w):
    Event = make_event()
    tags, starts = run_of("run-pictures", "train", Event)
    val, _ = run_of("run-pictures", "val", Event)
    epochs, steps = rows("run-pictures/metrics.csv"), rows("run-pictures/steps.csv")
    bad = unless(starts == [0, 9], "starts at %s" % starts)
    bad += unless([int(r["step"]) for r in steps] == list(range(1, 17)), "other steps")
    for tag, found, table in (
            [("epoch/" + k, tags, epochs) for k in ("loss", "samples_per_second", "data",
                                                    "compute", "comm", "grad_norm")]
            + [("step/loss", tags, steps), ("epoch/accuracy", val, epochs)]):
        key = ("val_" if found is val else "") + tag.split("/")[1]
        got = [(s, v.simple_value) for s, v in found.get(tag, [])]
        want = [(int(r["step"]), float(r[key])) for r in table]
        bad += unless(np.allclose(got, want, 1e-6, 1e-12) if len(got) == len(want) else
                      False, "%s: %s instead of %s" % (tag, got, want))
    result("TensorBoard: scalars before and after resuming equal the tables", bad)
    bad = []
    for name, value in w.items():
        step, h = tags[name][-1][0], tags[name][-1][1].histo
        bad += unless(step == 16 and h.num == value.size and np.allclose(
            [h.min, h.max, h.sum, h.sum_squares],
            [value.min(), value.max(), value.sum(), (value.astype(float) ** 2).sum()],
            1e-4), "%s at step %d differs" % (name, step))
        bad += unless([s for s, _ in tags[name]] == [4, 8, 12, 16], "other epochs")
    result("TensorBoard: histograms of the weights", bad)
    bad = []
    for i in range(1, 6):
        shown = tags.get("prediction/%d" % i, [])
        bad += unless([s for s, _ in shown] == [4, 8, 12, 16], "prediction/%d: not all" % i)
        if not shown:
            continue
        a = np.asarray(PIL.Image.open(io.BytesIO(shown[-1][1].image.encoded)))
        b = np.asarray(PIL.Image.open("run-pictures/pictures/prediction-%02d.png" % i))
        bad += unless(np.array_equal(a, b), "prediction/%d is not the file" % i)
    result("TensorBoard: images are the pictures", bad)


# ---- volumes with masks ----

def test_masks():
    write("prepare.json", {
        "generate": {"type": "blobs3d", "samples": 8, "size": 12, "classes": 2,
                     "noise": 0.05},
        "to": "masks.bp", "seed": 3, "steps": [{"split": {"train": 0.5, "validation": 0.5}}]})
    run("dnn-prepare", "-q", "prepare.json")
    write("masks.json", {
        "layers": [
            {"class_name": "InputLayer",
             "config": {"name": "in", "batch_input_shape": [None, 12, 12, 12, 1]}},
            {"class_name": "Conv3D",
             "config": {"name": "out", "filters": 3, "kernel_size": [1, 1, 1],
                        "activation": "softmax"}}],
        "data": {"dataset": "masks.bp", "validation": "validation", "batch_size": 2},
        "num_epochs": 3, "loss": "cross_entropy",
        "optimizer": {"type": "Adam", "learning_rate": 0.3}, "telemetry": {"pictures": 3}})
    run("dnn-train", "-q", "--kernels=heuristic", "masks.json")
    data, w = Dataset("masks.bp"), weights("run-masks")
    image = data.meant("validation", "input")[..., 0]
    mask = data.column("validation", "target")[..., 0]
    score = image[..., None] * w["out/kernel"].reshape(3) + w["out/bias"]
    got, output, bad = score.argmax(-1), captions("run-masks"), []
    for i in range(3):
        picture = PIL.Image.open("run-masks/pictures/prediction-%02d.png" % (i + 1))
        bad += unless(np.array_equal(panel(picture, 1, 12, 12), PALETTE[mask[i, 6]]),
                      "target %d" % i)
        off = (panel(picture, 2, 12, 12) != PALETTE[got[i, 6]]).any(-1).sum()
        bad += unless(off <= 1, "prediction %d: %d points differ" % (i, off))
        right = 100 * (mask[i, 6] == got[i, 6]).mean()
        bad += unless(output[i].startswith("sample %d: " % i) and
                      abs(float(output[i].split()[2]) - right) < 0.8, output[i])
    result("masks: target and prediction of the middle plane, class by class", bad)


with tempfile.TemporaryDirectory() as where:
    os.chdir(where)
    test_classes()
    test_masks()
    os.chdir("/")
finish()
