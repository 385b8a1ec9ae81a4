# sliding_window.py - MONAI's sliding window inference of a network in PyTorch:
#
#   sliding_window.py --layers model.json --weights model.weights.h5 --roi 64,64,64
#       [--batch 1] [--overlap 0.25] [--mode constant|gaussian] [--sigma-scale 0.125]
#       [--threads 1] [--format contiguous|channels_last] [--reps 1] volume.npy output.npy
#
# The network is Keras JSON with weights of Keras 3, as dnn-train writes them.  Arrays are
# channels last, without the batch; an input without channels has one.  It prints the seconds
# of each inference.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import argparse
import time

import numpy as np
import torch
from monai.inferers import sliding_window_inference

import keras_torch
from torch_common import formatted


def numbers(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def arguments():
    p = argparse.ArgumentParser(description="MONAI's sliding window inference.")
    p.add_argument("--layers", required=True, metavar="FILE.json", help="the network")
    p.add_argument("--weights", required=True, metavar="FILE.weights.h5")
    p.add_argument("--roi", type=numbers(int), required=True, help="extents of a window")
    p.add_argument("--batch", type=int, default=1, help="windows per inference")
    p.add_argument("--overlap", type=numbers(float), default=[0.25],
                   help="share of a window; one for all axes, or one for each")
    p.add_argument("--mode", choices=["constant", "gaussian"], default="constant",
                   help="weights of a window's points")
    p.add_argument("--sigma-scale", type=float, default=0.125,
                   help="gaussian: standard deviation, as a share of the window")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--format", choices=["contiguous", "channels_last"], default="contiguous")
    p.add_argument("--reps", type=int, default=1, help="how often")
    p.add_argument("input", metavar="volume.npy")
    p.add_argument("output", metavar="output.npy")
    return p.parse_args()


def network(layers, weights, batch, form="contiguous"):
    """A function of windows: the first output of the network."""
    net = keras_torch.read(layers, batch).eval()
    keras_torch.load_file(net, weights)
    for p in net.parameters():
        p.data = formatted(p.data, form)
    return lambda windows: net(formatted(windows, form))[0]


def infer(net, x, roi, batch=1, **how):
    """The output for an array, channels last, and the seconds that it took."""
    x = torch.from_numpy(x.astype(np.float32)).movedim(-1, 0)[None].contiguous()
    with torch.no_grad():
        start = time.perf_counter()
        y = sliding_window_inference(x, roi, batch, net, **how)
        seconds = time.perf_counter() - start
    return y[0].movedim(0, -1).contiguous().numpy(), seconds


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    x = np.load(args.input)
    net = network(args.layers, args.weights, args.batch, args.format)
    for _ in range(args.reps):
        y, seconds = infer(net, x[..., None] if x.ndim == len(args.roi) else x, args.roi,
                           args.batch, mode=args.mode, sigma_scale=args.sigma_scale,
                           overlap=args.overlap[0] if len(args.overlap) == 1 else args.overlap)
        print(f"{seconds:.6f}", flush=True)
    np.save(args.output, y)


if __name__ == "__main__":
    main()
