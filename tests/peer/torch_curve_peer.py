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


def optimizer(options, net):
    """PyTorch's arguments from the keys of the configuration; only these have other names."""
    options = {k: v for k, v in options.items() if k != "lr_scheduler"}
    cls = CLASSES[options.pop("type")]
    options["lr"] = options.pop("learning_rate")
    betas = options.pop("beta1", None), options.pop("beta2", None)
    if betas != (None, None):
        options["betas"] = betas
    if cls is O.AdamW:
        options.setdefault("weight_decay", 0)
    return cls([p for p in net.parameters() if p.requires_grad], **options)


def schedule(options, opt, steps):
    if options is None:
        return None
    if options["type"] == "cosine" and options.get("by") == "step":
        return O.lr_scheduler.CosineAnnealingLR(opt, steps)
    raise ValueError(f"no schedule {options}")


def loss_of(options):
    options = options if isinstance(options, dict) else {"function": options}
    weight = options.get("weight")

    def loss(y, t):
        w = None if weight is None else torch.tensor(weight, dtype=y.dtype)
        return F.cross_entropy(y, t, weight=w,
                               label_smoothing=options.get("label_smoothing", 0))
    return loss


def clip(config, net):
    if config.get("clip_norm"):
        torch.nn.utils.clip_grad_norm_(net.parameters(), config["clip_norm"])
    if config.get("clip_value"):
        torch.nn.utils.clip_grad_value_(net.parameters(), config["clip_value"])


def losses(config, top, weights, samples, batches, total):
    """The loss of each step in PyTorch; total: steps of the whole run."""
    kind = TYPES[config["precision"]]
    torch.set_default_dtype(kind)  # NAdam computes its product in this dtype
    net = keras_torch.read(bare(top)).to(kind).train()
    net.load({k: torch.from_numpy(a).to(kind) for k, a in weights.items()})
    opt = optimizer(config["optimizer"], net)
    rates = schedule(config["optimizer"].get("lr_scheduler"), opt, total)
    loss, seen = loss_of(config["loss"]), []
    for batch in batches:
        opt.zero_grad()
        value = 0.0
        for part in np.array_split(np.array(batch), config.get("accumulate", 1)):
            x = torch.from_numpy(samples.inputs[part]).to(kind)
            out = loss(net(x)[0], torch.from_numpy(samples.classes[part]))
            out = out * (len(part) / len(batch))
            out.backward()
            value += out.item()
        clip(config, net)
        opt.step()
        if rates is not None:
            rates.step()
        seen.append(value)
    return np.array(seen)
