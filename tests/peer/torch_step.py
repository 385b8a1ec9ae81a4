# torch_step.py - the same network in PyTorch, timed: what `dnn-bench step --against
# torch` starts.  One JSON line on stdout; or, with --interactive, one line when it is
# ready and one for each line on stdin: step, infer, memory, quit.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import argparse
import json
import os
import resource
import statistics
import sys
import time


def arguments():
    p = argparse.ArgumentParser(description="Time a Keras network in PyTorch.")
    p.add_argument("--layers", required=True, metavar="FILE.json", help="the network")
    p.add_argument("--batch", type=int, default=1, help="samples of one step")
    p.add_argument("--threads", type=int, default=0, help="0: as PyTorch would")
    p.add_argument("--reps", type=int, default=5, help="steps that are timed")
    p.add_argument("--warmup", type=int, default=2, help="steps before those")
    p.add_argument("--format", choices=["contiguous", "channels_last"],
                   default="contiguous", help="how data lies in memory")
    p.add_argument("--mode", choices=["train", "infer"], default="train",
                   help="a training step, or only forward")
    p.add_argument("--optimizer", choices=["adam"], default="adam", help="of training")
    p.add_argument("--loss", choices=["mse"], default="mse", help="of training")
    p.add_argument("--interactive", action="store_true",
                   help="do one repetition for each line that asks for it")
    return p.parse_args()


ARGS = arguments()
if ARGS.threads > 0:  # before PyTorch looks
    os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import keras_torch  # noqa: E402


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def say(**what):
    print(json.dumps(what), flush=True)


def formatted(x):
    """As the format says, where PyTorch has one for so many axes."""
    if ARGS.format == "contiguous" or x.ndim < 4:
        return x.contiguous()
    return x.contiguous(memory_format=torch.channels_last if x.ndim == 4
                        else torch.channels_last_3d)


class Step:
    def __init__(self):
        gen = torch.Generator().manual_seed(1)

        def random(shape):
            return formatted(torch.randn(shape, generator=gen))
        self.net = keras_torch.read(ARGS.layers, ARGS.batch)
        self.inputs = [random([ARGS.batch] + s) for s in self.net.input_shapes]
        for p in self.net.parameters():
            p.data = formatted(p.data)
        self.targets = [random(s) for s in self.net.output_shapes]
        train = [p for p in self.net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(train, lr=1e-3, fused=True)
        self.count = sum(a.tensor.numel() for a in self.net.arrays.values())

    def train(self):
        self.net.train()
        start = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        outputs = self.net(*self.inputs)
        loss = sum(F.mse_loss(y, t) for y, t in zip(outputs, self.targets))
        loss.backward()
        self.optimizer.step()
        return time.perf_counter() - start, loss.item()

    def infer(self):
        self.net.eval()
        start = time.perf_counter()
        with torch.inference_mode():
            self.net(*self.inputs)
        return time.perf_counter() - start, None


def serve(step, first):
    say(ready=True, format=ARGS.format, threads=torch.get_num_threads(),
        torch=torch.__version__, parameters=step.count, first_loss=first)
    for line in sys.stdin:
        word = line.strip()
        if word == "quit":
            break
        if word in ("step", "infer"):
            seconds, loss = step.train() if word == "step" else step.infer()
            say(seconds=seconds, **({} if loss is None else {"loss": loss}))
        elif word == "memory":
            say(peak_rss=peak(), base_rss=step.base)
        else:
            say(error=f"unknown word {word!r}: step, infer, memory or quit")


def main():
    if ARGS.threads > 0:
        torch.set_num_threads(ARGS.threads)
    base = peak()
    step = Step()
    step.base = base
    once = step.train if ARGS.mode == "train" else step.infer
    first = None
    for _ in range(ARGS.warmup):
        loss = once()[1]
        first = loss if first is None else first
    if ARGS.interactive:
        serve(step, first)
        return
    times, losses = zip(*(once() for _ in range(ARGS.reps)))
    say(seconds=statistics.median(times), times=times, mode=ARGS.mode,
        format=ARGS.format, threads=torch.get_num_threads(), torch=torch.__version__,
        parameters=step.count, first_loss=losses[0] if first is None else first,
        peak_rss=peak(), base_rss=base)


if __name__ == "__main__":
    main()
