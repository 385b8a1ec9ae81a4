# torch_step.py - time a Keras network in PyTorch: `dnn-bench step --against torch` runs it.
#
# It prints a line of JSON when it is ready, and one for each request on stdin:
#   run train|infer eager|compile    one step: {"seconds": S}
#   compile train|infer SECONDS      torch.compile within this time: {"reason": null}, or
#                                    why it is not available
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import argparse
import os
import resource
import sys
import time


def arguments():
    p = argparse.ArgumentParser(description="Time a Keras network in PyTorch.")
    p.add_argument("--layers", required=True, metavar="FILE.json", help="the network")
    p.add_argument("--batch", type=int, default=1, help="samples per step")
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--format", choices=["contiguous", "channels_last"], required=True,
                   help="memory format")
    return p.parse_args()


ARGS = arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)  # before PyTorch is loaded

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import keras_torch  # noqa: E402
from torch_common import about, formatted, reply, within  # noqa: E402


class Step:
    def __init__(self):
        gen = torch.Generator().manual_seed(1)

        def random(shape):
            return formatted(torch.randn(shape, generator=gen), ARGS.format)
        self.net = keras_torch.read(ARGS.layers, ARGS.batch)
        self.inputs = [random([ARGS.batch] + s) for s in self.net.input_shapes]
        for p in self.net.parameters():
            p.data = formatted(p.data, ARGS.format)
        self.targets = [random(s) for s in self.net.output_shapes]
        train = [p for p in self.net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(train, lr=1e-3, fused=True)
        self.call = {("train", "eager"): self.loss, ("infer", "eager"): self.net}

    def loss(self):
        outputs = self.net(*self.inputs)
        return sum(F.mse_loss(y, t) for y, t in zip(outputs, self.targets))

    def train(self, mode):
        call = self.call["train", mode]
        self.net.train()
        start = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        loss = call()
        loss.backward()
        self.optimizer.step()
        return time.perf_counter() - start

    def infer(self, mode):
        call = self.call["infer", mode]
        self.net.eval()
        start = time.perf_counter()
        with torch.no_grad():
            call(*self.inputs)
        return time.perf_counter() - start

    def compile(self, what, seconds):
        """Fold and pack constants for inference, as dnn-toolkit does."""
        import torch._inductor.config
        torch._inductor.config.freezing = what == "infer"
        self.call[what, "compile"] = torch.compile(self.call[what, "eager"], dynamic=False)
        run = getattr(self, what)
        return within(seconds, lambda: [run("compile") for _ in range(3)])


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    torch.set_num_threads(ARGS.threads)
    before = peak()
    step = Step()
    step.train("eager")
    seconds = step.train("eager")
    reply(**about(), seconds=seconds, memory=peak() - before)
    for line in sys.stdin:
        verb, what, how = line.split()
        if verb == "compile":
            reply(reason=step.compile(what, int(how)))
        else:
            reply(seconds=getattr(step, what)(how))


if __name__ == "__main__":
    main()
