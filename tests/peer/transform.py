#!/usr/bin/env python3
# transform.py - resizing, warping and statistics against PyTorch, SciPy and NumPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
"""Random arrays are transformed by transform_run and by the Python libraries; one TAP line per
group.  Differences are printed with their settings."""
import os
import subprocess
import tempfile

import numpy as np
import scipy.ndimage
import torch
import torch.nn.functional as F

from tap import finish, result

RUN = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/transform_run")
TYPES = {"f32": np.float32, "f64": np.float64, "u8": np.uint8, "i16": np.int16}
NEAR = {"f32": 1e-5, "f64": 1e-13}  # absolute values are at most 10
random = np.random.default_rng(5)


def run(lines):
    done = subprocess.run([RUN], input="".join(l + "\n" for l in lines), text=True,
                          stderr=subprocess.PIPE)
    return done.stderr


def numbers(kind, shape):
    if kind[0] == "f":
        return random.standard_normal(shape).astype(TYPES[kind])
    low, high = (0, 256) if kind == "u8" else (-2000, 3000)
    return random.integers(low, high, shape).astype(TYPES[kind])


def text(shape):
    return "x".join(str(int(n)) for n in shape)


def complaint(kind, got, want, what):
    """Floats must be close; integers must be the nearest to want, or either one at a tie."""
    off = np.abs(got.astype(np.float64) - want).max()
    limit = NEAR[kind] if kind[0] == "f" else 0.5 + 2e-3
    return ["%s %s: off by %g" % (kind, what, off)] if not off <= limit else []


def channels_first(a):
    return torch.from_numpy(np.moveaxis(a, -1, 0)[None].copy())


def resize(how, directory):
    lines, cases = [], []
    for i in range(60):
        kind, nspace = random.choice(list(TYPES)), i % 3 + 1
        shape = list(random.integers(1, 14, nspace)) + [random.integers(1, 5)]
        extent = [int(n) for n in random.integers(1, 20, nspace)]
        a = numbers(kind, shape)
        path = os.path.join(directory, "%s%d" % (how, i))
        a.tofile(path)
        lines.append("resize %s %s %s %s.out %s %s"
                     % (kind, text(shape), path, path, how, text(extent)))
        cases.append((kind, a, extent, path + ".out", lines[-1]))
    bad = run(lines)
    complaints = [bad] if bad else []
    for kind, a, extent, path, line in cases if not bad else []:
        mode = ["linear", "bilinear", "trilinear"][len(extent) - 1]
        x = channels_first(a.astype(np.float64))
        if how == "linear":
            y = F.interpolate(x, size=extent, mode=mode, align_corners=False)
        else:
            y = F.interpolate(x, size=extent, mode="nearest-exact")
        want = np.moveaxis(y[0].numpy(), 0, -1)
        got = np.fromfile(path, TYPES[kind]).reshape(want.shape)
        complaints += complaint(kind, got, want, line)
    result("resize, %s: as torch.nn.functional.interpolate" % how, complaints)


def warp(how, with_field, directory):
    lines, cases = [], []
    for i in range(60):
        kind, nspace = random.choice(list(TYPES)), i % 3 + 1
        shape = list(random.integers(1, 12, nspace)) + [random.integers(1, 4)]
        a = numbers(kind, shape)
        matrix = np.eye(nspace) + random.uniform(-0.5, 0.5, (nspace, nspace))
        shift = random.uniform(-1, 1, nspace)
        field = random.uniform(-2, 2, shape[:-1] + [nspace]).astype(np.float32)
        fill = float(random.integers(0, 9))
        path = os.path.join(directory, "%s%d%d" % (how, with_field, i))
        a.tofile(path)
        field.tofile(path + ".field")
        where = path + ".field" if with_field else "-"
        lines.append("warp %s %s %s %s.out %s %g %s %s"
                     % (kind, text(shape), path, path, how, fill, where,
                        " ".join("%.17g" % x for x in [*matrix.flat, *shift])))
        cases.append((kind, a, matrix, shift, field, fill, path + ".out", lines[-1]))
    bad = run(lines)
    complaints = [bad] if bad else []
    for kind, a, matrix, shift, field, fill, path, line in cases if not bad else []:
        n = np.array(a.shape[:-1])
        centre = (n - 1) / 2
        at = np.moveaxis(np.indices(n), 0, -1) - centre
        at = at @ matrix.T + centre + shift + (field if with_field else 0)
        want = np.stack([scipy.ndimage.map_coordinates(
            a[..., c].astype(np.float64), np.moveaxis(at, -1, 0),
            order=1 if how == "linear" else 0, mode="grid-constant", cval=fill)
            for c in range(a.shape[-1])], -1)
        got = np.fromfile(path, TYPES[kind]).reshape(want.shape)
        complaints += complaint(kind, got, want, line)
    result("warp, %s%s: as scipy.ndimage.map_coordinates"
           % (how, " with a field" if with_field else ""), complaints)


def check_stats(a, path):
    output = {}
    with open(path) as f:
        for line in f:
            words = line.split()
            output.setdefault(words[0], []).append([float(w) for w in words[1:]])
    x = a.astype(np.float64).reshape(-1, a.shape[-1])
    keep = [c[np.isfinite(c)] for c in x.T]
    want = np.array([[c.mean(), c.std(), c.min(), c.max()] for c in keep])
    every = np.concatenate(keep)
    low, high = output["span"][0]
    wrong = []
    if output["count"] != [[len(x)]] or output["bad"] != [[(~np.isfinite(x)).sum()]]:
        wrong.append("counts %s %s" % (output["count"], output["bad"]))
    if not np.allclose(output["channel"], want, rtol=1e-12, atol=1e-13):
        wrong.append("channels %s, not %s" % (output["channel"], want))
    edges = low + np.arange(4097) * ((high - low) / 4096)
    if not (np.histogram(every, edges)[0] == output["bins"][0]).all():
        wrong.append("bins")
    shares = np.arange(21) / 20
    exact = np.quantile(every, shares, method="inverted_cdf")
    width = (high - low) / 4096
    off = np.abs(np.array(output["quantiles"][0]) - exact).max()
    if off > (0 if a.dtype.kind in "iu" and width == 1 else width):
        wrong.append("quantiles off by %g" % off)
    return wrong


def stats(directory):
    lines, cases = [], []
    for i in range(40):
        kind = random.choice(list(TYPES))
        shape = list(random.integers(1, 30, i % 3 + 1)) + [random.integers(1, 5)]
        a = numbers(kind, shape)
        if kind[0] == "f":
            a = (a * 10.0 ** random.integers(-5, 6) + random.integers(-3, 4))
            a = a.astype(TYPES[kind])
            if i % 4 == 0 and a[..., 0].size > 2:
                a.flat[0], a.flat[-1] = np.nan, np.inf
        path = os.path.join(directory, "stats%d" % i)
        a.tofile(path)
        lines.append("stats %s %s %s %s.out" % (kind, text(shape), path, path))
        cases.append((a, path + ".out", lines[-1]))
    bad = run(lines)
    complaints = [bad] if bad else []
    for a, path, line in cases if not bad else []:
        complaints += ["%s: %s" % (line, w) for w in check_stats(a, path)]
    result("moments, histograms and quantiles: as NumPy", complaints)


torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as scratch:
    for how in "linear", "nearest":
        resize(how, scratch)
        warp(how, False, scratch)
        warp(how, True, scratch)
    stats(scratch)
finish()
