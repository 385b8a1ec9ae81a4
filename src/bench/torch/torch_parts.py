# torch_parts.py - Keras layer classes as PyTorch modules.
#
# Tensors are (batch, channels, space...), as in PyTorch.  Configs are Keras's, with axes
# numbered as (batch, space..., channels).  Each module lists its weights as `Array`s, which
# convert them from and to Keras's layout.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import math

import torch
import torch.nn.functional as F
from torch import nn

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
DECONV = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
MAX = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVERAGE = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
BATCH = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def to_last(x):
    return x.movedim(1, x.ndim - 1) if x.ndim > 2 else x


def to_first(x):
    return x.movedim(x.ndim - 1, 1) if x.ndim > 2 else x


def axis_of(axis, ndim):
    """The index of a Keras axis in PyTorch's order."""
    axis %= ndim
    if axis == 0 or ndim == 2:
        return axis
    return 1 if axis == ndim - 1 else axis + 1


def numbers(value, nd):
    return [value] * nd if isinstance(value, int) else \
        list(value) * nd if len(value) == 1 else list(value)


class Array:
    """A weight.  The tensor reshaped to `view`, then permuted by `perm`, is Keras's."""

    def __init__(self, name, owner, attr, perm=None, view=None, trainable=True,
                 fan=None):
        self.name, self.owner, self.attr = name, owner, attr
        self.perm, self.view, self.trainable, self.fan = perm, view, trainable, fan

    @property
    def tensor(self):
        return getattr(self.owner, self.attr)

    def keras(self, tensor=None):
        t = (self.tensor if tensor is None else tensor).detach()
        t = t if self.view is None else t.reshape(self.view)
        return t if self.perm is None else t.permute(self.perm)

    def load(self, value):
        if tuple(value.shape) != tuple(self.keras().shape):
            raise ValueError(f"{self.name} is {tuple(value.shape)}, "
                             f"must be {tuple(self.keras().shape)}")
        if self.perm is not None:
            value = value.permute([self.perm.index(i) for i in range(len(self.perm))])
        with torch.no_grad():
            self.tensor.copy_(value.reshape(self.tensor.shape))


# ---- activations ----

class Call(nn.Module):
    """A function as a module."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *x):
        return self.fn(*x)


def relu(cfg, inplace):
    top, slope = cfg.get("max_value"), cfg.get("negative_slope") or 0.0
    start = cfg.get("threshold") or 0.0
    if slope == 0 and start == 0 and top in (None, 6, 6.0):
        return nn.ReLU6(inplace) if top else nn.ReLU(inplace)
    if start == 0 and top is None:
        return nn.LeakyReLU(slope)

    def general(x):
        y = torch.where(x >= start, x, slope * (x - start))
        return y if top is None else y.clamp(max=top)
    return Call(general)


def softmax(cfg, log):
    axis = cfg.get("axis", -1)
    axis = axis[0] if isinstance(axis, list) else axis
    fn = F.log_softmax if log else F.softmax
    return Call(lambda x: fn(x, dim=axis_of(axis, x.ndim)))


def activation(spec, keras, inplace=False, cfg=None):
    """The module of a name or of the config of a Keras layer; None: linear."""
    if isinstance(spec, dict):
        inner = spec.get("config")
        if isinstance(inner, dict):
            return make_activation(spec["class_name"], inner, keras, inplace)
        spec = inner if isinstance(inner, str) else spec["class_name"]
    name = {"SiLU": "silu", "Tanh": "tanh"}.get(spec, spec)
    table = {
        None: None, "linear": None,
        "relu": lambda: nn.ReLU(inplace), "relu6": lambda: nn.ReLU6(inplace),
        "leaky_relu": lambda: nn.LeakyReLU(0.2),
        "sigmoid": nn.Sigmoid, "tanh": nn.Tanh,
        "softmax": lambda: softmax(cfg or {}, False),
        "log_softmax": lambda: softmax(cfg or {}, True),
        "log_softmax_v2": lambda: softmax(cfg or {}, True),
        "swish": nn.SiLU, "silu": nn.SiLU, "elu": nn.ELU, "selu": nn.SELU,
        "gelu": nn.GELU, "softplus": lambda: nn.Softplus(threshold=1000),
        "softsign": nn.Softsign, "mish": nn.Mish,
        # nn.Hardsigmoid rounds 1/6 to float.
        "hard_sigmoid": (lambda: Call(lambda x: F.relu6(x + 3) / 6)) if keras >= 3 else
        lambda: Call(lambda x: (0.2 * x + 0.5).clamp(0, 1)),
        "hard_swish": nn.Hardswish, "hard_silu": nn.Hardswish,
        "log_sigmoid": nn.LogSigmoid, "exponential": lambda: Call(torch.exp),
    }
    return table[name]() if table[name] else None


def make_activation(kind, cfg, keras, inplace):
    if kind == "Activation":
        return activation(cfg["activation"], keras, inplace, cfg) or nn.Identity()
    if kind == "ReLU":
        return relu(cfg, inplace)
    if kind == "LeakyReLU":
        slope = cfg.get("negative_slope", cfg.get("alpha", 0.3))
        return nn.LeakyReLU(slope)
    if kind == "ELU":
        return nn.ELU(cfg.get("alpha", 1.0))
    if kind in ("Softmax", "Log_Softmax", "LogSoftmax"):
        return softmax(cfg, kind != "Softmax")
    if kind in ("GELU", "Gelu"):
        return nn.GELU("tanh" if cfg.get("approximate") else "none")
    plain = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Swish": "swish", "SiLU": "swish",
             "SELU": "selu", "Selu": "selu", "Softplus": "softplus", "Mish": "mish",
             "Softsign": "softsign", "HardSigmoid": "hard_sigmoid",
             "Hard_Sigmoid": "hard_sigmoid", "HardSwish": "hard_swish",
             "HardSiLU": "hard_swish"}
    return activation(plain[kind], keras, inplace)


class PReLU(nn.Module):
    def __init__(self, cfg, x):
        super().__init__()
        shape = list(to_last(x).shape[1:])
        for axis in cfg.get("shared_axes") or []:
            shape[axis - 1] = 1
        order = [len(shape) - 1] + list(range(len(shape) - 1))
        back = list(range(1, len(shape))) + [0]
        if all(n == 1 for n in shape[:-1]):
            self.fn = nn.PReLU(shape[-1])
            self.arrays = [Array("alpha", self.fn, "weight", view=shape)]
        else:
            self.alpha = nn.Parameter(torch.zeros([shape[i] for i in order]))
            self.fn = None
            self.arrays = [Array("alpha", self, "alpha", perm=back)]

    def forward(self, x):
        return self.fn(x) if self.fn else torch.where(x > 0, x, self.alpha * x)


# ---- windows ----

def same(extent, size, stride, dilation):
    out = -(-extent // stride)
    total = max(0, (out - 1) * stride + dilation * (size - 1) + 1 - extent)
    return total // 2, total - total // 2


def window(cfg, nd, x, size, stride, dilation):
    """Padding on both sides of each axis."""
    how = cfg.get("padding", "valid")
    if how == "valid":
        return [(0, 0)] * nd
    if how == "same":
        return [same(x.shape[i + 2], size[i], stride[i], dilation[i])
                for i in range(nd)]
    if how == "causal":
        return [((size[0] - 1) * dilation[0], 0)]
    return [(n, n) for n in numbers(how, nd)]


def split(pads):
    """(padding of the module, padding for F.pad); only one of them is used."""
    if all(a == b for a, b in pads):
        return [a for a, _ in pads], None
    return [0] * len(pads), [n for pair in reversed(pads) for n in pair]


class Conv(nn.Module):
    """Conv, DepthwiseConv and SeparableConv."""

    def __init__(self, kind, cfg, x, keras):
        super().__init__()
        nd = x.ndim - 2
        cin = x.shape[1]
        size = numbers(cfg["kernel_size"], nd)
        stride = numbers(cfg.get("strides", 1), nd)
        dilation = numbers(cfg.get("dilation_rate", 1), nd)
        native, self.pad = split(window(cfg, nd, x, size, stride, dilation))
        bias = cfg.get("use_bias", True)
        full, many = kind == "Conv", cfg.get("depth_multiplier", 1)
        separable = kind == "SeparableConv"
        self.conv = CONV[nd](
            cin, cfg["filters"] if full else cin * many, size, stride, native, dilation,
            cfg.get("groups", 1) if full else cin, bias and not separable)
        self.point = CONV[nd](cin * many, cfg["filters"], 1, bias=bias) \
            if separable else None
        self.act = activation(cfg.get("activation"), keras, True)
        back = list(range(2, nd + 2)) + [1, 0]
        if full:
            self.arrays = [Array("kernel", self.conv, "weight", back, fan=True)]
        else:
            self.arrays = [Array("depthwise_kernel", self.conv, "weight",
                                 list(range(2, nd + 2)) + [0, 1],
                                 [cin, many] + size, fan=True)]
        if separable:
            self.arrays.append(
                Array("pointwise_kernel", self.point, "weight", back, fan=True))
        if bias:
            self.arrays.append(Array("bias", self.point or self.conv, "bias"))

    def forward(self, x):
        if self.pad:
            x = F.pad(x, self.pad)
        x = self.conv(x)
        if self.point:
            x = self.point(x)
        return self.act(x) if self.act else x


class ConvTranspose(nn.Module):
    def __init__(self, cfg, x, keras):
        super().__init__()
        nd = x.ndim - 2
        size = numbers(cfg["kernel_size"], nd)
        stride = numbers(cfg.get("strides", 1), nd)
        dilation = numbers(cfg.get("dilation_rate", 1), nd)
        more = cfg.get("output_padding")
        more = None if more is None else numbers(more, nd)
        how = cfg.get("padding", "valid")
        pad, extra, self.cut = [], [], []
        for i in range(nd):
            n, reach = x.shape[i + 2], (size[i] - 1) * dilation[i] + 1
            full = (n - 1) * stride[i] + reach
            if isinstance(how, str):
                if more is not None:
                    out = full - 2 * (reach // 2 if how == "same" else 0) + more[i]
                elif how == "same":
                    out = n * stride[i]
                else:
                    out = n * stride[i] + max(reach - stride[i], 0)
                before = max(0, full - out) // 2
            else:
                before = numbers(how, nd)[i]
                out = full - 2 * before + (more[i] if more else 0)
            after = full - out - before
            pad.append(before)
            extra.append(max(0, before - after))
            self.cut.append(max(0, after - before))
        bias = cfg.get("use_bias", True)
        self.conv = DECONV[nd](x.shape[1], cfg["filters"], size, stride, pad, extra,
                               bias=bias, dilation=dilation)
        self.act = activation(cfg.get("activation"), keras, True)
        back = list(range(2, nd + 2)) + [1, 0]
        self.arrays = [Array("kernel", self.conv, "weight", back, fan=True)]
        if bias:
            self.arrays.append(Array("bias", self.conv, "bias"))

    def forward(self, x):
        x = self.conv(x)
        if any(self.cut):
            for i, n in enumerate(self.cut):
                x = x.narrow(i + 2, 0, x.shape[i + 2] - n)
        return self.act(x) if self.act else x


class Pool(nn.Module):
    def __init__(self, kind, cfg, x):
        super().__init__()
        nd = x.ndim - 2
        size = numbers(cfg.get("pool_size", 2), nd)
        stride = numbers(cfg.get("strides") or size, nd)
        native, self.pad = split(window(cfg, nd, x, size, stride, [1] * nd))
        self.top = kind == "Max"
        self.pool = MAX[nd](size, stride, native) if self.top else \
            AVERAGE[nd](size, stride, native, count_include_pad=False)

    def forward(self, x):
        if self.pad is None:
            return self.pool(x)
        if self.top:
            return self.pool(F.pad(x, self.pad, value=-math.inf))
        real = self.pool(F.pad(torch.ones_like(x[:1, :1]), self.pad))
        return self.pool(F.pad(x, self.pad)) / real


# ---- norms ----

class BatchNorm(nn.Module):
    def __init__(self, cfg, x, frozen, keras):
        super().__init__()
        axis = cfg.get("axis", -1)
        axis = axis[0] if isinstance(axis, list) else axis
        self.axis = axis_of(axis, x.ndim)
        self.frozen = frozen
        self.fn = BATCH[x.ndim](x.shape[self.axis], cfg.get("epsilon", 1e-3),
                                1 - cfg.get("momentum", 0.99))
        # For images and volumes Keras 2 uses a fused op, whose moving average has the
        # unbiased variance, as in PyTorch; otherwise Keras uses the biased one.
        self.fn.unbiased = keras == 2 and x.ndim in (4, 5) and \
            axis % x.ndim in (1, x.ndim - 1)
        self.arrays = []
        for key, name, attr in ("scale", "gamma", "weight"), ("center", "beta", "bias"):
            if cfg.get(key, True):
                self.arrays.append(Array(name, self.fn, attr))
            else:
                getattr(self.fn, attr).requires_grad_(False)
        self.arrays += [Array("moving_mean", self.fn, "running_mean", trainable=False),
                        Array("moving_variance", self.fn, "running_var",
                              trainable=False)]

    def train(self, mode=True):
        return super().train(mode and not self.frozen)

    def forward(self, x):
        self.fn.count = x.numel() // x.shape[self.axis]
        if self.axis == 1:
            return self.fn(x)
        return self.fn(x.movedim(self.axis, 1)).movedim(1, self.axis)


class Norm(nn.Module):
    """Layer, group and instance normalization."""

    def __init__(self, kind, cfg, x):
        super().__init__()
        axes = cfg.get("axis", -1)
        axes = sorted(a % x.ndim for a in (axes if isinstance(axes, list) else [axes]))
        shape = [to_last(x).shape[a] for a in axes]
        self.epsilon = cfg.get("epsilon", 1e-3)
        affine = cfg.get("affine", True)
        self.gamma = nn.Parameter(torch.ones(shape)) \
            if affine and cfg.get("scale", True) else None
        self.beta = nn.Parameter(torch.zeros(shape)) \
            if affine and cfg.get("center", True) else None
        self.arrays = [Array(n, self, n) for n in ("gamma", "beta")
                       if getattr(self, n) is not None]
        self.axes = axes
        self.groups = None
        if kind != "Layer":
            groups = cfg.get("groups", 32) if kind == "Group" else -1
            self.groups = x.shape[1] if groups < 0 else groups

    def forward(self, x):
        if self.groups and self.gamma is not None:
            return F.group_norm(x, self.groups, self.gamma, self.beta, self.epsilon)
        if self.groups:
            y = F.group_norm(x, self.groups, eps=self.epsilon)
            return y if self.beta is None else \
                y + self.beta.view([-1] + [1] * (x.ndim - 2))
        x = to_last(x)
        if self.axes == list(range(x.ndim - len(self.axes), x.ndim)):
            y = F.layer_norm(x, [x.shape[a] for a in self.axes], self.gamma, self.beta,
                             self.epsilon)
            return to_first(y)
        wide = [x.shape[a] if a in self.axes else 1 for a in range(x.ndim)]
        mean = x.mean(self.axes, keepdim=True)
        y = (x - mean) * torch.rsqrt(
            x.var(self.axes, keepdim=True, unbiased=False) + self.epsilon)
        y = y if self.gamma is None else y * self.gamma.reshape(wide)
        return to_first(y if self.beta is None else y + self.beta.reshape(wide))
