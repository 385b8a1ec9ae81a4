# torch_kinds.py - PyTorch modules for Keras layers: layers without weights, and the table of
# Keras classes.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import re

import torch
import torch.nn.functional as F
from torch import nn

from torch_parts import (Array, BatchNorm, Call, Conv, ConvTranspose, Norm, Pool, PReLU,
                         activation, axis_of, make_activation, numbers, to_first,
                         to_last)


# ---- layers without weights ----

def edges(value, nd):
    """Keras's padding or cropping: [(before, after)] of each axis."""
    if isinstance(value, int):
        return [(value, value)] * nd
    if nd == 1:
        return [(value[0], value[-1])]
    return [(n, n) if isinstance(n, int) else tuple(n) for n in value]


def zero_padding(cfg, x):
    pads = edges(cfg.get("padding", 1), x.ndim - 2)
    flat = [n for pair in reversed(pads) for n in pair]
    return Call(lambda x: F.pad(x, flat))


def crop(x, cuts):
    for i, (a, b) in enumerate(cuts):
        x = x.narrow(i + 2, a, x.shape[i + 2] - a - b)
    return x


def center_crop(cfg, x):
    rows, cols = x.shape[2] - cfg["height"], x.shape[3] - cfg["width"]
    cuts = [(n // 2, n - n // 2) for n in (rows, cols)]
    return Call(lambda x: crop(x, cuts))


def upsampling(cfg, x):
    nd = x.ndim - 2
    factor = numbers(cfg.get("size", 2), nd)
    if cfg.get("interpolation", "nearest") == "nearest":
        return nn.Upsample(scale_factor=tuple(map(float, factor)), mode="nearest")
    mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[nd]
    return nn.Upsample(scale_factor=tuple(map(float, factor)), mode=mode,
                       align_corners=False)


def global_pool(kind, cfg, x):
    axes, keep = list(range(2, x.ndim)), cfg.get("keepdims", False)
    fn = torch.mean if kind == "Average" else torch.amax
    return Call(lambda x: fn(x, axes, keepdim=keep))


class Constant(nn.Module):
    """y = a x + b with constant a and b."""

    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = a, b

    def forward(self, x):
        def shaped(v):
            v = torch.tensor(v, dtype=x.dtype, device=x.device).flatten()
            return v if v.numel() == 1 else v.view([1, -1] + [1] * (x.ndim - 2))
        return x * shaped(self.a) + shaped(self.b)


def normalization(cfg):
    mean = torch.tensor(cfg["mean"], dtype=torch.float64, device="cpu").flatten()
    var = torch.tensor(cfg["variance"], dtype=torch.float64, device="cpu").flatten()
    deviation = var.sqrt().clamp(min=1e-7)
    if cfg.get("invert"):
        return Constant(deviation.tolist(), mean.tolist())
    return Constant((1 / deviation).tolist(), (-mean / deviation).tolist())


class LayerScale(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gamma = nn.Parameter(torch.full([cfg["projection_dim"]],
                                             cfg.get("init_values", 1e-6)))
        self.arrays = [Array("gamma", self, "gamma")]

    def forward(self, x):
        return to_first(to_last(x) * self.gamma)


class Dense(nn.Module):
    def __init__(self, cfg, x, keras):
        super().__init__()
        self.fn = nn.Linear(to_last(x).shape[-1], cfg["units"],
                            cfg.get("use_bias", True))
        self.act = activation(cfg.get("activation"), keras, True)
        self.arrays = [Array("kernel", self.fn, "weight", [1, 0], fan=True)]
        if cfg.get("use_bias", True):
            self.arrays.append(Array("bias", self.fn, "bias"))

    def forward(self, x):
        x = to_first(self.fn(to_last(x)))
        return self.act(x) if self.act else x


def merge(kind, cfg):
    def widen(xs):
        most = max(x.ndim for x in xs)
        if all(x.ndim == most for x in xs):
            return xs
        xs = [to_last(x) for x in xs]
        return [to_first(x.reshape(x.shape[:1] + (1,) * (most - x.ndim) + x.shape[1:]))
                for x in xs]

    def fold(fn):
        def run(*xs):
            xs = widen(xs)
            y = xs[0]
            for x in xs[1:]:
                y = fn(y, x)
            return y
        return Call(run)
    if kind == "Concatenate":
        axis = cfg.get("axis", -1)
        axis = axis[0] if isinstance(axis, list) else axis
        return Call(lambda *xs: torch.cat(xs, axis_of(axis, xs[0].ndim)))
    if kind == "Average":
        add = fold(torch.add)
        return Call(lambda *xs: add(*xs) / len(xs))
    return fold({"Add": torch.add, "Subtract": torch.sub, "Multiply": torch.mul,
                 "Maximum": torch.maximum, "Minimum": torch.minimum}[kind])


class Penalty(nn.Module):
    """Activity regularizer: the identity; stores its penalty in loss."""

    def __init__(self, l1, l2, inner=None):
        super().__init__()
        self.l1, self.l2, self.inner = l1 or 0.0, l2 or 0.0, inner
        self.arrays = getattr(inner, "arrays", [])
        self.loss = None

    def forward(self, *x):
        y = self.inner(*x) if self.inner else x[0]
        self.loss = (self.l1 * y.abs().sum() + self.l2 * (y * y).sum()) / y.shape[0]
        return y


def make(kind, cfg, xs, keras, frozen, inplace):
    """Make the module of a layer, for inputs with the shapes of xs."""
    x = xs[0]
    conv = re.fullmatch(r"(Conv|DepthwiseConv|SeparableConv)(?:olution)?\dD", kind)
    if conv:
        return Conv(conv[1], cfg, x, keras)
    if re.fullmatch(r"Conv(olution)?\dDTranspose", kind):
        return ConvTranspose(cfg, x, keras)
    pool = re.fullmatch(r"(Global)?(Max|Average|Avg)Pool(ing)?\dD", kind)
    if pool:
        fn = "Max" if pool[2] == "Max" else "Average"
        return global_pool(fn, cfg, x) if pool[1] else Pool(fn, cfg, x)
    if re.fullmatch(r"(Spatial)?Dropout(\dD)?|Gaussian(Dropout|Noise)|AlphaDropout|"
                    r"StochasticDepth", kind):
        if kind == "Dropout":
            return nn.Dropout(cfg["rate"])
        return Call(lambda x: x)  # used only where it is the identity
    if re.fullmatch(r"(Layer|Group|Instance)Normalization", kind):
        return Norm(kind[:-13], cfg, x)
    if kind in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum",
                "Concatenate"):
        return merge(kind, cfg)
    if kind == "Merge":
        word = {"sum": "Add", "mul": "Multiply", "ave": "Average", "max": "Maximum",
                "concat": "Concatenate"}[cfg.get("mode", "sum")]
        return merge(word, {"axis": cfg.get("concat_axis", -1)})
    if kind[:-2] in ("UpSampling", "ZeroPadding", "Cropping"):
        if kind.startswith("Crop"):
            cuts = edges(cfg.get("cropping", 1), x.ndim - 2)
            return Call(lambda x: crop(x, cuts))
        return (upsampling if kind.startswith("Up") else zero_padding)(cfg, x)
    table = {
        "Dense": lambda: Dense(cfg, x, keras),
        "PReLU": lambda: PReLU(cfg, x),
        "LayerScale": lambda: LayerScale(cfg),
        "CustomScaleLayer": lambda: Call(lambda a, b: a + cfg["scale"] * b),
        "BatchNormalization": lambda: BatchNorm(cfg, x, frozen, keras),
        "ActivityRegularization": lambda: Penalty(cfg.get("l1"), cfg.get("l2")),
        "Flatten": lambda: Call(lambda x: to_last(x).flatten(1)),
        "Reshape": lambda: Call(lambda x: to_first(to_last(x).reshape(
            [x.shape[0]] + numbers(cfg["target_shape"], 1)))),
        "Permute": lambda: Call(lambda x: to_first(to_last(x).permute(
            [0] + numbers(cfg["dims"], 1)))),
        "CenterCrop": lambda: center_crop(cfg, x),
        "Rescaling": lambda: Constant(cfg["scale"], cfg.get("offset", 0.0)),
        "Normalization": lambda: normalization(cfg),
    }
    if kind in table:
        return table[kind]()
    return make_activation(kind, cfg, keras, inplace)
