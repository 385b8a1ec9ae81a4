# torch_zoo.py - every network of the zoo, with fewer filters, against PyTorch: training with
# our initial weights, inference with PyTorch's weights.
#
# ref computes in f64 and must agree up to rounding.  In f32 a ReLU of a deep network can flip
# near 0, in PyTorch as in the toolkit, and gradients jump: in f32 the limits apply to networks
# with a smooth activation instead.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import sys

import torch

from tap import finish
from torch_compare import Case, listed, net_run

SMALL = {
    "simplemlp": "base=16", "simplecnn": "dropout=0 input=[12,12,1]",
    "alexnet": "dropout=0 input=[67,67,3]", "vgg11": "input=[32,32,3]",
    "vgg16": "input=[32,32,3]", "vgg19": "input=[32,32,3]",
    "googlenet": "dropout=0 input=[64,64,3]", "inceptionv3": "input=[75,75,3]",
    "wideresnet28_10": "base=2 input=[16,16,3]", "resnet20": "base=4 input=[16,16,3]",
    "mobilenet": "dropout=0", "cifar10_model": "dropout=0 input=[12,12,3]",
    "alexnet_cifar10": "dropout=0 input=[32,32,3]", "vgg1": "input=[8,8,3]",
    "vgg3dobn": "dropout=0 input=[16,16,3]", "vgg11bn": "input=[32,32,3]",
    "vgg11bn_cifar10": "dropout=0 input=[32,32,3]",
    "googlenet_cifar10": "input=[16,16,3]", "resnet18_cifar10": "input=[16,16,3]",
    "resnet20_cifar10": "input=[16,16,3]", "densenet_cifar10": "input=[16,16,3]",
    "unet": "backbone=vgg16", "linknet": "backbone=resnet18",
    "fpn": "backbone=mobilenet", "pspnet": "backbone=resnet50 input=[96,96,3]",
    "unet2d": "base=4 depth=2 input=[16,12,1]",
    "unet3d": "base=4 depth=2 input=[8,8,12,1]",
}
UNETS = ("base=4 depth=2 norm=instance down=stride", "base=4 depth=1 norm=group",
         "base=3 depth=2 norm=layer up=upsample",
         "base=4 depth=1 norm=none classes=3 convolutions=3")


# These differ from a compared network only in sizes.
ALIKE = {
    "vgg2", "vgg3", "vgg3do", "vgg3do2", "vgg13", "vgg13bn", "vgg16bn", "vgg19bn",
    "vgg11_cifar10", "vgg16_cifar10", "vgg16bn_cifar10", "resnet10", "resnet101v15",
    "resnet152v15", "resnet101v2", "resnet152v2", "resnet34_cifar10",
    "resnet50_cifar10", "resnet101_cifar10", "resnet152_cifar10", "resnet32_cifar10",
    "resnet44_cifar10", "resnet56_cifar10", "resnet110_cifar10", "resnet1202_cifar10",
    "wideresnet", "densenet161", "densenet169", "densenet201", "densenet121_cifar10",
    "densenet161_cifar10", "densenet169_cifar10", "densenet201_cifar10",
    "mobilenetv1_cifar10",
}


def narrow(top, factor):
    """Fewer filters, 1/64 in the widest layers; the number of classes is kept."""
    for layer in top["config"]["layers"]:
        cfg = layer["config"]
        if layer["name"] in ("predictions", "conv_preds"):
            continue
        if "filters" in cfg:
            cfg["filters"] = max(2, cfg["filters"] // factor)
        if cfg.get("units", 0) > 1000:
            cfg["units"] //= 64
    return top


SMOOTH = ("googlenet", "inceptionv3", "resnet18", "resnet50", "densenet121",
          "mobilenetv2", "unet3d")


def smooth(top):
    """Replace every ReLU by swish."""
    top = json.loads(json.dumps(top))
    for layer in top["config"]["layers"]:
        if layer["class_name"] == "ReLU":
            layer["class_name"] = "Activation"
            layer["config"] = {"name": layer["name"], "activation": "swish"}
        elif layer["config"].get("activation") == "relu":
            layer["config"]["activation"] = "swish"
    return top


def networks(names):
    for name in names:
        if name in ALIKE:
            continue
        words = SMALL.get(name, "").split()
        if not any(w.startswith("input") for w in words) and name != "simplemlp":
            words.append("input=[64,64,3]")
        top = json.loads(net_run("zoo", name, "classes=10" if "unet" not in name
                                 else "classes=1", *words))
        factor = 16 if name in ("resnet101", "resnet152", "densenet121") else 8
        yield name, top if "base=" in " ".join(words) else narrow(top, factor)
    for words in UNETS:
        for name, shape in ("unet2d", "[12,8,2]"), ("unet3d", "[8,4,12,2]"):
            yield f"{name} {words}", json.loads(
                net_run("zoo", name, f"input={shape}", *words.split()))


def main():
    torch.set_num_threads(1)
    there = listed()
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    for seed, (name, top) in enumerate(networks(there["zoo"])):
        if chosen not in name:
            continue
        variants = ["ref, fused", "cpu"]
        if name in ("simplecnn", "resnet18", "mobilenet") or "unet" in name:
            variants += ["ref, recomputed", "cpu, recomputed"]
        Case(f"{name}, training", top, seed=seed + 1, ours=True, modes=(True,),
             kinks=True).run(there["backend"], variants)
        if name in SMOOTH:
            Case(f"{name} with swish, training", smooth(top), seed=seed + 1,
                 ours=True, modes=(True,)).run(there["backend"], ["cpu"])
        Case(f"{name}, inference", top, seed=seed + 1,
             modes=(False,)).run(there["backend"], variants[:2])
    finish()


if __name__ == "__main__":
    main()
