#!/usr/bin/env python3
# metrics.py - every metric against formulas in NumPy and SciPy's rank statistics.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""Random outputs and targets are evaluated by metrics_run and by the formulas in this file;
one TAP line per group."""
import json
import os
import subprocess
import tempfile

import numpy as np
import scipy.special
import scipy.stats

from tap import bail_out, finish, result

RUN = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/metrics_run")
random = np.random.default_rng(11)


def run(directory, cases):
    """cases: (output n,places,channels; labels n,places or values; ignore; logits; list).
    Returns a dict of values for each."""
    lines = []
    for i, (x, t, ignore, logits, wanted) in enumerate(cases):
        paths = [os.path.join(directory, "%d.%s" % (i, k)) for k in "xt"]
        x.astype(np.float32).tofile(paths[0])
        labels = t.ndim == 2
        t.astype(np.int32 if labels else np.float32).tofile(paths[1])
        lines.append("%d %d %d %s %s %s %d %d %s\n" % (
            *x.shape, paths[0], "labels" if labels else "values", paths[1], ignore,
            logits, json.dumps(wanted)))
    done = subprocess.run([RUN], input="".join(lines), text=True, capture_output=True)
    if done.returncode != 0:
        bail_out(done.stderr)
    out = []
    for block in done.stdout.split("\n\n")[:-1]:
        values = {}
        for line in block.strip().split("\n"):
            name, *number = line.split()
            values[name] = [float(n) for n in number]
            if name != "confusion":
                values[name] = values[name][0]
        out.append(values)
    return out


def compare(got, want, near=1e-12, what=""):
    lines = []
    for name, value in want.items():
        g = np.asarray(got.get(name, -1), np.float64)
        off = np.abs(g - value) / np.maximum(1, np.abs(value))
        same = np.isnan(g) == np.isnan(value)
        if not np.all(same & (np.isnan(off) | (off <= near))):
            lines.append("%s %s: %s instead of %s" % (what, name, g, value))
    return lines


def ratio(kind, hit, out, target):
    """The ratio of one class: NaN if the class is in neither, 0/0 is 0."""
    if out + target == 0:
        return np.nan
    if kind in ("dice", "f1"):
        precision = hit / out if out else 0
        recall = hit / target if target else 0
        return (2 * precision * recall / (precision + recall)
                if precision + recall > 0 else 0)
    below = {"iou": out + target - hit, "precision": out, "recall": target}[kind]
    return hit / below if below else 0


def mean(values):
    values = [v for v in values if not np.isnan(v)]
    return np.mean(values) if values else np.nan


RATIOS = ["dice", "iou", "precision", "recall", "f1"]


def of_classes(x, t, ignore, classes):
    """Accuracy, ratios, top_k and the matrix."""
    want = {}
    o = x.argmax(-1)
    seen = t != ignore
    o, t, x = o[seen], t[seen], x[seen]
    want["accuracy"] = (o == t).mean() if t.size else np.nan
    for kind in RATIOS:
        each = [ratio(kind, ((o == c) & (t == c)).sum(), (o == c).sum(), (t == c).sum())
                for c in range(classes)]
        want[kind] = mean(each)
        want.update({"%s_%d" % (kind, c): v for c, v in enumerate(each)})
    best = np.argsort(-x, -1, kind="stable")[:, :2]
    want["top_2"] = (best == t[:, None]).any(-1).mean()
    want["confusion"] = np.histogram2d(t, o, np.arange(classes + 1) - 0.5)[0].ravel()
    return want


def test_classes(directory):
    cases, wants = [], []
    for i in range(40):
        classes, places = int(random.integers(2, 9)), int(random.integers(1, 60))
        n = int(random.integers(2, 40))
        x = random.random((n, places, classes)).round(2)  # with ties
        t = random.integers(0, max(2, classes - i % 2), (n, places))
        ignore = [-1, 255, 0][i % 3]
        if ignore == 255:
            t[random.random(t.shape) < 0.2] = 255
        wants.append(of_classes(x.astype(np.float32), t, ignore, classes))
        target = t
        if i % 4 == 0 and ignore != 255:
            target = np.eye(classes)[t]
        cases.append((x, target, ignore, 0, ["accuracy", "top_2", "confusion"] + RATIOS))
    got = run(directory, cases)
    bad = [line for g, w in zip(got, wants) for line in compare(g, w)]
    result("classes: accuracy, top_k, ratios, the matrix; labels and one-hot; ignored", bad)


def test_probabilities(directory):
    cases, wants = [], []
    for i in range(24):
        classes, n = int(random.integers(2, 9)), int(random.integers(2, 40))
        z = random.normal(0, 2, (n, 7, classes)).astype(np.float32)
        p = scipy.special.softmax(z.astype(np.float64), -1)
        labels = random.integers(0, classes, (n, 7))
        t = np.eye(classes)[labels]
        seen = np.ones((n, 7), bool)
        ignore, target = -1, labels
        if i % 3 == 1:
            t = scipy.special.softmax(random.normal(0, 1, t.shape), -1)
            t = t.astype(np.float32).astype(np.float64)
            target, labels = t, t.argmax(-1)
        if i % 3 == 2:
            ignore, seen = 1, labels != 1
        x = z if i % 2 == 0 else p.astype(np.float32)
        if i % 2:
            p = x.astype(np.float64)
        right = np.take_along_axis(p, labels[..., None], -1)[..., 0]
        tc, pc = np.clip(t, 1e-7, 1), np.clip(p, 1e-7, 1)
        hinge = np.maximum(0, ((1 - t) * p).max(-1) - (t * p).sum(-1) + 1)
        each = {"categorical_hinge": hinge, "categorical_mse": (1 - right) ** 2,
                "categorical_mae": 1 - right,
                "kl_divergence": (tc * np.log(tc / pc)).sum(-1)}
        wants.append({k: v[seen].mean() if seen.any() else np.nan
                      for k, v in each.items()})
        cases.append((x, target, ignore, int(i % 2 == 0), list(each)))
    got = run(directory, cases)
    bad = [line for g, w in zip(got, wants) for line in compare(g, w, 1e-6)]
    result("probabilities: categorical hinge, mse, mae, KL divergence", bad)


def test_samples(directory):
    cases, wants = [], []
    for i in range(20):
        classes, n = int(random.integers(2, 5)), 9
        x = random.random((n, 50, classes))
        t = random.integers(0, classes, (n, 50))
        t[0] = 0
        x[0, :, 0] = 2  # other classes are absent in this sample
        o = x.argmax(-1)
        kind = RATIOS[i % len(RATIOS)]
        each = [mean([ratio(kind, ((o[s] == c) & (t[s] == c)).sum(), (o[s] == c).sum(),
                            (t[s] == c).sum()) for s in range(n)])
                for c in range(classes)]
        want = {"%s_%d" % (kind, c): v for c, v in enumerate(each)}
        want[kind] = mean(each[1:])
        wants.append(want)
        cases.append((x, t, -1, 0, [{"type": kind, "average": "samples",
                                     "background": 0}]))
    got = run(directory, cases)
    bad = [line for g, w in zip(got, wants) for line in compare(g, w, 1e-9)]
    result("ratios of samples, averaged without the background", bad)


def test_binary(directory):
    cases, wants = [], []
    for i in range(30):
        channels = [1, 1, 3][i % 3]
        z = random.normal(0, 3, (12, 40, channels)).astype(np.float32)
        mask = (random.random(z.shape) < 0.3).astype(np.float32)
        ignore = -1
        if i % 2:
            mask[random.random(z.shape) < 0.1] = 7
            ignore = 7
        logits = i % 4 < 2
        threshold = 0.5 if i % 5 else 0.3
        p = scipy.special.expit(z.astype(np.float64)).astype(np.float32)
        yes = (z.astype(np.float64) > scipy.special.logit(threshold) if logits
               else p.astype(np.float64) > threshold)
        seen = mask != ignore
        want = {"accuracy": (yes == (mask > 0.5))[seen].mean()}
        for kind in RATIOS:
            each = []
            for c in range(channels):
                s = seen[..., c]
                o, t = yes[..., c][s], mask[..., c][s] > 0.5
                each.append(ratio(kind, (o & t).sum(), o.sum(), t.sum()))
            want[kind] = mean(each)
        wants.append(want)
        how = {"scores": "binary", "threshold": threshold}
        target = mask
        if channels == 1 and i % 6 == 0:
            target = mask[..., 0]  # as labels
        cases.append((z if logits else p, target, ignore, int(logits),
                      [{"type": k, **how} for k in ["accuracy"] + RATIOS]))
    got = run(directory, cases)
    bad = [line for g, w in zip(got, wants) for line in compare(g, w)]
    result("binary: one and several channels, logits, thresholds", bad)


def auc(score, yes):
    """By ranks: Mann and Whitney's U, ties count half."""
    score, yes = np.ravel(score), np.ravel(yes)
    n, m = yes.sum(), (~yes).sum()
    if n == 0 or m == 0:
        return np.nan
    return (scipy.stats.rankdata(score)[yes].sum() - n * (n + 1) / 2) / (n * m)


def bound(odds, yes):
    """Half the fraction of pairs in one bin: the documented error."""
    odds = np.clip(np.ravel(odds), -128, 128)
    at = np.sign(odds) * np.log1p(np.abs(odds)) / np.log1p(128)
    bin_of = np.clip((at + 1) * 32768, 0, 65535).astype(int)
    yes = np.ravel(yes)
    a, b = (np.bincount(bin_of[k], minlength=65536).astype(float) for k in (yes, ~yes))
    return (a * b).sum() / 2 / max(1, a.sum() * b.sum()) + 1e-12


def test_auc(directory):
    cases, exact, limits = [], [], []
    for i in range(24):
        n = 3000
        yes = random.random(n) < 0.3
        sure = [0.5, 3, 12][i % 3]
        z = (random.normal(0, sure, n) + sure * yes).astype(np.float32)
        if i % 2:
            x, odds = z, z.astype(np.float64)
        else:
            x = scipy.special.expit(z.astype(np.float64)).astype(np.float32)
            with np.errstate(divide="ignore"):
                odds = scipy.special.logit(x.astype(np.float64))
        exact.append(auc(x, yes))
        limits.append(bound(odds, yes))
        cases.append((x.reshape(n, 1, 1), yes.reshape(n, 1).astype(int), -1, i % 2,
                      ["auc"]))
    got = run(directory, cases)
    off = [abs(g["auc"] - e) for g, e in zip(got, exact)]
    bad = ["%d: %.3g off, and %.3g allowed" % (i, o, l)
           for i, (o, l) in enumerate(zip(off, limits)) if not o <= l]
    result("auc, binary: within the documented error (at most %.2g off)" % max(off), bad)
    cases, exact = [], []
    for i in range(12):
        n, classes = 2000, int(random.integers(3, 7))
        t = random.integers(0, classes, (n, 1))
        z = random.normal(0, 1.5, (n, 1, classes))
        np.put_along_axis(z, t[..., None], np.take_along_axis(z, t[..., None], -1) + 1.5,
                          -1)
        z = z.astype(np.float32)
        p = scipy.special.softmax(z.astype(np.float64), -1)
        want = {"auc_%d" % c: auc(p[:, 0, c], t[:, 0] == c) for c in range(classes)}
        want["auc"] = mean(list(want.values()))
        exact.append(want)
        cases.append((z if i % 2 else p, t, -1, i % 2, ["auc"]))
    got = run(directory, cases)
    bad = [line for g, w in zip(got, exact) for line in compare(g, w, 1e-5)]
    result("auc of classes, each against the rest, before and after the softmax", bad)


def test_values(directory):
    cases, wants = [], []
    for i in range(20):
        shape = (int(random.integers(4, 20)), int(random.integers(1, 9000)), 1 + i % 3)
        t = (random.normal(0, 1, shape) * 10 + i).astype(np.float32)
        x = (t + random.normal(0, 1, shape)).astype(np.float32)
        e, u = x.astype(np.float64) - t, t.astype(np.float64).reshape(-1, shape[2])
        r2 = 1 - (e.reshape(u.shape) ** 2).sum(0) / ((u - u.mean(0)) ** 2).sum(0)
        want = {"mse": (e ** 2).mean(), "rmse": np.sqrt((e ** 2).mean()),
                "mae": np.abs(e).mean(), "r2": r2.mean(),
                "rel_l2": np.linalg.norm(e) / np.linalg.norm(u)}
        if shape[2] > 1:
            want.update({"r2_%d" % c: v for c, v in enumerate(r2)})
        wants.append(want)
        cases.append((x, t, -1, 0, ["mse", "rmse", "mae", "r2", "rel_l2"]))
    got = run(directory, cases)
    bad = [line for g, w in zip(got, wants) for line in compare(g, w, 1e-10)]
    result("values: mse, rmse, mae, r2, rel_l2", bad)


with tempfile.TemporaryDirectory() as where:
    for test in (test_classes, test_samples, test_binary, test_auc, test_values,
                 test_probabilities):
        test(where)
finish()
