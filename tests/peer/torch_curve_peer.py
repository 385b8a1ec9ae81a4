# torch_curve_peer.py - PyTorch's part of torch_curve.py: the same training, step by step.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import copy

import numpy as np
import torch
import torch.nn.functional as F

import keras_torch

O = torch.optim
CLASSES = {"SGD": O.SGD, "Adagrad": O.Adagrad, "Adadelta": O.Adadelta,
           "RMSprop": O.RMSprop, "Adam": O.Adam, "AdamW": O.AdamW, "NAdam": O.NAdam}
TYPES = {"f32": torch.float32, "f64": torch.float64}


def bare(top):
    """The network without its softmax: F.cross_entropy takes logits."""
    top = copy.deepcopy(top)
    last = top["config"]["layers"][-1]["config"]
    if last["activation"] != "softmax":
        raise ValueError(f"the network ends in {last['activation']}")
    last["activation"] = "linear"
    return top


def optimizer(asked, net):
    """PyTorch's arguments from the keys of the configuration; only these have other names."""
    asked = {k: v for k, v in asked.items() if k != "lr_scheduler"}
    cls = CLASSES[asked.pop("type")]
    asked["lr"] = asked.pop("learning_rate")
    betas = asked.pop("beta1", None), asked.pop("beta2", None)
    if betas != (None, None):
        asked["betas"] = betas
    if cls is O.AdamW:
        asked.setdefault("weight_decay", 0)
    return cls([p for p in net.parameters() if p.requires_grad], **asked)


def schedule(asked, opt, steps):
    if asked is None:
        return None
    if asked["type"] == "cosine" and asked.get("by") == "step":
        return O.lr_scheduler.CosineAnnealingLR(opt, steps)
    raise ValueError(f"no schedule {asked}")


def loss_of(asked):
    asked = asked if isinstance(asked, dict) else {"function": asked}
    weight = asked.get("weight")

    def loss(y, t):
        w = None if weight is None else torch.tensor(weight, dtype=y.dtype)
        return F.cross_entropy(y, t, weight=w,
                               label_smoothing=asked.get("label_smoothing", 0))
    return loss


def clip(job, net):
    if job.get("clip_norm"):
        torch.nn.utils.clip_grad_norm_(net.parameters(), job["clip_norm"])
    if job.get("clip_value"):
        torch.nn.utils.clip_grad_value_(net.parameters(), job["clip_value"])


def losses(job, top, weights, samples, batches, total):
    """The loss of each step in PyTorch; total: steps of the whole run."""
    kind = TYPES[job["precision"]]
    torch.set_default_dtype(kind)  # NAdam computes its product in this dtype
    net = keras_torch.read(bare(top)).to(kind).train()
    net.load({k: torch.from_numpy(a).to(kind) for k, a in weights.items()})
    opt = optimizer(job["optimizer"], net)
    rates = schedule(job["optimizer"].get("lr_scheduler"), opt, total)
    loss, seen = loss_of(job["loss"]), []
    for batch in batches:
        opt.zero_grad()
        value = 0.0
        for part in np.array_split(np.array(batch), job.get("accumulate", 1)):
            x = torch.from_numpy(samples.inputs[part]).to(kind)
            out = loss(net(x)[0], torch.from_numpy(samples.classes[part]))
            out = out * (len(part) / len(batch))
            out.backward()
            value += out.item()
        clip(job, net)
        opt.step()
        if rates is not None:
            rates.step()
        seen.append(value)
    return np.array(seen)
