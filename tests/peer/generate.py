# generate.py - results of generate_dump against SciPy's Sobol sequence, SciPy's root finder
# and formulas in NumPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import subprocess
import tempfile

import numpy as np
from scipy.optimize import brentq
from scipy.stats import qmc

from tap import finish, result, unless

PROGRAM = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/generate_dump")
TYPES = {"f32": np.float32, "u8": np.uint8}


def run(*args):
    return subprocess.run([PROGRAM, *map(str, args)], check=True, text=True,
                          capture_output=True).stdout


def numbers(*args):
    return np.array([[float(x) for x in line.split()]
                     for line in run(*args).splitlines()])


def read(first, n, **options):
    """The columns of n samples, one after the other."""
    with tempfile.TemporaryDirectory() as where:
        out = []
        for line in run(json.dumps(options), first, n, where + "/x").splitlines():
            path, kind, shape = line.split()
            out.append(np.fromfile(path, TYPES[kind]).reshape(
                [int(x) for x in shape.split("x")]))
        return out


def sobol():
    for dims, n in ((1, 64), (4, 4096), (32, 512), (64, 1024)):
        want = qmc.Sobol(dims, scramble=False).random(n)
        got = numbers("sobol", dims, 0, n)
        result(f"Sobol's first {n} points in {dims} dimensions", unless(np.array_equal(got, want)))
    later = qmc.Sobol(6, scramble=False)
    later.fast_forward(50000)
    result("Sobol's points from 50000 on",
           unless(np.array_equal(numbers("sobol", 6, 50000, 100), later.random(100))))


TABLE = [1.720667, 4.057516, 6.851237, 9.826361, 12.874596, 15.957331]


def roots():
    got = numbers("roots", 0.5, 6)[:, 0]
    worst = np.abs(got - TABLE).max()
    result("roots of eta 0.5 are the published ones", unless(worst < 1e-6, worst))
    for eta in (0.1, 0.2, 0.5, 0.7, 1, 3.7):
        def f(a):
            return (eta**2 * a**2 - 1) * np.sin(a) - 2 * eta * a * np.cos(a)

        want = [brentq(f, max((i - 1) * np.pi, 1e-9), i * np.pi, xtol=1e-15, rtol=1e-15)
                for i in range(1, 41)]
        got = numbers("roots", eta, 40)[:, 0]
        worst = (np.abs(got - want) / want).max()
        result(f"40 roots of eta {eta}", unless(worst < 2e-15, worst))


def field(omega, etas, shape):
    """ln nu by the definition, all axes at once."""
    total = 0
    for i, w in enumerate(omega):
        term = w
        for d, (eta, n) in enumerate(zip(etas, shape)):
            a = numbers("roots", eta, i + 1)[i, 0]
            x = np.arange(n) / (n - 1)
            lam = 2 * eta / (1 + eta**2 * a**2)
            axis = np.sqrt(lam) * (eta * a * np.cos(a * x) + np.sin(a * x))
            term = term * axis.reshape([-1 if k == d else 1 for k in range(len(shape))])
        total = total + term
    return total


def diffusivity():
    omega = [0.3105, 1.5386, 0.0932, -1.2442]
    want = field(omega, [.5] * 3, [64] * 3)
    got, = read(0, 1, type="diffusivity3d", samples=1, omega=omega)
    result("shape of a field", unless(got.shape == (64, 64, 64, 1), got.shape))
    worst = np.abs(np.log(got[..., 0].astype(float)) - want).max()
    result("a field with given coefficients, 64x64x64", unless(worst < 1e-6, worst))
    # The same from the published roots: 2 eta = 1 and lambda^(3/2).
    x = np.arange(64) / 63
    check = 0
    for w, a in zip(omega, TABLE):
        phi = .5 * a * np.cos(a * x) + np.sin(a * x)
        check = check + w * (1 / (1 + .25 * a * a))**1.5 * (
            phi[:, None, None] * phi[:, None] * phi)
    worst = np.abs(check - want).max()
    result("the published form of the same field", unless(worst < 1e-5, worst))

    logs, = read(0, 1, type="diffusivity3d", samples=1, omega=omega, log=True)
    worst = np.abs(logs[..., 0] - want).max()
    result("its logarithm", unless(worst < 1e-6, worst))

    points = qmc.Sobol(6, scramble=False)
    points.fast_forward(1000)
    rows = 6 * points.random(3) - 3
    got = read(0, 3, type="diffusivity2d", samples=3, skip=1000, terms=6, eta=[.3, 2],
               size=[20, 33], log=True)
    worst = max(np.abs(g[..., 0] - field(r, [.3, 2], [20, 33])).max()
                for g, r in zip(got, rows))
    result("fields from Sobol points, 20x33", unless(worst < 1e-5, worst))


def burgers():
    x = np.arange(100)
    got = read(0, 5, type="burgers", samples=5, domain_size=100, bc_frequency=[1, 3],
               bc_type="fixed_uniform")
    worst = max(np.abs(g[:, 0] - .5 * (1 - np.cos(2 * np.pi * c * x / 100))).max()
                for g, c in zip(got, (1, 1.5, 2, 2.5, 3)))
    result("Burgers' waves from the lowest to the highest frequency", unless(worst < 1e-6, worst))


sobol()
roots()
diffusivity()
burgers()
finish()
