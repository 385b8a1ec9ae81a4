# sliding_window.py - MONAI's sliding window inference of a network in PyTorch:
#
#   sliding_window.py --layers model.json --weights model.weights.h5 --roi 64,64,64
#       [--batch 1] [--overlap 0.25] [--mode constant|gaussian] [--sigma-scale 0.125]
#       [--threads 1] volume.npy output.npy
#
# The network is Keras JSON with weights of Keras 3, as dnn-train writes them.  Arrays are
# channels last, without the batch; an input without channels has one.  It prints the seconds
# of the inference.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import argparse
import os
import time


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
    p.add_argument("input", metavar="volume.npy")
    p.add_argument("output", metavar="output.npy")
    return p.parse_args()


ARGS = arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)  # before PyTorch is loaded

import numpy as np  # noqa: E402
import torch  # noqa: E402
from monai.inferers import sliding_window_inference  # noqa: E402

import tap  # noqa: E402,F401  its path has keras_torch
import keras_torch  # noqa: E402


def main():
    torch.set_num_threads(ARGS.threads)
    net = keras_torch.read(ARGS.layers, ARGS.batch).eval()
    keras_torch.load_file(net, ARGS.weights)
    x = torch.from_numpy(np.load(ARGS.input).astype(np.float32))
    if x.ndim == len(ARGS.roi):
        x = x[..., None]
    x = x.movedim(-1, 0)[None].contiguous()
    overlap = ARGS.overlap[0] if len(ARGS.overlap) == 1 else ARGS.overlap
    with torch.no_grad():
        start = time.perf_counter()
        y = sliding_window_inference(
            x, ARGS.roi, ARGS.batch, lambda windows: net(windows)[0], overlap=overlap,
            mode=ARGS.mode, sigma_scale=ARGS.sigma_scale)
        seconds = time.perf_counter() - start
    np.save(ARGS.output, y[0].movedim(0, -1).contiguous().numpy())
    print(f"{seconds:.6f}")


if __name__ == "__main__":
    main()
