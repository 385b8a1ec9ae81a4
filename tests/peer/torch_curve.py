# torch_curve.py - losses of the first steps of dnn-train against PyTorch: the same network,
# initial weights, samples, order and optimizer.
#
# In f32 only networks with smooth activations are compared.  With ReLU or max pooling, rounding
# can select the other side, in PyTorch as in the toolkit, and the curves diverge: these networks
# are compared in f64.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import sys
import tempfile

import numpy as np
import torch

from tap import finish, result
import keras_torch
import torch_curve_ours as ours
import torch_curve_peer as peer

STEPS = 50
LIMIT = {"f32": 1e-4, "f64": 1e-9}

CNN = {"zoo": "simplecnn", "base": 8, "dropout": 0, "classes": 10, "input": [14, 14, 1]}
UNET = {"zoo": "unet3d", "base": 4, "depth": 1, "classes": 3, "input": [16, 16, 16, 1]}
# name: (layers, smooth, dataset, batch size, epochs)
NETS = {"cnn": (CNN, True, "images.bp", 16, 2),
        "unet": (UNET, True, "volumes.bp", 4, 8),
        "relu cnn": (dict(CNN, base=2), False, "numbers.bp", 8, 1),
        "relu unet": (dict(UNET, base=2, input=[8, 8, 8, 1]), False, "small.bp", 2, 4)}


def smooth(top):
    """Replace every ReLU by swish and max pooling by average pooling."""
    for layer in top["config"]["layers"]:
        layer["class_name"] = layer["class_name"].replace("MaxPooling", "AveragePooling")
        if layer["class_name"] == "ReLU":
            layer["class_name"] = "Activation"
            layer["config"] = {"name": layer["config"]["name"], "activation": "swish"}
        elif layer["config"].get("activation") == "relu":
            layer["config"]["activation"] = "swish"
    return top


# ---- cases ----

OPTIMIZERS = [
    # every one that PyTorch has, with its options
    {"type": "SGD", "learning_rate": 0.05},
    {"type": "SGD", "learning_rate": 0.02, "momentum": 0.9, "dampening": 0.1},
    {"type": "SGD", "learning_rate": 0.01, "momentum": 0.9, "nesterov": True,
     "weight_decay": 0.01},
    {"type": "Adagrad", "learning_rate": 0.01},
    {"type": "Adagrad", "learning_rate": 0.01, "lr_decay": 0.05, "weight_decay": 0.01},
    {"type": "Adadelta", "learning_rate": 1},
    {"type": "Adadelta", "learning_rate": 0.5, "rho": 0.8, "weight_decay": 0.01},
    {"type": "RMSprop", "learning_rate": 0.001},
    {"type": "RMSprop", "learning_rate": 0.001, "centered": True, "alpha": 0.9},
    {"type": "RMSprop", "learning_rate": 0.001, "momentum": 0.5, "weight_decay": 0.01},
    {"type": "Adam", "learning_rate": 0.001},
    {"type": "Adam", "learning_rate": 0.001, "weight_decay": 0.01, "beta1": 0.8,
     "beta2": 0.99},
    {"type": "Adam", "learning_rate": 0.001, "amsgrad": True},
    {"type": "AdamW", "learning_rate": 0.001, "weight_decay": 0.1},
    {"type": "AdamW", "learning_rate": 0.001, "weight_decay": 0.1, "amsgrad": True},
    {"type": "NAdam", "learning_rate": 0.001},
    {"type": "NAdam", "learning_rate": 0.001, "weight_decay": 0.01,
     "momentum_decay": 0.02},
]
SGD = {"type": "SGD", "learning_rate": 0.02, "momentum": 0.9}
ADAM = {"type": "Adam", "learning_rate": 0.003}
WEIGHED = {"function": "cross_entropy", "label_smoothing": 0.1,
           "weight": [1, 2, 0.5, 1, 3, 1, 0.2, 1, 1, 4]}


def config(net, optimizer, **more):
    layers, _, data, batch, epochs = NETS[net]
    made = {"layers": f"{net}.json", "loss": "cross_entropy", "seed": 5,
            "precision": "f64" if net.startswith("relu") else "f32",
            "data": {"dataset": data, "batch_size": batch}, "num_epochs": epochs,
            "optimizer": optimizer}
    made["data"].update(more.pop("data", {}))
    return dict(made, **more)


def cases():
    """(name, network, configuration, ranks)"""
    def case(what, net, optimizer, ranks=1, **more):
        title = ", ".join([optimizer["type"], *(
            f"{k} {v}" for k, v in optimizer.items()
            if k not in ("type", "learning_rate", "lr_scheduler"))])
        return f"{net}: {title}{what}", net, config(net, optimizer, **more), ranks
    for optimizer in OPTIMIZERS:
        yield case("", "cnn", optimizer)
    cosine = dict(SGD, lr_scheduler={"type": "cosine", "by": "step"})
    yield case(", cosine schedule", "cnn", cosine)
    yield case(", clip_norm 1", "cnn", SGD, clip_norm=1)
    yield case(", clip_value 0.02", "cnn", SGD, clip_value=0.02)
    yield case(", label smoothing and class weights", "cnn", SGD, loss=WEIGHED)
    yield case(", not shuffled", "cnn", SGD, data={"shuffle": False})
    yield case(", accumulate 2", "cnn", ADAM, accumulate=2)
    yield case(", initial weights from PyTorch", "cnn", ADAM,
               checkpoints={"load": "first.h5"})
    yield case(", 2 ranks, label smoothing and class weights", "cnn", SGD, 2, loss=WEIGHED)
    yield case(", 3 ranks, deterministic", "cnn", ADAM, 3,
               deterministic=True)
    yield case("", "unet", SGD)
    yield case("", "unet", ADAM)
    yield case(", 2 ranks", "unet", ADAM, 2)
    yield case(", accumulate 2", "unet", SGD, accumulate=2)
    for kind in dict.fromkeys(o["type"] for o in OPTIMIZERS):
        yield case("", "relu cnn", [o for o in OPTIMIZERS if o["type"] == kind][-1])
    yield case(", 2 ranks, accumulate 2, clip_value 0.02", "relu cnn", SGD,
               2, accumulate=2, clip_value=0.02)
    yield case("", "relu unet", ADAM)


# ---- running them ----

class Networks:
    """Shared by all cases: networks, initial weights, samples."""

    def __init__(self):
        self.kept = {}

    def get(self, key, make):
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    @staticmethod
    def make(net):
        layers, is_smooth = NETS[net][:2]
        top = ours.network(layers, f"{net}.json")
        if is_smooth:
            top = smooth(top)
            with open(f"{net}.json", "w") as file:
                json.dump(top, file)
        return top

    def of(self, net, made):
        data = made["data"]["dataset"]
        top = self.get((net, "top"), lambda: self.make(net))
        if "checkpoints" in made:
            theirs = keras_torch.read(top).float()
            theirs.reset(11)
            weights = {k: v.numpy() for k, v in theirs.weights().items()}
            ours.write_keras(weights, made["checkpoints"]["load"])
        else:
            weights = self.get((net, "first"),
                               lambda: ours.first_weights(made, f"{net} first"))
        return top, weights, self.get(data, lambda: ours.Samples(data))


def apart(got, want):
    return np.max(np.abs(got - want) / np.abs(want)) if len(got) == len(want) else np.inf


def check(shared, net, made, name, ranks):
    """Errors, and the difference of the curves."""
    top, weights, samples = shared.of(net, made)
    total = -(-len(samples.classes) // made["data"]["batch_size"]) * made["num_epochs"]
    got = ours.losses(made, name, ranks, STEPS)
    want = peer.losses(made, top, weights, samples, ours.order(made, STEPS), total)
    far, limit, wrong = apart(got, want), LIMIT[made["precision"]], []
    if not far <= limit:
        wrong = [f"error {far:.1e}, limit {limit:.0e}; step, dnn-train, PyTorch:"]
        wrong += [f"{i + 1} {a:.9g} {b:.9g}" for i, (a, b) in enumerate(zip(got, want))
                  if not abs(a - b) <= limit * abs(b)]
    if not np.mean(want[-5:]) < 0.9 * np.mean(want[:5]):
        wrong.append(f"the loss did not decrease: {want[:5]} became {want[-5:]}")
    return wrong, f"{want[0]:.3f} to {np.mean(want[-5:]):.3f}, {far:.1e} apart"


def main():
    torch.set_num_threads(1)
    shared = Networks()
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        ours.make_images()
        ours.make_volumes(16, "volumes.bp")
        ours.make_volumes(8, "small.bp")
        for n, (what, net, made, ranks) in enumerate(cases()):
            if chosen not in what:
                continue
            try:
                wrong, output = check(shared, net, made, f"run{n}", ranks)
            except Exception as why:  # an exception is a failure of this test only
                wrong, output = [f"{type(why).__name__}: {why}"], "failed"
            result(f"{what}: {output}", wrong)
        os.chdir("/")
    finish()


if __name__ == "__main__":
    main()
