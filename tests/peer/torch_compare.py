# torch_compare.py - run a network in the toolkit and in PyTorch, and compare.
#
# The reference is PyTorch in f64.  f32 may differ by the limits.  If a network amplifies
# rounding (a ReLU of a deep network that flips), it may differ by a few times the error of
# PyTorch's own f32, or of its f64 with inputs perturbed by as much.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import shutil
import subprocess
import tempfile

import numpy as np
import torch

import tap
import keras_torch
from torch_parts import to_first, to_last

LIMIT = {"output": 1e-5, "after": 1e-5, "grad": 1e-4, "input_grad": 1e-4}
EXACT = 1e-9  # if both compute in f64
FLIPS = 0.25  # relative error of the gradients of a deep network if a few ReLUs flip
# Variants: one op per layer, and as dnn-train runs it.
FUSED = ["--fuse"]
VARIANTS = {"ref": ("ref", "f64", []), "ref, fused": ("ref", "f64", FUSED),
        "ref, recomputed": ("ref", "f64", FUSED + ["--recompute", "all"]),
        "cpu": ("cpu", "f32", FUSED),
        "cpu, recomputed": ("cpu", "f32", FUSED + ["--recompute", "all"])}
NET_RUN = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/net_run")


def net_run(*args):
    done = subprocess.run([NET_RUN, *map(str, args)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"net_run {' '.join(map(str, args))}: "
                           f"{done.stderr.strip() or done.returncode}")
    return done.stdout


def listed():
    """{"zoo": [...], "layer": [...], "backend": [...]} of this build."""
    found = {}
    for line in net_run("list").splitlines():
        kind, name = line.split("\t")
        found.setdefault(kind, []).append(name)
    return found


class Run:
    """The arrays of net_run by kind and (layer, name), in order."""

    def __init__(self, folder):
        self.kinds = {}
        with open(os.path.join(folder, "manifest")) as manifest:
            for line in manifest:
                kind, layer, name, file = line.rstrip("\n").split("\t")
                here = self.kinds.setdefault(kind, {})
                key = (layer, name)
                while key in here:  # several outputs of one name
                    key = (key[0] + "'", name)
                here[key] = np.load(os.path.join(folder, file))

    def of(self, *kinds):
        return {key: a for kind in kinds for key, a in self.kinds.get(kind, {}).items()}


def save_weights(net, folder):
    os.makedirs(folder)
    with open(os.path.join(folder, "manifest"), "w") as manifest:
        for i, ((layer, name), value) in enumerate(net.weights().items()):
            file = f"{i}.npy"
            np.save(os.path.join(folder, file),
                    np.ascontiguousarray(value.float().numpy()))
            manifest.write(f"weight\t{layer}\t{name}\t{file}\n")


def shake(net, seed):
    """Random weights, none 0 or 1, exact in f32."""
    net.float().reset(seed)
    gen = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for (_, name), array in net.arrays.items():
            t = array.tensor
            noise = torch.randn(t.shape, generator=gen)
            if name == "moving_variance":
                t.copy_(0.75 + 0.5 * torch.rand(t.shape, generator=gen))
            elif name == "gamma":
                t.copy_(1 + 0.2 * noise)
            elif name == "alpha":
                t.copy_(0.25 + 0.1 * noise)
            elif not array.fan:
                t.copy_(0.2 * noise)


def torch_run(net, run, dtype, training, blur=None):
    """The same in PyTorch: {kind: {key: array}}.  blur: a generator of perturbations as
    large as f32 rounding."""
    def taken(a):
        t = torch.from_numpy(a).to(dtype)
        if blur is None:
            return t
        return t * (1 + 1e-7 * torch.randn(t.shape, generator=blur, dtype=dtype))
    net.to(dtype).train(training)
    net.zero_grad(set_to_none=True)
    net.load({k: taken(a) for k, a in run.of("weight", "state").items()})
    old = {k: a.keras().clone() for k, a in net.arrays.items()}
    inputs = [to_first(taken(a)).requires_grad_(training)
              for a in run.of("input").values()]
    result = {"output": {}, "grad": {}, "input_grad": {}, "after": {}}
    with torch.set_grad_enabled(training):
        outputs = net(*inputs)
        if training:
            seeds = [to_first(torch.from_numpy(a).to(dtype))
                     for a in run.of("seed").values()]
            total = net.penalty() + sum((y * s).sum() for y, s in zip(outputs, seeds))
            total.backward()
    for key, y in zip(run.of("output"), outputs):
        result["output"][key] = to_last(y.detach()).numpy()
    if training:
        result["grad"] = {k: g.numpy() for k, g in net.gradients().items()}
        for key, x in zip(run.of("input"), inputs):
            if x.grad is not None:
                result["input_grad"][key] = to_last(x.grad).numpy()
    for key, array in net.arrays.items():
        if key[1] in ("moving_mean", "moving_variance"):
            result["after"][key] = after(array, old[key], key[1]).numpy()
    return result


def after(array, old, name):
    """PyTorch's moving variance is unbiased (n / (n - 1)): undone if Keras's is not."""
    new, fn = array.keras().clone(), array.owner
    if name == "moving_mean" or not fn.training or fn.unbiased:
        return new
    kept = (1 - fn.momentum) * old
    return kept + (new - kept) * ((fn.count - 1) / fn.count)


def apart(got, want, floor):
    """Relative Euclidean distance, with a lower bound for the norm."""
    size = max(np.linalg.norm(want), floor * np.sqrt(want.size), 1e-30)
    return np.linalg.norm(got.astype(np.float64) - want) / size


def differ(got, want, own, exact, kinks):
    """Errors above the limits; own(): the rounding error of PyTorch, computed when needed.
    kinks: in f32, ReLUs may flip."""
    wrong = []
    for kind, limit in LIMIT.items():
        have, need = got.of(kind), want[kind]
        if set(have) != set(need):
            wrong.append(f"{kind}: here {sorted(have)}, in PyTorch {sorted(need)}")
            continue
        sizes = [np.abs(a).mean() for a in need.values() if a.size]
        floor = 1e-3 * max(sizes, default=0)
        limit = EXACT if exact else limit
        noise = None
        for key, w in need.items():
            if have[key].shape != w.shape:
                wrong.append(f"{kind} {key}: {have[key].shape} here, "
                             f"{w.shape} in PyTorch")
                continue
            far = apart(have[key], w, floor)
            if far <= limit:
                continue
            if not exact and noise is None:
                noise = 4 * max(apart(a, need[k], floor) for result in own()
                                for k, a in result[kind].items())
                if kinks and "grad" in kind:
                    noise = max(noise, FLIPS)
            if exact or not far <= noise:
                wrong.append(f"{kind} {' '.join(key)} {w.shape}: error {far:.1e}, "
                             f"limit {max(limit, noise or 0):.1e}")
    return wrong


class Case:
    """One network; weights are transferred once and PyTorch's results are kept."""

    def __init__(self, name, top, batch=2, seed=1, ours=False,
                 modes=(True, False), kinks=False):
        self.kinks = kinks
        self.name, self.batch, self.seed = name, batch, seed
        self.ours, self.modes = ours, modes
        self.folder = tempfile.mkdtemp(prefix="peer_")
        self.json = os.path.join(self.folder, "net.json")
        with open(self.json, "w") as file:
            json.dump(top, file)
        self.net = keras_torch.read(top, batch)
        self.weights = os.path.join(self.folder, "weights")
        if not ours:
            shake(self.net, seed)
            save_weights(self.net, self.weights)
        self.kept = {}

    def check(self, variant):
        """Run one variant in every mode; returns errors."""
        wrong, (backend, dtype, more) = [], VARIANTS[variant]
        for training in self.modes:
            folder = os.path.join(self.folder, "run")
            args = ["run", self.json, folder, "--backend", backend, "--dtype", dtype,
                    "--batch", self.batch, "--seed", self.seed, *more]
            args += [] if training else ["--inference"]
            args += [] if self.ours else ["--weights", self.weights]
            net_run(*args)
            run = Run(folder)
            wrong += self.carried(run)
            want, own = self.peer(run, training, dtype if self.ours else None)
            wrong += [f"{'training' if training else 'inference'}: {w}"
                      for w in differ(run, want, own, dtype == "f64", self.kinks)]
            shutil.rmtree(folder)
        return wrong

    def carried(self, run):
        """Weights from PyTorch are bitwise the same."""
        if self.ours:
            return []
        here = run.of("weight", "state")
        return [f"weight {' '.join(key)} is not what PyTorch gave"
                for key, a in Run(self.weights).of("weight").items()
                if not np.array_equal(here[key].astype(np.float32), a)]

    def peer(self, run, training, dtype):
        """PyTorch in f64, once for all variants with the same weights."""
        key = (training, dtype)
        if key not in self.kept:
            self.kept[key] = torch_run(self.net, run, torch.float64, training)

        def own():
            if key + ("own",) not in self.kept:
                found = [torch_run(self.net, run, torch.float32, training)]
                for seed in range(4):
                    gen = torch.Generator().manual_seed(seed)
                    found.append(torch_run(self.net, run, torch.float64, training, gen))
                self.kept[key + ("own",)] = found
            return self.kept[key + ("own",)]
        return self.kept[key], own

    def run(self, backends, variants):
        for variant in variants:
            if VARIANTS[variant][0] not in backends:
                continue
            try:
                wrong = self.check(variant)
            except Exception as why:  # an exception is a failure of this test only
                wrong = [f"{type(why).__name__}: {why}"]
            tap.result(f"{self.name} on {variant}", wrong)
        shutil.rmtree(self.folder)
