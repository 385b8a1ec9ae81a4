# infer_monai.py - dnn-infer in tiles against MONAI's sliding window inference in PyTorch, with
# the same weights: the same places, weights and padding give the same outputs, to 1e-5 of the
# largest value.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import os
import tempfile
import time

import numpy as np

import infer_tools
from tap import finish, result, unless
import sliding_window  # after tap, which sets its path

NETWORKS = {
    "volumes": ["unet3d", "base=4", "depth=2", "classes=3", "input=[16,12,20,1]"],
    "images": ["unet2d", "base=4", "depth=2", "classes=2", "input=[24,20,3]"],
}
# Odd extents; shorter than a tile on one axis; exactly a tile; shorter on all axes.
EXTENTS = {
    "volumes": [(37, 25, 41), (33, 7, 45), (16, 12, 20), (9, 31, 13)],
    "images": [(61, 47), (15, 83), (24, 20), (9, 11)],
}
CASES = [
    # network, keys of inference, ranks
    ("volumes", {"overlap": 0.25, "blend": "gaussian"}, 1),
    ("volumes", {"overlap": 0.5, "blend": "gaussian", "batch": 3}, 2),
    ("volumes", {"overlap": 0.6, "blend": "constant"}, 1),
    ("volumes", {"overlap": [0.6, 0.25, 0], "blend": "gaussian", "sigma": 0.3}, 1),
    ("volumes", {"overlap": 0.5, "blend": "constant", "tile": [8, 20, 12]}, 1),
    ("images", {"overlap": 0.25, "blend": "constant"}, 1),
    ("images", {"overlap": 0.5, "blend": "gaussian"}, 1),
    ("images", {"overlap": 0.6, "blend": "gaussian", "batch": 4, "tile": [32, 12]}, 2),
]
seconds = {"dnn-infer": 0.0, "MONAI": 0.0}


def make(name):
    """A network with random weights and samples for it, in directories."""
    infer_tools.random_network(name, infer_tools.run("tests/peer/net_run", "zoo",
                                                     *NETWORKS[name]))
    os.makedirs(f"{name}/in")
    rng = np.random.default_rng(3)
    channels = 3 if name == "images" else 1
    for i, extent in enumerate(EXTENTS[name]):
        x = rng.standard_normal(extent + (channels,), dtype=np.float32)
        np.save(f"{name}/in/s{i}.npy", x)
    return sliding_window.network(f"{name}/model.json", f"{name}/model.weights.h5", 1)


def ours(name, number, how, ranks):
    out = f"{name}/out{number}"
    infer_tools.write(f"{name}/{number}.json", {
        "layers": "model.json", "checkpoints": {"load": "model.weights.h5"},
        "dir": f"run{number}",
        "data": {"type": "numpy", "input_layout": "last", "test_input_path": "in",
                 "test_output_path": f"out{number}"},
        "inference": {"formats": "npy", "activation": "none", "tiles": True, **how}})
    start = time.perf_counter()
    infer_tools.infer(f"{name}/{number}.json", ranks=ranks)
    seconds["dnn-infer"] += time.perf_counter() - start
    return out


def compare(name, number, how, ranks, net):
    out = ours(name, number, how, ranks)
    tile = how.get("tile", [int(n) for n in
                            NETWORKS[name][-1][len("input=["):-1].split(",")[:-1]])
    wrong = []
    for i in range(len(EXTENTS[name])):
        want, took = sliding_window.infer(
            net, np.load(f"{name}/in/s{i}.npy"), tile, how.get("batch", 1),
            overlap=how["overlap"], mode=how["blend"], sigma_scale=how.get("sigma", 0.125))
        seconds["MONAI"] += took
        wrong += infer_tools.differs(f"s{i}.npy", np.load(f"{out}/s{i}.npy"), want)
    return wrong + unless(len(os.listdir(out)) == len(EXTENTS[name]), os.listdir(out))


def main():
    nets = {name: make(name) for name in NETWORKS}
    for number, (name, how, ranks) in enumerate(CASES):
        keys = ", ".join(f"{key} {value}" for key, value in how.items())
        result(f"{name}: {keys}, {ranks} ranks", compare(name, number, how, ranks, nets[name]))
    print("# seconds: dnn-infer %(dnn-infer).2f with its start, MONAI %(MONAI).2f without"
          % seconds)
    finish()


with tempfile.TemporaryDirectory() as directory:
    os.environ["XDG_CACHE_HOME"] = directory
    os.chdir(directory)
    main()
