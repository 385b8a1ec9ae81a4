#!/usr/bin/env python3
# telemetry.py - event files, tables and the report of a run, read with Python libraries.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""telemetry_make writes ten epochs of records; it is interrupted in the sixth and resumed after
the fifth.  Its files are read with protocol buffers, csv, json, html.parser, xml and PIL."""
import base64
import csv
import html.parser
import io
import json
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree

import numpy as np
import PIL.Image

from event_reader import make_event, run_of
from tap import bail_out, finish, result, skip, unless

BUILD = os.environ.get("top_builddir", ".")
MAKE = os.path.join(BUILD, "tests/peer/telemetry_make")
INJECT = os.path.realpath(os.environ.get("DNN_INJECT_SO",
                                         os.path.join(BUILD, "tests/inject.so")))
EPOCHS, STEPS, SIDE = 10, 120, 24


def near(got, want, limit):
    got, want = np.asarray(got), np.asarray(want)
    return got.shape == want.shape and np.allclose(got, want, limit, 0)


# ---- event files ----

def test_events(directory, rows, steps):
    Event = make_event()
    tags, starts = run_of(directory, "train", Event)
    result("event files: a new one when resumed", unless(
        starts == [0, 5 * STEPS + 1], "starts at %s" % starts))
    bad = []
    for name, group, table in (("loss", "epoch", rows), ("learning_rate", "epoch", rows),
                               ("grad_norm", "epoch", rows), ("loss", "step", steps)):
        got = tags.get("%s/%s" % (group, name), [])
        bad += unless([s for s, _ in got] == [int(r["step"]) for r in table],
                      "%s/%s has other steps" % (group, name))
        bad += unless(near([v.simple_value for _, v in got],
                           [float(r[name]) for r in table], 1e-6),
                      "%s/%s has other numbers" % (group, name))
    result("training scalars equal the tables", bad)
    val, _ = run_of(directory, "val", Event)
    bad = unless(sorted(val) == ["epoch/accuracy", "epoch/dice"] + [
        "epoch/dice_%d" % c for c in range(4)] + ["epoch/loss"], str(sorted(val)))
    bad += unless(near([v.simple_value for _, v in val["epoch/accuracy"]],
                       [float(r["val_accuracy"]) for r in rows], 1e-6),
                  "other accuracies")
    result("validation scalars have the names of training", bad)
    bad = []
    i = np.arange(1000)
    for step, value in tags["conv1/kernel"]:
        w = np.delete((np.sin(i * 0.7) * step / 100).astype(np.float32), 7).astype(float)
        h = value.histo
        edges = np.concatenate(([h.min], h.limit))
        count = np.histogram(w, edges)[0]
        bad += unless(np.allclose([h.min, h.max, h.num, h.sum, h.sum_squares],
                                  [w.min(), w.max(), 999, w.sum(), (w * w).sum()]),
                      "step %d: other sums" % step)
        bad += unless(np.abs(count - np.array(h.bucket)).sum() <= 4,
                      "step %d: other buckets" % step)
    result("histograms, without NaN and infinities",
           bad + unless(len(tags["conv1/kernel"]) == EPOCHS, "not ten"))
    bad = []
    for step, value in tags["prediction"]:
        picture = np.asarray(PIL.Image.open(io.BytesIO(value.image.encoded)))
        want = ((np.arange(SIDE * SIDE * 3) * 5 + step) % 256).reshape(SIDE, SIDE, 3)
        bad += unless(np.array_equal(picture, want), "step %d differs" % step)
        bad += unless((value.image.width, value.image.height, value.image.colorspace)
                      == (SIDE, SIDE, 3), "step %d has another size" % step)
    result("pictures are bitwise the same",
           bad + unless(len(tags["prediction"]) == EPOCHS, "not ten"))


# ---- tables ----

def test_tables(directory, rows, steps):
    bad = unless([int(r["epoch"]) for r in rows] == list(range(1, EPOCHS + 1)),
                 "metrics.csv has other epochs")
    bad += unless([int(r["step"]) for r in steps] == list(range(1, EPOCHS * STEPS + 1)),
                  "steps.csv has other steps")
    t = np.array([float(r["step"]) for r in rows])
    for name, value in (("val_loss", 2.6 * np.exp(-t / 250) + 0.12 + 0.00005 * t),
                        ("learning_rate", 0.01 * np.exp(-t / 400)), ("seconds", 0.25 * t)):
        bad += unless(near([float(r[name]) for r in rows], value, 1e-14),
                      "other " + name)
    result("metrics.csv and steps.csv: every row once, all digits", bad)
    lines = [json.loads(line) for line in open(os.path.join(directory, "metrics.jsonl"))]
    bad = []
    for event, table in (("epoch", rows), ("step", steps)):
        some = [line for line in lines if line["event"] == event]
        bad += unless(len(some) == len(table), "other number of %ss" % event)
        for line, row in zip(some, table):
            bad += unless(all(line[k] == float(v) for k, v in row.items()),
                          "%s %s differs" % (event, row["step"]))
    result("metrics.jsonl: the same, each line an object", bad)
    train = np.loadtxt(os.path.join(directory, "out_train.txt"))
    bad = unless(train.shape == (EPOCHS * STEPS, 6), str(train.shape))
    bad += unless(np.array_equal(train[:, 3], np.arange(1, EPOCHS * STEPS + 1)), "steps")
    bad += unless(near(train[:, 4], [float(r["loss"]) for r in steps], 1e-5),
                  "losses")
    test = [re.findall(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?", line)
            for line in open(os.path.join(directory, "out_test.txt"))]
    bad += unless([int(line[0]) for line in test] == list(range(1, EPOCHS + 1)),
                  "the first number is not the epoch")
    bad += unless(near([float(line[-1]) for line in test],
                       [float(r["val_accuracy"]) for r in rows], 1e-5),
                  "the last number is not the accuracy")
    result("X_train.txt has columns; X_test.txt begins with epoch, ends with accuracy",
           bad)


# ---- the report ----

class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.bad, self.tags, self.text, self.urls = [], [], {}, [], []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.open.append(tag)
        self.urls += [v for k, v in attrs if k in ("src", "href", "xlink:href")]
        self.bad += ["%s on %s" % (k, tag) for k, _ in attrs if k.startswith("on")]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append("</%s> ends something else" % tag)

    def handle_data(self, data):
        self.text.append(data)


def test_report(directory):
    text = open(os.path.join(directory, "report.html"), encoding="utf-8").read()
    reader = Reader()
    reader.feed(text)
    reader.close()
    result("report: elements are nested correctly",
           reader.bad + unless(not reader.open, "open: %s" % reader.open))
    try:
        xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])
        bad = []
    except xml.etree.ElementTree.ParseError as error:
        bad = [str(error)]
    result("report: is valid XML", bad)
    bad = unless("script" not in reader.tags and "link" not in reader.tags, "scripts")
    bad += unless(all(u.startswith("data:image/png;base64,") for u in reader.urls),
                  "reads other files")
    bad += unless("http" not in text and "@import" not in text and "url(" not in text,
                  "names an address")
    result("report: no scripts, no other files", bad)
    output = "".join(reader.text)
    wanted = ["unet3d <on> \"liver\" & more", "<script>alert('&')</script> \ufffd\ufffd",
              "tumor <1 cm", "epoch 1/10: loss 0.5 <ok>", "a & b <c>"]
    result("report: texts are escaped",
           [w for w in wanted if w not in output])
    png = open(os.path.join(directory, "p.png"), "rb").read()
    result("report: pictures are embedded", unless(
        [base64.b64decode(u.split(",")[1]) for u in reader.urls] == [png, png],
        "other bytes"))
    charts = re.findall(r'aria-label="([^"]*)"', text)
    result("report: curves", unless(charts == [
        "loss", "accuracy", "val_dice", "val_dice by class", "learning rate",
        "gradient norm", "samples per second", "share of time, %", "loss by step",
        "gradient norm by step"], str(charts)))
    numbers = [float(n) for d in re.findall(r' d="([^"]*)"', text)
               for n in re.findall(r"[-\d.]+", d)]
    result("report: curves stay inside their charts", unless(
        numbers and min(numbers) >= 0 and max(numbers) <= 520, "%s" % numbers[:3]))


# ---- killed and resumed ----

TEXTS = ["metrics.csv", "steps.csv", "metrics.jsonl", "out_train.txt", "out_test.txt"]


def make(directory, first, last, inject=None):
    env = dict(os.environ)
    if inject is not None:
        env.update(LD_PRELOAD=INJECT, DNN_INJECT=inject,
                   DNN_INJECT_UNDER=os.path.realpath(directory),
                   ASAN_OPTIONS="verify_asan_link_order=0:" + env.get("ASAN_OPTIONS", ""))
    return subprocess.run([MAKE, directory, str(first), str(last)], env=env, text=True,
                          capture_output=True)


def contents(directory, Event):
    """All files, without the times."""
    found = {}
    for name in TEXTS:
        text = open(os.path.join(directory, name)).read()
        found[name] = re.sub(r'"time": "[^"]*"', "", text)
    for run in ("train", "val"):
        for tag, values in run_of(directory, run, Event)[0].items():
            found["%s/%s" % (run, tag)] = [(s, v.SerializeToString()) for s, v in values]
    return found


def go_on(directory, last):
    """Resume from the epoch before the last complete one, as from a checkpoint."""
    try:
        rows = open(os.path.join(directory, "metrics.csv")).read().count("\n") - 1
    except FileNotFoundError:
        rows = 0
    return make(directory, max(0, rows - 1) * STEPS, last)


def test_kills():
    Event, last, bad, full = make_event(), 3 * STEPS, [], []
    random = np.random.default_rng(3)
    if not os.path.exists(INJECT):
        return skip("killed at any write, and resumed", "tests/inject.so is not built")
    with tempfile.TemporaryDirectory() as where:
        make(where, 0, last)
        want = contents(where, Event)
    for i in range(36):
        kind = ("KILL", "ENOSPC", "SHORT")[i % 3]
        at = int(random.integers(1, 4 * last)) if i > 11 else i + 1
        with tempfile.TemporaryDirectory() as where:
            done = make(where, 0, last, "write:%d:%s" % (at, kind))
            if kind == "ENOSPC" and not re.fullmatch(
                    re.escape(where) + r"/[\w./-]+: cannot be written: No space left on "
                    r"device\n", done.stderr):
                full.append("write %d: %s" % (at, done.stderr))
            if kind == "SHORT":
                bad += unless(done.returncode == 0, "write %d: %s" % (at, done.stderr))
            else:
                bad += unless(done.returncode != 0, "write %d was not reached" % at)
                done = go_on(where, last)
                bad += unless(done.returncode == 0, "write %d: %s" % (at, done.stderr))
            got = contents(where, Event)
            bad += ["%s at write %d: %s differs" % (kind, at, name) for name in want
                    if got.get(name) != want[name]]
    result("killed at any write, and resumed: the same files", bad)
    result("a full disk: the message names the file", full)


with tempfile.TemporaryDirectory() as where:
    PIL.Image.fromarray(np.arange(48 * 96 * 3, dtype=np.uint8).reshape(48, 96, 3)).save(
        os.path.join(where, "p.png"))
    done = subprocess.run([MAKE, where], capture_output=True, text=True)
    if done.returncode != 0:
        bail_out(done.stderr)
    epochs, each = (list(csv.DictReader(open(os.path.join(where, n), newline="")))
                    for n in ("metrics.csv", "steps.csv"))
    test_events(where, epochs, each)
    test_tables(where, epochs, each)
    test_report(where)
test_kills()
finish()
