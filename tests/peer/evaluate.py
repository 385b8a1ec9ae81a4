#!/usr/bin/env python3
# evaluate.py - evaluations against formulas in NumPy and SciPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""Random outputs and targets are evaluated by evaluate_run and by the formulas in this file:
distances by SciPy's distance transform, ranks by its rank statistics; one TAP line each."""
import json
import os
import subprocess
import tempfile

import numpy as np
import scipy.ndimage
import scipy.special
import scipy.stats

from tap import bail_out, finish, result

RUN = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/evaluate_run")
random = np.random.default_rng(5)


def run(directory, task, output, target, shape=(1, 1, 1), spacing=(1, 1, 1), logits=False):
    """The results for arrays (n, points..., channels) and targets."""
    paths = [os.path.join(directory, name) for name in ("output", "target")]
    output.astype(np.float32).tofile(paths[0])
    target.astype(np.float32 if task == "values" else np.int32).tofile(paths[1])
    line = "%s %d %d %d %d %d %d %r %r %r %s %s\n" % (
        task, output.shape[-1], logits, len(output), *shape, *spacing, *paths)
    done = subprocess.run([RUN], input=line, text=True, capture_output=True)
    if done.returncode != 0:
        bail_out(done.stderr)
    return json.loads(done.stdout)


def compare(got, want, near):
    """Differences of named numbers; null is NaN."""
    lines = []
    for name, value in want.items():
        number = got.get(name, -1)
        number = np.nan if number is None else number
        if not np.isclose(number, value, rtol=near, atol=near, equal_nan=True):
            lines.append("%s: %r instead of %r" % (name, number, value))
    return lines


def surface(mask):
    return mask & ~scipy.ndimage.binary_erosion(mask)


def distances(a, b, spacing):
    """Directed distances between the surfaces of two masks."""
    a, b = surface(a), surface(b)
    return (scipy.ndimage.distance_transform_edt(~b, sampling=spacing)[a],
            scipy.ndimage.distance_transform_edt(~a, sampling=spacing)[b])


def masks(directory):
    shape, classes, n = (24, 30, 17), 3, 4
    spacing = (1.25, 0.7, 2.0)
    smooth = [scipy.ndimage.gaussian_filter(random.normal(size=(n, *shape, classes)),
                                            (0, 3, 3, 3, 0)) for _ in range(2)]
    target = np.argmax(smooth[0], -1)
    output = (smooth[0] + 0.7 * smooth[1]).astype(np.float32)
    got = run(directory, "masks", output, target, shape, spacing)
    predicted = np.argmax(output, -1)
    lines, averages = [], []
    for c in range(classes):
        a, b = target == c, predicted == c
        both = [distances(x, y, spacing) for x, y in zip(a, b)]
        want = {
            "dice": 2 * np.sum(a & b) / (np.sum(a) + np.sum(b)),
            "iou": np.sum(a & b) / np.sum(a | b),
            "precision": np.sum(a & b) / np.sum(b), "recall": np.sum(a & b) / np.sum(a),
            "target_points": np.sum(a), "output_points": np.sum(b),
            "sample_dice": np.mean([2 * np.sum(x & y) / (np.sum(x) + np.sum(y))
                                    for x, y in zip(a, b)]),
            "hausdorff95": np.mean([max(np.percentile(x, 95), np.percentile(y, 95))
                                    for x, y in both]),
            "surface_distance": np.mean([np.mean(np.concatenate(x)) for x in both])}
        averages.append(want["hausdorff95"])
        lines += compare(got["classes"][c], want, 1e-6)
    lines += compare(got["totals"], {"accuracy": np.mean(target == predicted),
                                     "hausdorff95": np.mean(averages)}, 1e-6)
    return lines


def auc(score, positive):
    ranks = scipy.stats.rankdata(score)
    n, all_n = np.sum(positive), len(score)
    return (np.sum(ranks[positive]) - n * (n + 1) / 2) / n / (all_n - n)


def labels(directory, logits):
    n, classes, bins = 3000, 12, 15
    target = random.integers(0, classes, n)
    x = random.normal(size=(n, classes)) * 2
    x[np.arange(n), target] += 2
    x = x.astype(np.float32)
    p = scipy.special.softmax(x.astype(np.float64), -1)
    if not logits:
        x = p = p.astype(np.float32)
        p = p.astype(np.float64)
    got = run(directory, "labels", x, target, logits=logits)
    predicted, confidence = np.argmax(x, -1), np.max(p, -1)
    right = predicted == target
    hot = np.eye(classes)[target]
    order = np.argsort(-x, -1, kind="stable")
    where = np.ceil(confidence * bins).astype(int)
    gaps = [(np.sum(where == b), abs(np.mean(right[where == b]) - np.mean(confidence[where == b])))
            for b in np.unique(where)]
    hits = np.bincount(target[right], minlength=classes)
    support = np.bincount(target, minlength=classes)
    precision = hits / np.bincount(predicted, minlength=classes)
    recall = hits / support
    f1 = 2 * precision * recall / (precision + recall)
    lines = compare(got["totals"], {
        "samples": n, "accuracy": np.mean(right),
        "top_5": np.mean(np.any(order[:, :5] == target[:, None], -1)),
        "precision": np.mean(precision), "recall": np.mean(recall), "f1": np.mean(f1),
        "weighted_precision": np.average(precision, weights=support),
        "weighted_f1": np.average(f1, weights=support),
        "nll": -np.mean(np.log(p[np.arange(n), target])),
        "brier": np.mean(np.sum((p - hot) ** 2, -1)),
        "calibration_error": sum(k * gap for k, gap in gaps) / n,
        "max_calibration_error": max(gap for _, gap in gaps)}, 1e-9)
    # A softmax ranks samples of a class by its odds against the others.
    lines += compare(got["totals"], {"auc": np.mean([auc(p[:, c], target == c)
                                                     for c in range(classes)])}, 2e-4)
    return lines


def values(directory):
    n, shape, channels = 5, (3, 8, 9), 2
    target = (3 + random.normal(size=(n, *shape, channels)) * [1, 50]).astype(np.float32)
    output = (target + random.normal(size=target.shape) * 0.2).astype(np.float32)
    got = run(directory, "values", output, target, shape)
    t, d = target.astype(np.float64), output.astype(np.float64) - target
    lines = []
    for c in range(channels):
        e, x = d[..., c], t[..., c]
        lines += compare(got["channels"][c], {
            "mse": np.mean(e ** 2), "mae": np.mean(np.abs(e)), "largest_error": np.max(np.abs(e)),
            "r2": 1 - np.sum(e ** 2) / np.sum((x - np.mean(x)) ** 2)}, 1e-12)
    per = [np.linalg.norm(d[i]) / np.linalg.norm(t[i]) for i in range(n)]
    lines += compare(got["totals"], {
        "rmse": np.sqrt(np.mean(d ** 2)), "rel_l2": np.linalg.norm(d) / np.linalg.norm(t),
        "sample_rel_l2": np.mean(per)}, 1e-12)
    return lines


with tempfile.TemporaryDirectory() as directory:
    result("masks: overlap and surface distances", masks(directory))
    result("labels from logits", labels(directory, True))
    result("labels from probabilities", labels(directory, False))
    result("values", values(directory))
finish()
