# torch_layers.py - every class of layer against PyTorch: outputs, gradients, weights
# carried over, moving averages; odd shapes, 1D to 3D, training and inference.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import sys

import torch

from tap import finish, result
from torch_compare import Case, listed

TOP = os.environ.get("srcdir", ".")
SPACE = {1: [9], 2: [7, 6], 3: [5, 6, 4]}
CASES = []


def layer(kind, name, cfg, *inputs, **call):
    return {"class_name": kind, "name": name, "config": dict(cfg, name=name),
            "inbound_nodes": [[[i, 0, 0, call] for i in inputs]] if inputs else []}


def functional(inputs, layers, outputs, keras="2.9.0"):
    first = [layer("InputLayer", n, {"batch_input_shape": [None] + s})
             for n, s in inputs.items()]
    return {"class_name": "Functional", "keras_version": keras,
            "config": {"name": "net", "layers": first + layers,
                       "input_layers": [[n, 0, 0] for n in inputs],
                       "output_layers": [[n, 0, 0] for n in outputs]}}


def add(name, shape, *chain, keras="2.9.0", **more):
    """A chain of (class, config) on one input."""
    layers, before = [], "x"
    for i, (kind, cfg) in enumerate(chain):
        layers.append(layer(kind, f"l{i}", cfg, before))
        before = f"l{i}"
    CASES.append((name, functional({"x": shape}, layers, [before], keras), more))


def one(kind, cfg, shape, keras="2.9.0", **more):
    text = json.dumps(cfg).replace('"', "")
    also = f" (Keras {keras[0]})" if keras[0] != "2" else ""
    add(f"{kind} {text} of {shape}{also}", shape, (kind, cfg), keras=keras, **more)


def convolutions():
    for nd, space in SPACE.items():
        even = [n + n % 2 for n in space]
        first = [3] + [1] * (nd - 1)
        for cfg in ({"kernel_size": 3, "padding": "same"},
                    {"kernel_size": 3, "use_bias": False},
                    {"kernel_size": 2, "padding": "same", "activation": "relu"},
                    {"kernel_size": 4, "strides": 2, "padding": "same"},
                    {"kernel_size": 3, "strides": 2, "padding": "same"},
                    {"kernel_size": 3, "dilation_rate": 2, "padding": "same"},
                    {"kernel_size": 1, "activation": "tanh"},
                    {"kernel_size": 1, "strides": 2, "use_bias": False},
                    {"kernel_size": first, "strides": [2] + [1] * (nd - 1)},
                    {"kernel_size": 3, "padding": 1, "activation": "softmax"},
                    {"kernel_size": 5, "strides": 3, "padding": "same"}):
            one(f"Conv{nd}D", dict(cfg, filters=5), space + [3])
        one(f"Conv{nd}D", {"filters": 4, "kernel_size": 3, "strides": 2,
                           "padding": "same"}, even + [3])
        one(f"Conv{nd}D", {"filters": 6, "kernel_size": 3, "groups": 2,
                           "padding": "same"}, space + [4])
        one(f"Conv{nd}D", {"filters": 16, "kernel_size": 3, "padding": "same",
                           "use_bias": False}, space + [16])
        for cfg in ({"kernel_size": 3, "padding": "same"},
                    {"kernel_size": 3, "padding": "same", "depth_multiplier": 2},
                    {"kernel_size": 3, "strides": 2, "use_bias": False},
                    {"kernel_size": 2, "padding": "same", "dilation_rate": 2,
                     "activation": "relu6"}):
            one(f"DepthwiseConv{nd}D", cfg, space + [3])
            one(f"SeparableConv{nd}D", dict(cfg, filters=5), space + [3])
    for more in ({}, {"dilation_rate": 2}, {"strides": 2, "activation": "relu"}):
        one("Conv1D", dict(more, filters=4, kernel_size=3, padding="causal"), [9, 3])


def transposed():
    for nd, space in SPACE.items():
        for cfg in ({"kernel_size": 2, "strides": 2, "padding": "same"},
                    {"kernel_size": 3, "strides": 2, "padding": "same"},
                    {"kernel_size": 4, "strides": 2, "padding": "same",
                     "use_bias": False},
                    {"kernel_size": 3, "strides": 2, "activation": "relu"},
                    {"kernel_size": 2, "strides": 3},
                    {"kernel_size": 3, "padding": "same"},
                    {"kernel_size": 3, "strides": 2, "padding": "same",
                     "output_padding": 1},
                    {"kernel_size": 3, "strides": 2, "padding": "same",
                     "output_padding": 0},
                    {"kernel_size": 3, "strides": 2, "output_padding": 1},
                    {"kernel_size": 3, "dilation_rate": 2, "padding": "same"},
                    {"kernel_size": 4, "strides": 2, "padding": 1},
                    {"kernel_size": 5, "strides": 3, "padding": "same"}):
            one(f"Conv{nd}DTranspose", dict(cfg, filters=4), space + [3])


def pools():
    for nd, space in SPACE.items():
        even = [n + n % 2 for n in space]
        for fn in "Max", "Average":
            for cfg in ({}, {"pool_size": 3, "strides": 2, "padding": "same"},
                        {"pool_size": 2, "padding": "same"},
                        {"pool_size": 3, "strides": 1, "padding": "same"},
                        {"pool_size": 2, "strides": 1, "padding": "same"},
                        {"pool_size": 3, "strides": 2, "padding": 1},
                        {"pool_size": [3] + [2] * (nd - 1), "strides": 1}):
                one(f"{fn}Pooling{nd}D", cfg, space + [3])
            one(f"{fn}Pooling{nd}D", {"pool_size": 3, "strides": 2, "padding": "same"},
                even + [3])
            for keep in False, True:
                one(f"Global{fn}Pooling{nd}D", {"keepdims": keep}, space + [3])


def norms():
    for shape in [6], [5, 6], [4, 5, 6], [3, 4, 2, 6]:
        one("BatchNormalization", {"epsilon": 1e-3}, shape, batch=5)
        one("LayerNormalization", {}, shape)
        one("GroupNormalization", {"groups": 2}, shape)
    four = [4, 5, 6]
    for cfg in ({"axis": 1}, {"axis": [3], "momentum": 0.9, "epsilon": 1.001e-5},
                {"scale": False}, {"center": False}, {"trainable": False},
                {"scale": False, "center": False}):
        one("BatchNormalization", cfg, four)
    one("BatchNormalization", {}, four, "3.4.1")
    one("BatchNormalization", {"axis": 2}, four)
    for cfg in ({"axis": [2, 3]}, {"axis": [1, 2, 3], "epsilon": 1e-6},
                {"axis": [1, 3]}, {"scale": False}, {"center": False}):
        one("LayerNormalization", cfg, four)
    for cfg in ({"groups": 1}, {"groups": -1}, {"groups": 3, "scale": False}):
        one("GroupNormalization", cfg, four)
    for cfg in ({}, {"epsilon": 1e-5}, {"affine": False}, {"center": False}):
        one("InstanceNormalization", cfg, four)
    one("InstanceNormalization", {}, [3, 4, 2, 6])
    CASES.append(("BatchNormalization called with training=False", functional(
        {"x": four}, [layer("Conv2D", "c", {"filters": 3, "kernel_size": 1}, "x"),
                      layer("BatchNormalization", "b", {}, "c", training=False)],
        ["b"]), {}))


def activations():
    names = ("relu relu6 leaky_relu sigmoid tanh softmax log_softmax swish silu "
             "elu selu gelu softplus softsign hard_sigmoid mish exponential").split()
    shape = [5, 4]
    for keras in "2.9.0", "3.4.1":
        for name in names + ["hard_silu", "log_sigmoid"] * (keras[0] == "3"):
            one("Activation", {"activation": name}, shape, keras)
        for kind in ("Sigmoid Tanh Swish SELU Softplus Softsign HardSigmoid HardSwish "
                     "Mish").split():
            one(kind, {}, shape, keras)
    add("Activation linear", shape, ("Dense", {"units": 3}),
        ("Activation", {"activation": "linear"}))
    for cfg in ({}, {"max_value": 0.9}, {"max_value": 6.0},
                {"negative_slope": 0.2}, {"threshold": 0.5},
                {"max_value": 1.0, "negative_slope": 0.1, "threshold": 0.3}):
        one("ReLU", cfg, shape)
    for kind, key in (("LeakyReLU", "alpha"), ("ELU", "alpha"),
                      ("LeakyReLU", "negative_slope")):
        one(kind, {key: 0.15}, shape)
    one("LeakyReLU", {}, shape)
    one("GELU", {"approximate": True}, shape)
    one("GELU", {}, shape)
    for kind in "Softmax", "Log_Softmax":
        one(kind, {}, shape)
        one(kind, {"axis": 1}, [3, 5, 4])
        one(kind, {"axis": [2]}, [3, 5, 4])
    for cfg in ({}, {"shared_axes": [1, 2]}, {"shared_axes": [1]}):
        one("PReLU", cfg, [3, 5, 4])
    one("PReLU", {}, [6])
    one("Dense", {"units": 4, "activation": {
        "module": "keras.layers", "class_name": "ReLU", "registered_name": None,
        "config": {"name": "r", "max_value": 1.0}}}, [5], "3.4.1")


def merges():
    shapes = {"a": [4, 3, 2], "b": [4, 3, 2], "c": [4, 3, 2]}
    for kind in "Add", "Multiply", "Average", "Maximum", "Minimum", "Concatenate":
        CASES.append((f"{kind} of three", functional(
            shapes, [layer(kind, "m", {}, *shapes)], ["m"]), {}))
    for kind in "Subtract", "Add", "Multiply", "Maximum":
        CASES.append((f"{kind} of two", functional(
            {"a": [4, 3], "b": [4, 3]}, [layer(kind, "m", {}, "a", "b")], ["m"]), {}))
    for other in [4, 1, 1], [1, 1, 2], [2], [3, 2]:
        for kind in "Add", "Multiply", "Subtract":
            CASES.append((f"{kind} of [4, 3, 2] and {other}", functional(
                {"a": [4, 3, 2], "b": other}, [layer(kind, "m", {}, "a", "b")], ["m"]),
                {}))
    for axis in 1, 2, -1:
        CASES.append((f"Concatenate along {axis}", functional(
            {"a": [4, 3, 2], "b": [4, 3, 2]},
            [layer("Concatenate", "m", {"axis": axis}, "a", "b")], ["m"]), {}))
    for mode in "sum", "mul", "ave", "max", "concat":
        CASES.append((f"Merge by {mode} (Keras 1)", functional(
            {"a": [4, 3], "b": [4, 3]},
            [layer("Merge", "m", {"mode": mode, "concat_axis": -1}, "a", "b")], ["m"],
            "1.2.2"), {}))


def shapes():
    one("Dense", {"units": 5}, [7])
    one("Dense", {"units": 5, "use_bias": False, "activation": "softmax"}, [4, 7])
    one("Dense", {"units": 3, "activation": "sigmoid"}, [3, 4, 7])
    one("Flatten", {}, [3, 4, 2])
    one("Reshape", {"target_shape": [6, 4]}, [3, 4, 2])
    one("Reshape", {"target_shape": [2, -1, 2]}, [3, 4, 2])
    one("Reshape", {"target_shape": [24]}, [3, 4, 2])
    one("Permute", {"dims": [2, 1, 3]}, [3, 4, 2])
    one("Permute", {"dims": [3, 1, 2]}, [3, 4, 2])
    one("Permute", {"dims": [2, 1]}, [3, 4])
    for nd, space in SPACE.items():
        for how in ("nearest", "bilinear")[:2 if nd > 1 else 1]:
            for size in 2, 3, [3, 1, 2][:nd]:
                one(f"UpSampling{nd}D", {"size": size, "interpolation": how},
                    space + [2])
        sides = [[1, 0], [2, 1], [0, 3]][:nd]
        for value in 1, sides[0] if nd == 1 else sides:
            one(f"ZeroPadding{nd}D", {"padding": value}, space + [2])
            one(f"Cropping{nd}D", {"cropping": value}, space + [2])
        add(f"ZeroPadding{nd}D before a valid convolution", space + [2],
            (f"ZeroPadding{nd}D", {"padding": 1}),
            (f"Conv{nd}D", {"filters": 3, "kernel_size": 3, "strides": 2}))
    one("UpSampling1D", {"size": 3, "interpolation": "linear"}, [5, 2])
    one("UpSampling3D", {"size": 2, "interpolation": "trilinear"}, [3, 4, 2, 2])
    one("CenterCrop", {"height": 4, "width": 3}, [7, 6, 2])
    one("Rescaling", {"scale": 0.5, "offset": -1.0}, [4, 3])
    for shape in [5], [4, 5], [3, 2, 5]:
        one("LayerScale", {"init_values": 0.5, "projection_dim": 5}, shape)
    CASES.append(("CustomScaleLayer", functional(
        {"a": [4, 3], "b": [4, 3]},
        [layer("CustomScaleLayer", "m", {"scale": 0.17}, "a", "b")], ["m"]), {}))
    one("Rescaling", {"scale": [0.5, 2.0, 3.0], "offset": [1.0, 0.0, -1.0]}, [4, 5, 3])
    for back in False, True:
        one("Normalization", {"axis": [-1], "mean": [0.5, 1.0], "variance": [4.0, 0.25],
                              "invert": back}, [3, 4, 2])


def noises():
    """PyTorch has other random numbers: compared only in cases without randomness."""
    for kind, shape in (("Dropout", [4]), ("SpatialDropout1D", [5, 4]),
                        ("SpatialDropout2D", [3, 5, 4]),
                        ("SpatialDropout3D", [2, 3, 5, 4]), ("GaussianDropout", [4]),
                        ("AlphaDropout", [4]), ("GaussianNoise", [4]),
                        ("StochasticDepth", [3, 4])):
        key = {"GaussianNoise": "stddev", "StochasticDepth": "drop_path_rate"}.get(
            kind, "rate")
        for amount, modes in (0.0, (True, False)), (0.4, (False,)):
            add(f"{kind} of {amount}", shape, ("Dense", {"units": 3}),
                (kind, {key: amount}), modes=modes)


def penalties():
    """Penalties of activations: the mean over the batch."""
    one("ActivityRegularization", {"l1": 0.1, "l2": 0.2}, [4, 3])
    for reg in ({"class_name": "L1", "config": {"l1": 0.1}},
                {"class_name": "L1L2", "config": {"l1": 0.1, "l2": 0.3}}):
        one("Dense", {"units": 3, "activity_regularizer": reg, "activation": "tanh"},
            [5])


def structures():
    dense = [layer("Dense", "d", {"units": 6, "activation": "tanh"}, "x")]
    dense[0]["inbound_nodes"].append([["d", 0, 0, {}]])
    CASES.append(("a layer used twice", {
        "class_name": "Functional", "keras_version": "2.9.0", "config": {
            "name": "net", "layers": [
                layer("InputLayer", "x", {"batch_input_shape": [None, 6]}), *dense],
            "input_layers": [["x", 0, 0]],
            "output_layers": [["d", 0, 0], ["d", 1, 0]]}}, {}))
    inner = functional({"i": [6]}, [layer("Dense", "d", {"units": 6}, "i")], ["d"])
    # Keras counts calls of an inner model from 1: call 0 is its construction.
    for base, how in (0, "from 0"), (1, "as Keras counts"):
        inner = dict(inner, name="inner", inbound_nodes=[
            [["x", 0, 0, {}]], [["inner", base, 0, {}]]])
        inner["config"]["name"] = "inner"
        outer = functional({"x": [6]}, [inner], ["x"])
        outer["config"]["output_layers"] = [["inner", base + 1, 0]]
        CASES.append((f"a model in a model, used twice, {how}", outer, {}))
    outer = json.loads(json.dumps(outer))
    outer["keras_version"] = "3.4.1"
    outer["config"]["layers"][1]["inbound_nodes"][1] = [["inner", 0, 0, {}]]
    CASES.append(("a model in a model, used twice, as Keras 3 counts", outer, {}))
    CASES.append(("frozen convolution before a trained one", functional(
        {"x": [5, 5, 2]}, [
            layer("Conv2D", "a", {"filters": 3, "kernel_size": 3, "trainable": False},
                  "x"),
            layer("BatchNormalization", "b", {}, "a"),
            layer("Activation", "r", {"activation": "relu"}, "b"),
            layer("Conv2D", "c", {"filters": 2, "kernel_size": 1}, "r")], ["c", "r"]),
        {}))
    CASES.append(("several inputs and outputs", functional(
        {"x": [6, 6, 2], "y": [6, 6, 3]}, [
            layer("Concatenate", "j", {"axis": -1}, "x", "y"),
            layer("Conv2D", "c", {"filters": 4, "kernel_size": 3, "padding": "same"},
                  "j"),
            layer("ReLU", "r", {}, "c"), layer("MaxPooling2D", "p", {}, "r"),
            layer("UpSampling2D", "u", {}, "p"), layer("Add", "s", {}, "u", "r"),
            layer("GlobalAveragePooling2D", "g", {}, "s"),
            layer("Dense", "d", {"units": 3, "activation": "softmax"}, "g")],
        ["d", "s"]), {}))
    CASES.append(("a plain list of layers", [
        {"class_name": "Conv1D", "config": {
            "filters": 3, "kernel_size": 3, "batch_input_shape": [None, 8, 2]}},
        {"class_name": "Flatten", "config": {}},
        {"class_name": "Dense", "config": {"units": 2}}], {}))
    for name in ("keras2_functional keras2_sequential keras3_functional "
                 "keras3_sequential").split():
        with open(f"{TOP}/tests/data/keras/{name}.json") as file:
            top = json.load(file)
        CASES.append((f"tests/data/keras/{name}.json", top, {"modes": (False,)}))


def used(top):
    """Classes of a network, inner ones too."""
    if isinstance(top, list):
        return set().union(*map(used, top)) if top else set()
    if not isinstance(top, dict):
        return set()
    found = {top["class_name"]} if isinstance(top.get("class_name"), str) else set()
    return found.union(*map(used, top.values())) if top else found


def main():
    torch.set_num_threads(1)
    there = listed()
    for group in (convolutions, transposed, pools, norms, activations, merges, shapes,
                  noises, penalties, structures):
        group()
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    for seed, (name, top, more) in enumerate(CASES):
        if chosen in name:
            try:
                Case(name, top, seed=seed + 1, **more).run(
                    there["backend"], ("ref", "ref, fused", "cpu"))
            except Exception as why:  # a layer that cannot be built in PyTorch is a failure
                result(name, [f"{type(why).__name__}: {why}"])
    if not chosen:
        result("every class of layer has been compared",
               sorted(set(there["layer"]) - used([top for _, top, _ in CASES])))
    finish()


if __name__ == "__main__":
    main()
