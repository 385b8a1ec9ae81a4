# torch_schedule.py - learning rates of whole runs, step by step, against PyTorch's schedulers.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import subprocess
import warnings

import numpy as np
import torch
from torch.optim import lr_scheduler as L

from tap import finish, result, unless

RUN = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/schedule_run")
BASE, UPDATES, EPOCHS = 0.3, 7, 23
TOTAL = UPDATES * EPOCHS
LIMIT = 1e-12
# A loss that decreases, stays, decreases a little, increases, is NaN, decreases.
LOSS = [5, 4, 3, 3, 3, 2.9999, 2.9998, 2.9997, 2.5, 2.6, 2.7, 2.8, 2.9, float("nan"), 2.4,
        2.4, 2.4, 2.4, 2.4, 2.4, 2.4, 1.0, 1.0]
LOSS_UP = [-x for x in LOSS]


def after_epochs(make):
    """A scheduler with one step() per epoch."""
    def run(opt):
        s = make(opt)
        for _ in range(EPOCHS):
            for _ in range(UPDATES):
                yield opt.param_groups[0]["lr"]
            opt.step()
            s.step()
    return run


def each_update(make):
    def run(opt):
        s = make(opt)
        for t in range(TOTAL):
            yield opt.param_groups[0]["lr"]
            opt.step()
            if t + 1 < TOTAL:
                s.step()
    return run


def restarts(first, times, least):
    """A scheduler with fractional epochs."""
    def run(opt):
        s = L.CosineAnnealingWarmRestarts(opt, first, times, least)
        for t in range(TOTAL):
            s.step(t / UPDATES)
            yield opt.param_groups[0]["lr"]
    return run


def plateau(loss, **how):
    def run(opt):
        s = L.ReduceLROnPlateau(opt, eps=0, **how)
        for e in range(EPOCHS):
            for _ in range(UPDATES):
                yield opt.param_groups[0]["lr"]
            s.step(loss[e])
    return run


CASES = [
    ({"type": "Step", "gamma": 0.5, "step_size": 4},
     after_epochs(lambda o: L.StepLR(o, 4, 0.5)), None),
    ({"type": "Step", "step_size": 1}, after_epochs(lambda o: L.StepLR(o, 1)), None),
    ({"type": "MultiStep", "gamma": 0.2, "milestones": [3, 4, 11, 40]},
     after_epochs(lambda o: L.MultiStepLR(o, [3, 4, 11, 40], 0.2)), None),
    ({"type": "multistep", "milestones": [9, 5, 5]},
     after_epochs(lambda o: L.MultiStepLR(o, [9, 5, 5])), None),
    ({"type": "Exponential", "gamma": 0.93, "verbose": True},
     after_epochs(lambda o: L.ExponentialLR(o, 0.93)), None),
    ({"type": "Warmup", "num_epochs": 6, "start_factor": 0.1},
     after_epochs(lambda o: L.LinearLR(o, 0.1, 1, 6)), None),
    ({"type": "constant"}, after_epochs(lambda o: L.ConstantLR(o, 1)), None),
    ({"type": "constant", "factor": 0.25, "to": 5},
     after_epochs(lambda o: L.ConstantLR(o, 0.25, 5)), None),
    ({"type": "cosine"}, after_epochs(lambda o: L.CosineAnnealingLR(o, EPOCHS)), None),
    ({"type": "cosine", "T_max": EPOCHS, "minimum": 0.05, "by": "step"},
     each_update(lambda o: L.CosineAnnealingLR(o, TOTAL, 0.05)), None),
    ({"type": "cosine", "T_0": 4, "minimum": 0.01}, after_epochs(
        lambda o: L.CosineAnnealingWarmRestarts(o, 4, 1, 0.01)), None),
    ({"type": "cosine", "T_0": 3, "T_mult": 2, "minimum": 0.01}, after_epochs(
        lambda o: L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)), None),
    ({"type": "cosine", "T_0": 2, "T_mult": 3, "by": "step"}, restarts(2, 3, 0), None),
    ({"type": "polynomial"}, after_epochs(lambda o: L.PolynomialLR(o, EPOCHS)), None),
    ({"type": "polynomial", "epochs": 12, "power": 2.5},
     after_epochs(lambda o: L.PolynomialLR(o, 12, 2.5)), None),
    ({"type": "polynomial", "power": 0.9, "by": "step"},
     each_update(lambda o: L.PolynomialLR(o, TOTAL, 0.9)), None),
    ({"type": "one_cycle"}, each_update(
        lambda o: L.OneCycleLR(o, BASE, TOTAL, cycle_momentum=False)), None),
    ({"type": "one_cycle", "max_rate": 2, "pct_start": 0.45, "div_factor": 10,
      "final_div_factor": 100}, each_update(lambda o: L.OneCycleLR(
          o, 2, TOTAL, pct_start=0.45, div_factor=10, final_div_factor=100,
          cycle_momentum=False)), None),
    ({"type": "one_cycle", "anneal_strategy": "linear"}, each_update(
        lambda o: L.OneCycleLR(o, BASE, TOTAL, anneal_strategy="linear",
                               cycle_momentum=False)), None),
    ({"type": "plateau", "patience": 1}, plateau(LOSS, patience=1), LOSS),
    ({"type": "plateau", "patience": 0, "factor": 0.5, "cooldown": 2, "min_rate": 0.02},
     plateau(LOSS, patience=0, factor=0.5, cooldown=2, min_lr=0.02), LOSS),
    ({"type": "plateau", "patience": 2, "threshold": 0.2, "mode": "min"},
     plateau(LOSS, patience=2, threshold=0.2, mode="min"), LOSS),
    ({"type": "plateau", "patience": 1, "mode": "max", "threshold": 0},
     plateau(LOSS_UP, patience=1, mode="max", threshold=0), LOSS_UP),
    ([{"type": "Warmup", "num_epochs": 4, "start_factor": 0.25},
      {"type": "Exponential", "gamma": 0.9}],
     after_epochs(lambda o: L.ChainedScheduler(
         [L.LinearLR(o, 0.25, 1, 4), L.ExponentialLR(o, 0.9)])), None),
    ([{"type": "Warmup", "num_epochs": 5, "start_factor": 0.1, "to": 5},
      {"type": "cosine", "T_max": EPOCHS - 5, "from": 5}],
     after_epochs(lambda o: L.SequentialLR(
         o, [L.LinearLR(o, 0.1, 1, 5), L.CosineAnnealingLR(o, EPOCHS - 5)], [5])), None),
]


def ours(options, loss):
    call = [RUN, json.dumps(options), repr(BASE), str(UPDATES), str(EPOCHS)]
    done = subprocess.run(call + [repr(x) for x in loss or []], text=True,
                          stdout=subprocess.PIPE, check=True)
    return np.array([float(x) for x in done.stdout.split()])


def main():
    warnings.simplefilter("ignore")  # about schedulers without optimizer.step()
    for options, run, loss in CASES:
        opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=BASE)
        want, got = np.array(list(run(opt))), ours(options, loss)
        off = np.abs(got - want).max() / BASE if got.size == want.size else np.inf
        result(f"{json.dumps(options)}: {off:.1e} off",
               unless(off <= LIMIT, f"{got[::UPDATES]}\n{want[::UPDATES]}"))
    finish()


main()
