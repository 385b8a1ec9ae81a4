# torch_io.py - read images with PyTorch's DataLoader: `dnn-bench io --against torch` runs
# it.  It prints a line of JSON when it is ready.  For each request on stdin (npy or png) it
# reads an epoch of images from that source and prints a line of JSON.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import argparse
import os
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from torch_common import about, reply

try:
    from PIL import Image
except ImportError:
    Image = None


def arguments():
    p = argparse.ArgumentParser(description="Time PyTorch's DataLoader.")
    p.add_argument("--npy", required=True, metavar="FILE", help="u8 images")
    p.add_argument("--png", metavar="DIR", help="directory to write them to as PNG files")
    p.add_argument("--pngs", type=int, default=512, help="number of PNG files")
    p.add_argument("--batch", type=int, default=64, help="samples per batch")
    p.add_argument("--workers", type=int, default=2, help="workers of the DataLoader")
    return p.parse_args()


def to_f32(image):
    return torch.from_numpy(image.astype(np.float32)) * (1 / 255)


class Mapped(Dataset):
    """Images of one memory-mapped array."""

    def __init__(self, path):
        self.images = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return to_f32(self.images[i]), i % 1000


class Files(Dataset):
    """Images of one PNG file each."""

    def __init__(self, folder, images):
        os.makedirs(folder, exist_ok=True)
        self.paths = []
        for i, image in enumerate(images):
            self.paths.append(os.path.join(folder, f"{i}.png"))
            Image.fromarray(np.asarray(image)).save(self.paths[-1], compress_level=1)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with Image.open(self.paths[i]) as image:
            return to_f32(np.asarray(image)), i % 1000


class Epochs:
    """A DataLoader with persistent workers."""

    def __init__(self, dataset, args):
        self.loader = DataLoader(dataset, batch_size=args.batch, shuffle=True,
                                 num_workers=args.workers,
                                 persistent_workers=args.workers > 0)
        self.run()  # starts the workers

    def run(self):
        start = time.perf_counter()
        samples = 0
        for images, _ in self.loader:
            samples += len(images)
        return time.perf_counter() - start, samples


def main():
    args = arguments()
    torch.set_num_threads(1)
    mapped = Mapped(args.npy)
    epochs = {"npy": Epochs(mapped, args)}
    if Image is not None and args.png and args.pngs > 0:
        epochs["png"] = Epochs(Files(args.png, mapped.images[:args.pngs]), args)
    reply(**about(), pngs=len(epochs["png"].loader.dataset) if "png" in epochs else 0)
    for line in sys.stdin:
        seconds, samples = epochs[line.strip()].run()
        reply(seconds=seconds, samples=samples)


if __name__ == "__main__":
    main()
