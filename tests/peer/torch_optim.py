# torch_optim.py - 20 steps of every optimizer and option on random gradients, on every
# backend: against PyTorch, LARS and LAMB against NumPy.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import subprocess

import numpy as np
import torch

from tap import finish, result, unless

RUN = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/optim_run")
COUNT, STEPS = 20011, 20
# The reference is f64; errors are the largest difference over the largest weight.  f64 may
# differ only by rounding.  f32 may differ by a few times the error of PyTorch's f32 if a rule
# amplifies rounding (a decay that cancels a gradient).
LIMIT = {"f32": 1e-6, "f64": 1e-12}
FEW = 3
SIDES = [("ref", "f64"), ("ref", "f32"), ("cpu", "f32")]

O = torch.optim
TORCH = [
    # configuration, class of PyTorch
    ({"type": "SGD"}, O.SGD),
    ({"type": "sgd", "learning_rate": 0.1, "weight_decay": 0.01}, O.SGD),
    ({"type": "SGD", "momentum": 0.9}, O.SGD),
    ({"type": "SGD", "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.02}, O.SGD),
    ({"type": "SGD", "momentum": 0.8, "nesterov": True}, O.SGD),
    ({"type": "SGD", "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}, O.SGD),
    ({"type": "Adagrad"}, O.Adagrad),
    ({"type": "Adagrad", "lr_decay": 0.1, "weight_decay": 0.05}, O.Adagrad),
    ({"type": "Adagrad", "eps": 0.01, "learning_rate": 0.03}, O.Adagrad),
    ({"type": "Adadelta"}, O.Adadelta),
    ({"type": "Adadelta", "rho": 0.7, "eps": 1e-4, "weight_decay": 0.1}, O.Adadelta),
    ({"type": "RMSprop"}, O.RMSprop),
    ({"type": "RMSprop", "alpha": 0.9, "weight_decay": 0.1}, O.RMSprop),
    ({"type": "RMSprop", "momentum": 0.9, "learning_rate": 0.001}, O.RMSprop),
    ({"type": "RMSprop", "centered": True, "eps": 1e-3}, O.RMSprop),
    ({"type": "RMSprop", "centered": True, "momentum": 0.5}, O.RMSprop),
    ({"type": "Adam"}, O.Adam),
    ({"type": "Adam", "learning_rate": 0.001, "eps": 1e-2}, O.Adam),
    ({"type": "Adam", "beta1": 0.8, "beta2": 0.9, "weight_decay": 0.1}, O.Adam),
    ({"type": "Adam", "amsgrad": True, "beta2": 0.5}, O.Adam),
    ({"type": "AdamW"}, O.AdamW),
    ({"type": "AdamW", "weight_decay": 0.3}, O.AdamW),
    ({"type": "AdamW", "weight_decay": 0.3, "amsgrad": True, "beta2": 0.6}, O.AdamW),
    ({"type": "Nadam"}, O.NAdam),
    ({"type": "NAdam", "momentum_decay": 0.3, "weight_decay": 0.1}, O.NAdam),
    ({"type": "nadam", "beta1": 0.7, "beta2": 0.8, "eps": 1e-3}, O.NAdam),
]
# Keys with another name in PyTorch, and other defaults.
NAMES = {"learning_rate": "lr"}
DEFAULTS = {"SGD": {"lr": 0.01}, "Adagrad": {"lr": 0.01}, "RMSprop": {"lr": 0.01},
            "Adam": {"lr": 0.01}, "AdamW": {"lr": 0.01, "weight_decay": 0}}


def arguments(cls, options):
    out = dict(DEFAULTS.get(cls.__name__, {}))
    betas = [options.get("beta1", 0.9), options.get("beta2", 0.999)]
    for key, value in options.items():
        if key not in ("type", "beta1", "beta2"):
            out[NAMES.get(key, key)] = value
    if "beta1" in options or "beta2" in options:
        out["betas"] = betas
    return out


def torch_steps(cls, options, w, grads, dtype, rates):
    torch.set_default_dtype(dtype)  # NAdam computes its product in this dtype
    p = torch.nn.Parameter(torch.tensor(w, dtype=dtype))
    # One tensor at a time, as the formulas are written.
    opt = cls([p], foreach=False, **arguments(cls, options))
    for g, rate in zip(grads, rates or [None] * len(grads)):
        if rate is not None:
            opt.param_groups[0]["lr"] = rate
        p.grad = torch.tensor(g, dtype=dtype)
        opt.step()
        yield p.detach().double().numpy().copy()


def lars_steps(a, w, grads):
    lr, mu, damp = a.get("learning_rate", 0.01), a.get("momentum", 0), a.get("dampening", 0)
    wd, eta, v = a.get("weight_decay", 0), a.get("eta", 1e-3), None
    for g in grads:
        long, steep = np.linalg.norm(w), np.linalg.norm(g)
        trust = eta * long / (steep + wd * long) if long > 0 and steep > 0 else 1
        d = trust * (g + wd * w)
        v = d if v is None else mu * v + (1 - damp) * d
        w = w - lr * (d + mu * v if a.get("nesterov") else v if mu else d)
        yield w


def lamb_steps(a, w, grads):
    b1, b2, eps = a.get("beta1", 0.9), a.get("beta2", 0.999), a.get("eps", 1e-8)
    lr, wd = a.get("learning_rate", 0.01), a.get("weight_decay", 0)
    m, v, most = 0 * w, 0 * w, 0 * w
    for t, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        most = np.maximum(most, v)
        root = np.sqrt((most if a.get("amsgrad") else v) / (1 - b2**t))
        r = m / (1 - b1**t) / (root + eps) + wd * w
        long, step = np.linalg.norm(w), np.linalg.norm(r)
        w = w - lr * (long / step if long > 0 and step > 0 else 1) * r
        yield w


NUMPY = [
    ({"type": "LARS"}, lars_steps),
    ({"type": "LARS", "learning_rate": 2, "momentum": 0.9, "weight_decay": 0.01}, lars_steps),
    ({"type": "lars", "eta": 0.02, "momentum": 0.7, "nesterov": True}, lars_steps),
    ({"type": "LARS", "eta": 0.1, "momentum": 0.7, "dampening": 0.2}, lars_steps),
    ({"type": "LAMB"}, lamb_steps),
    ({"type": "LAMB", "weight_decay": 0.1, "learning_rate": 0.1}, lamb_steps),
    ({"type": "Lamb", "amsgrad": True, "beta1": 0.8, "beta2": 0.5, "eps": 1e-3}, lamb_steps),
]


def ours(side, options, w, grads, rates):
    call = [RUN, side[0], side[1], str(w.size), str(len(grads)), json.dumps(options)]
    call += [repr(r) for r in rates or []]
    got = subprocess.run(call, input=w.tobytes() + grads.tobytes(),
                         stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(got).reshape(len(grads), w.size)


def far(got, want):
    """The worst step: the largest difference over the largest weight."""
    worst = 0
    for g, w in zip(got, want):
        d = np.abs(g - w).max() / np.abs(w).max()
        worst = max(worst, np.inf if np.isnan(d) else d)
    return worst


def main():
    random = np.random.default_rng(7)
    w = random.normal(size=COUNT).astype("f4").astype("f8")
    grads = random.normal(size=(STEPS, COUNT)) * 10.0**random.uniform(-3, 1, COUNT)
    grads = grads.astype("f4").astype("f8")
    changing = [0.05 * 0.8**t for t in range(STEPS)]
    cases = [(a, lambda d, r, a=a, c=c: torch_steps(c, a, w, grads, d, r), rates)
             for a, c in TORCH for rates in (None, changing)]
    cases += [(a, lambda d, r, a=a, f=f: f(a, w, grads), None) for a, f in NUMPY]
    for options, steps, rates in cases:
        single = list(steps(torch.float32, rates))
        want = list(steps(torch.float64, rates))
        limit = dict(LIMIT, f32=max(LIMIT["f32"], FEW * far(single, want)))
        text = json.dumps(options) + (", changing rate" if rates else "")
        for side in SIDES:
            off = far(ours(side, options, w, grads, rates), want)
            result(f"{text}: {side[0]} {side[1]}, {off:.1e} off", unless(off <= limit[side[1]]))
    finish()


main()
