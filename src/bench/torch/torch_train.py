# torch_train.py - train a Keras network in PyTorch: `dnn-bench train --against torch` runs it.
# It reads the same network and samples as dnn-train, and prints a line of JSON for each step
# and epoch, as `dnn-train --json` does.  With --ranks it starts the other ranks itself and
# trains with DistributedDataParallel over gloo.  With --probe it prints how fast each
# memory format, reader and mode (eager, torch.compile) is, and stops.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import argparse
import gzip
import json
import os
import subprocess
import sys
import time


def arguments():
    p = argparse.ArgumentParser(description="Train a Keras network in PyTorch.")
    p.add_argument("--layers", required=True, metavar="FILE", help="the network")
    p.add_argument("--data", required=True, metavar="DIR",
                   help="IDX files named as those of MNIST, or train_x.npy, train_y.npy...")
    p.add_argument("--batch", type=int, default=4, help="global batch size")
    p.add_argument("--test-batch", type=int, default=8, help="batch size of validation")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--threads", type=int, default=1, help="per rank")
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--format", choices=["contiguous", "channels_last"],
                   default="contiguous", help="memory format")
    p.add_argument("--reader", choices=["tensors", "loader0", "loader1", "loader2"],
                   default="tensors", help="rows of tensors in memory, or a DataLoader "
                   "with this many workers")
    p.add_argument("--mode", choices=["eager", "compile"], default="eager")
    p.add_argument("--compile", type=int, default=0, metavar="SECONDS",
                   help="with --probe: try torch.compile, within this time")
    p.add_argument("--probe", type=int, default=0, metavar="N",
                   help="time each variant with N steps")
    p.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    p.add_argument("--meet", help=argparse.SUPPRESS)
    return p.parse_args()


ARGS = arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)  # before PyTorch is loaded


def bind():
    """Bind each rank to its own cores, if there are enough."""
    cpus = sorted(os.sched_getaffinity(0))
    if ARGS.ranks > 1 and len(cpus) >= ARGS.ranks * ARGS.threads:
        first = ARGS.rank * ARGS.threads
        os.sched_setaffinity(0, cpus[first:first + ARGS.threads])


bind()

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.utils.data import DataLoader, Subset, TensorDataset  # noqa: E402

import keras_torch  # noqa: E402
from torch_common import about, formatted, reply, within  # noqa: E402


def report(**fields):
    if ARGS.rank == 0:
        reply(**fields)


# ---- data ----

def idx(name):
    """Read an IDX file, gzip-compressed or not."""
    path = os.path.join(ARGS.data, name)
    with (gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb")) \
            as f:
        raw = f.read()
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def arrays(split):
    if os.path.exists(os.path.join(ARGS.data, f"{split}_x.npy")):
        return [np.load(os.path.join(ARGS.data, f"{split}_{k}.npy")) for k in "xy"]
    head = "t10k" if split == "test" else "train"
    return idx(f"{head}-images-idx3-ubyte")[..., None], idx(f"{head}-labels-idx1-ubyte")


def tensors(split):
    """Inputs (sample, channel, space...) as f32, targets as class numbers."""
    x, y = arrays(split)
    x = torch.from_numpy(np.moveaxis(x, -1, 1).astype(np.float32)) \
        * (1 / 255 if x.dtype == np.uint8 else 1)
    if y.ndim == x.ndim:  # masks have one channel
        y = y[..., 0]
    return x.contiguous(), torch.from_numpy(np.asarray(y).astype(np.int64))


def rows(order, batch):
    """The samples of this rank in each batch."""
    for at in range(0, len(order), batch):
        whole = order[at:at + batch]
        each = -(-len(whole) // ARGS.ranks)
        yield whole[ARGS.rank * each:(ARGS.rank + 1) * each]


class Reader:
    """Batches of the training samples: each iteration is an epoch."""

    def __init__(self, data, how, count=None):
        self.data, self.loader = data, None
        self.count = len(data[0]) if count is None else min(count, len(data[0]))
        if how == "tensors":
            return
        workers = int(how[-1])
        self.loader = DataLoader(Subset(TensorDataset(*data), range(self.count)),
                                 batch_size=ARGS.batch, shuffle=True, num_workers=workers,
                                 persistent_workers=workers > 0)

    def epoch(self, number):
        if self.loader is not None:
            yield from self.loader
            return
        gen = torch.Generator().manual_seed(number)
        for r in rows(torch.randperm(self.count, generator=gen), ARGS.batch):
            yield self.data[0][r], self.data[1][r]


# ---- the network ----

def read_network():
    """Read the network without the softmax at its end: the loss uses logits."""
    with open(ARGS.layers) as f:
        net = json.load(f)
    last = net["config"]["layers"][-1]["config"]
    assert last["activation"] == "softmax"
    last["activation"] = "linear"
    return keras_torch.read(net, ARGS.batch)


class Trainer:
    def __init__(self, form, mode):
        self.form = form
        torch.manual_seed(1)
        self.net = read_network()
        for p in self.net.parameters():
            p.data = formatted(p.data, form)
        learned = [p for p in self.net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(learned, lr=1e-3, fused=True)
        # With several ranks only eager mode is used: in compiled mode DDP cannot overlap
        # communication with the backward pass, which is a single graph.
        self.run = torch.compile(self.net, dynamic=False) if mode == "compile" else self.net
        self.eval = self.run
        if ARGS.ranks > 1:
            # Batch norm is not synchronised: PyTorch supports that on GPUs only.
            self.run = DistributedDataParallel(
                self.net, broadcast_buffers=False, gradient_as_bucket_view=True,
                static_graph=True)

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=ARGS.ranks == 1)
        loss = F.cross_entropy(self.run(formatted(x, self.form))[0], y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def validate(self, data):
        self.net.eval()
        sums = torch.zeros(3, dtype=torch.float64)
        with torch.no_grad():
            for r in rows(torch.arange(len(data[0])), ARGS.test_batch):
                if len(r) == 0:
                    continue
                x, y = data[0][r[0]:r[-1] + 1], data[1][r[0]:r[-1] + 1]
                out = self.eval(formatted(x, self.form))[0]
                points = y.numel()
                sums[0] += F.cross_entropy(out, y).item() * points
                sums[1] += (out.argmax(1) == y).sum().item()
                sums[2] += points
        self.net.train()
        if ARGS.ranks > 1:
            dist.all_reduce(sums)
        return {"val_loss": (sums[0] / sums[2]).item(),
                "val_accuracy": (sums[1] / sums[2]).item()}


def train():
    data, test = tensors("train"), tensors("test")
    trainer, reader, number = Trainer(ARGS.format, ARGS.mode), Reader(data, ARGS.reader), 0
    began = time.perf_counter()
    for epoch in range(1, ARGS.epochs + 1):
        total = torch.zeros(())
        for batch, (x, y) in enumerate(reader.epoch(epoch), 1):
            total += trainer.step(x, y)
            number += 1
            report(event="step", epoch=epoch, batch=batch, step=number,
                   seconds=time.perf_counter() - began, samples_per_second=None, comm=None)
        seen = trainer.validate(test)
        report(event="epoch", epoch=epoch, batch=batch, step=number,
               seconds=time.perf_counter() - began, samples_per_second=None, comm=None,
               loss=total.item() / batch, **seen)


def probe():
    """The first step of each variant is not timed: it includes setting up kernels."""
    data = tensors("train")
    readers = ["tensors"]
    if ARGS.ranks == 1 and len(data[0]) > 100:
        readers += ["loader0", "loader1", "loader2"]
    best = {}

    def measure(form, how, mode, trainer):
        reader = Reader(data, how, (ARGS.probe + 1) * ARGS.batch)
        samples, began = 0, None
        for x, y in reader.epoch(1):
            trainer.step(x, y)
            samples += 0 if began is None else len(x) * ARGS.ranks
            began = time.perf_counter() if began is None else began
        best[form, how] = samples / (time.perf_counter() - began)
        report(event="probe", format=form, reader=how, mode=mode,
               samples_per_second=best[form, how])

    for form in ("contiguous", "channels_last"):
        trainer = Trainer(form, "eager")
        for how in readers:
            measure(form, how, "eager", trainer)
    if ARGS.compile > 0 and ARGS.ranks == 1:
        form, how = max(best, key=best.get)
        reason = within(ARGS.compile,
                        lambda: measure(form, how, "compile", Trainer(form, "compile")))
        if reason is not None:
            report(event="probe", mode="compile", reason=reason)


def start_others():
    """Start the other ranks; they end when this process ends."""
    meet = f"{ARGS.data}/meet-{os.getpid()}"
    return meet, [subprocess.Popen([sys.executable] + sys.argv +
                                   ["--rank", str(r), "--meet", meet])
                  for r in range(1, ARGS.ranks)]


def main():
    torch.set_num_threads(ARGS.threads)
    others = []
    if ARGS.ranks > 1:
        meet = ARGS.meet
        if ARGS.rank == 0:
            meet, others = start_others()
        dist.init_process_group("gloo", init_method=f"file://{meet}", rank=ARGS.rank,
                                world_size=ARGS.ranks)
    report(event="about", **about())
    probe() if ARGS.probe > 0 else train()
    if ARGS.ranks > 1:
        dist.destroy_process_group()
    raise SystemExit(max([o.wait() for o in others], default=0))


if __name__ == "__main__":
    main()
