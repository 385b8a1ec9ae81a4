# hessian.py - dnn-train with {"type": "Hessian"} against SciPy's and PyTorch's L-BFGS on
# the same loss.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import csv
import json
import os
import subprocess
import tempfile

import numpy as np
import torch
from scipy.optimize import minimize

from tap import finish, result, unless


def dense(units, activation, l2=0.0):
    config = {"units": units, "activation": activation}
    if l2 > 0:
        config["kernel_regularizer"] = {"class_name": "L2", "config": {"l2": l2}}
    return {"class_name": "Dense", "config": config}


def train(folder, x, y, layers, loss, epochs, **optimizer):
    """The last loss, the log, and the number of evaluations."""
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y)
    # The batch size does not divide the number of samples: the loss is over all of them.
    config = {"layers": layers, "input": [x.shape[1]], "loss": loss, "num_epochs": epochs, "seed": 1,
           "data": {"input_path": "x.npy", "target_path": "y.npy", "batch_size": 96},
           "optimizer": {"type": "Hessian", **optimizer}, "dir": "run",
           "checkpoints": {"interval": 0}}
    with open(os.path.join(folder, "train.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    done = subprocess.run(["dnn-train", "train.json"], cwd=folder, capture_output=True, text=True)
    output = done.stdout + done.stderr
    if done.returncode != 0:
        return float("nan"), output, 0
    with open(os.path.join(folder, "run", "metrics.csv"), encoding="utf-8") as f:
        last = list(csv.DictReader(f))[-1]
    return float(last["loss"]), output, int(last["step"]) / -(-len(x) // 96)


def convex():
    """Softmax regression with a penalty has one minimum, which SciPy finds in f64."""
    rng = np.random.default_rng(3)
    n, features, classes, l2 = 250, 8, 3, 0.01
    x = rng.normal(size=(n, features)).astype(np.float32)
    y = np.argmax(x @ rng.normal(size=(features, classes)) + rng.normal(size=(n, classes)), axis=1)

    def value(w):
        kernel, bias = w[:-classes].reshape(features, classes), w[-classes:]
        z = x.astype(float) @ kernel + bias
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        f = -np.log(p[np.arange(n), y]).mean() + l2 * (kernel**2).sum()
        d = (p - np.eye(classes)[y]) / n
        return f, np.concatenate([(x.T @ d + 2 * l2 * kernel).ravel(), d.sum(axis=0)])

    best = minimize(value, np.zeros((features + 1) * classes), jac=True, method="L-BFGS-B",
                    options={"ftol": 0, "gtol": 1e-10, "maxiter": 1000}).fun
    with tempfile.TemporaryDirectory() as folder:
        got, output, took = train(folder, x, y.astype(np.int32), [dense(classes, "softmax", l2)],
                                "cross_entropy", 200, absolute_tolerance=1e-5)
    result("softmax regression: SciPy's minimum",
           unless(abs(got - best) <= 1e-6 * best, f"{got}, SciPy {best}\n{output}"))
    result("and it stops there", unless("absolute_tolerance reached" in output and took < 60, output))


def network():
    """Small networks have many minima: the loss must be as low as PyTorch's from some starts."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, size=(200, 2)).astype(np.float32)
    y = (np.sin(3 * x[:, :1]) * np.cos(2 * x[:, 1:])).astype(np.float32)
    steps = 60

    def peer(seed):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        for p in net.parameters():
            if p.dim() == 2:
                torch.nn.init.xavier_uniform_(p)
            else:
                torch.nn.init.zeros_(p)
        tx, ty = torch.from_numpy(x), torch.from_numpy(y)
        opt = torch.optim.LBFGS(net.parameters(), lr=1, max_iter=steps, max_eval=10 * steps,
                                tolerance_grad=0, tolerance_change=0, history_size=10,
                                line_search_fn="strong_wolfe")

        def closure():
            opt.zero_grad()
            f = torch.nn.functional.mse_loss(net(tx), ty)
            f.backward()
            return f

        opt.step(closure)
        return float(closure())

    peers = sorted(peer(seed) for seed in range(7))
    with tempfile.TemporaryDirectory() as folder:
        got, output, took = train(folder, x, y, [dense(16, "tanh"), dense(1, "linear")], "mse", steps)
    result(f"a network after {steps} steps: as low a loss as PyTorch's",
           unless(got <= peers[-1], f"{got}, PyTorch {peers}\n{output}"))
    result("with few more evaluations than steps", unless(took <= 1.5 * steps, f"{took}"))


torch.set_num_threads(1)
convex()
network()
finish()
