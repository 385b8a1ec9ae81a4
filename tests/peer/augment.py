# augment.py - results of augment_dump against PyTorch (resize), SciPy
# (rotations, distributions), colorsys (hue) and NumPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import colorsys
import json
import os
import subprocess
import tempfile

import numpy as np
import torch
from scipy import ndimage, stats

from tap import finish, result, unless

PROGRAM = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/augment_dump")
TYPES = {"f32": np.float32, "u8": np.uint8, "i32": np.int32}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}
rng = np.random.default_rng(3)


def apply(transforms, array, kind="image", n=1):
    """The results, or the result if there is one."""
    with tempfile.TemporaryDirectory() as where:
        array.tofile(where + "/in")
        text = subprocess.run(
            [PROGRAM, json.dumps(transforms), kind, NAMES[array.dtype],
             "x".join(map(str, array.shape)), where + "/in", str(n), where + "/out"],
            check=True, text=True, capture_output=True).stdout
        raw = open(where + "/out", "rb").read()
    out, at = [], 0
    for line in text.splitlines():
        name, shape = line.split()
        shape = [int(x) for x in shape.split("x")]
        size = int(np.prod(shape)) * np.dtype(TYPES[name]).itemsize
        out.append(np.frombuffer(raw[at:at + size], TYPES[name]).reshape(shape))
        at += size
    return out[0] if n == 1 else out


def close(got, want, what, limit=1e-5):
    worst = np.abs(got.astype(float) - want).max() if got.shape == want.shape else None
    result(what, unless(worst is not None and worst <= limit, f"{got.shape} {want.shape} {worst}"))


def image(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def resize():
    for shape, size in (((20, 31, 3), (13, 40)), ((9, 12, 7, 2), (16, 5, 21))):
        x = image(*shape)
        t = torch.tensor(x).movedim(-1, 0)[None]
        mode = "bilinear" if len(size) == 2 else "trilinear"
        want = torch.nn.functional.interpolate(t, size=size, mode=mode,
                                               align_corners=False)[0].movedim(0, -1)
        close(apply([{"resize": size}], x), want.numpy(), f"resize {shape} to {size}")
        m = rng.integers(0, 9, shape[:-1] + (1,)).astype(np.int32)
        t = torch.tensor(m.astype(np.float32)).movedim(-1, 0)[None]
        want = torch.nn.functional.interpolate(t, size=size, mode="nearest-exact")
        close(apply([{"resize": size}], m, "mask"), want[0].movedim(0, -1).numpy(),
              f"resize of a mask {shape} to {size}", 0)


def seen(x, matrix, order):
    """x at matrix times the coordinates of each point, relative to the center."""
    space = x.shape[:-1]
    middle = (np.array(space) - 1) / 2
    at = np.stack(np.meshgrid(*map(np.arange, space), indexing="ij"), -1) - middle
    at = np.moveaxis(at @ np.array(matrix).T + middle, -1, 0)
    return np.stack([ndimage.map_coordinates(x[..., c], at, order=order,
                                             mode="grid-constant")
                     for c in range(x.shape[-1])], -1)


def back(n, i, j, degrees):
    """Coordinates of a point before a clockwise rotation, i down and j to the right."""
    m = np.eye(n)
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    m[i, i], m[i, j], m[j, i], m[j, j] = c, -s, s, c
    return m


def rotate():
    x, v = image(21, 30, 2), image(12, 15, 10, 1)
    close(apply([{"rotate": 90}], x[:, :21].copy()), np.rot90(x[:, :21], -1),
          "a quarter turn is clockwise", 0)
    close(apply([{"rotate": 25}], x), seen(x, back(2, 0, 1, 25), 1), "rotate by 25")
    inner = ndimage.rotate(x, -25, axes=(0, 1), reshape=False, order=1)
    got = apply([{"rotate": 25}], x)
    close(got[6:15, 9:21], inner[6:15, 9:21], "rotate as scipy.ndimage.rotate does", 1e-4)
    close(apply([{"rotate": 40}], v), seen(v, back(3, 1, 2, 40), 1),
          "rotate a volume in its last plane")
    m = back(3, 1, 2, 10) @ back(3, 0, 2, 20) @ back(3, 0, 1, -30)
    close(apply([{"rotate": [10, 20, -30]}], v), seen(v, m, 1),
          "rotate a volume about three axes")
    mask = rng.integers(0, 5, (21, 30, 1)).astype(np.int32)
    got = apply([{"rotate": 25}], mask, "mask")
    same = np.mean(got == seen(mask, back(2, 0, 1, 25), 0))
    result("rotate a mask to nearest points", unless(same > 0.999, same))


def simple():
    x, v = image(10, 13, 3), image(7, 8, 9, 1)
    close(apply([{"random_horizontal_flip": 1}], x), x[:, ::-1], "horizontal flip", 0)
    close(apply([{"random_vertical_flip": 1}], x), x[::-1], "vertical flip", 0)
    close(apply([{"random_flip": {"axes": [0, 2], "p": 1}}], v), v[::-1, :, ::-1],
          "flip of a volume", 0)
    close(apply([{"center_crop": [4, 6]}], x), x[3:7, 3:9], "center_crop", 0)
    close(apply([{"center_crop": [3, 4, 5]}], v), v[2:5, 2:6, 2:7],
          "center_crop of a volume", 0)
    mean, std = [.1, .2, .3], [2, 3, 4]
    close(apply([{"normalize": {"mean": mean, "std": std}}], x), (x - mean) / std,
          "normalize")
    low, high = x.min(), x.max()
    want = low + (high - low) * ((x.astype(float) - low) / (high - low))**1.7
    close(apply([{"gamma": {"low": 1.7, "high": 1.7}}], x), want, "gamma")
    want = 1.3 * (x - x.mean(dtype=float)) + x.mean(dtype=float)
    close(apply([{"contrast": {"low": 1.3, "high": 1.3}}], x), want, "contrast")


def color():
    x = rng.random((6, 7, 3)).astype(np.float32)
    close(apply([{"convert_color": "BGR2RGB"}], x), x[..., ::-1], "BGR2RGB", 0)
    close(apply([{"convert_color": "RGB2GRAY"}], x), x @ [[.299], [.587], [.114]],
          "RGB2GRAY")
    want = np.array([[colorsys.rgb_to_hsv(*map(float, p)) for p in row] for row in x])
    got = apply([{"convert_color": "RGB2HSV"}], x)
    close(got / [360, 1, 1], want, "RGB2HSV")
    close(apply([{"convert_color": "HSV2RGB"}], got.astype(np.float32)), x, "HSV2RGB")


def crops():
    """Crops are parts of the sample, with uniform positions."""
    v = np.arange(9 * 8 * 7, dtype=np.float32).reshape(9, 8, 7, 1)
    starts, good = [], True
    for got in apply([{"random_crop": [4, 5, 6]}], v, n=600):
        z, y, x = np.unravel_index(int(got.flat[0]), v.shape[:3])
        good &= np.array_equal(got, v[z:z + 4, y:y + 5, x:x + 6])
        starts.append((z, y, x))
    result("random_crop does not change values", unless(good))
    for axis, n in enumerate((6, 4, 2)):
        freq = np.bincount(np.array(starts)[:, axis], minlength=n)
        p = stats.chisquare(freq).pvalue if len(freq) == n else 0
        result(f"random_crop: uniform offsets along axis {axis}", unless(p > 1e-4, freq))
    good, sizes = True, []
    for got in apply([{"jitter_crop": 0.5}], v, n=300):
        z, y, x = np.unravel_index(int(got.flat[0]), v.shape[:3])
        d, h, w, _ = got.shape
        good &= np.array_equal(got, v[z:z + d, y:y + h, x:x + w])
        good &= z <= 2 and z + d >= 7 and y + h >= 6 and x + w >= 6
        sizes.append(d)
    result("jitter_crop: parts near the borders",
           unless(good and len(set(sizes)) >= 4, set(sizes)))


def random():
    one = np.ones((1, 2, 1), np.float32)
    for alpha in (0.2, 1, 4):
        got = np.array([x.flat[0] for x in apply([{"mixup": alpha}], one, n=2000)])
        p = stats.kstest(got, "beta", (alpha, alpha)).pvalue
        result(f"mixup: ratios have the distribution Beta({alpha}, {alpha})", unless(p > 1e-4, p))
    got = np.array(apply([{"noise": 2.5}], np.zeros((40, 50, 1), np.float32)))
    p = stats.kstest(got.ravel() / 2.5, "norm").pvalue
    result("noise is normal", unless(p > 1e-4, p))
    got = np.array([x.flat[0] for x in
                    apply([{"brightness": 3}], 0 * one, n=1000)])
    p = stats.kstest((got + 3) / 6, "uniform").pvalue
    result("brightness is uniform", unless(p > 1e-4, p))


def elastic():
    """Coordinates as values: the difference is the displacement."""
    n, alpha, sigma = 96, 3.0, 6.0
    at = np.stack(np.meshgrid(*[np.arange(n)] * 2, indexing="ij"), -1).astype(np.float32)
    moves = np.array(apply([{"elastic": {"alpha": alpha, "sigma": sigma}}], at, n=20))
    moves = (moves - at)[:, 16:-16, 16:-16]
    result("elastic: displacements have the size alpha",
           unless(abs(moves.std() / alpha - 1) < .1, moves.std()))
    for part in (1, 2):
        d = round(part * sigma)
        got = np.mean(moves[:, d:] * moves[:, :-d]) / np.mean(moves**2)
        want = np.exp(-(d / sigma)**2 / 4)
        result(f"elastic is as smooth as a Gaussian filter, at {d}",
               unless(abs(got - want) < .1, (got, want)))


resize()
rotate()
simple()
color()
crops()
random()
elastic()
finish()
