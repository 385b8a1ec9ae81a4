# torch_infer.py - time the inference of a Keras network in PyTorch or in ONNX Runtime:
# `dnn-bench infer --against` runs it.
#
# The directory has the network (net.json), its weights (net.weights.h5), and what dnn-toolkit
# got and computed: input0.f32, output0.f32, ..., channels last.  It prints a line of JSON when
# it is ready, and one for each request on stdin:
#   run MODE           one inference: {"seconds": S}; MODE: eager, compile or session
#   compare MODE       the largest difference of an output, relative to the largest magnitude
#                      in it: {"error": E}
#   compile SECONDS    torch.compile within this time: {"reason": null}, or why it is not
#                      available
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import argparse
import math
import os
import sys
import time


def arguments():
    p = argparse.ArgumentParser(description="Time the inference of a Keras network.")
    p.add_argument("--dir", required=True, help="directory of the files")
    p.add_argument("--batch", type=int, default=1, help="samples per inference")
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--with", dest="kind", required=True,
                   choices=["contiguous", "channels_last", "onnxruntime"],
                   help="PyTorch with this memory format, or ONNX Runtime")
    return p.parse_args()


ARGS = arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)  # before PyTorch is loaded

import numpy as np  # noqa: E402
import torch  # noqa: E402

import keras_torch  # noqa: E402
from torch_common import about, formatted, reply, within  # noqa: E402
from torch_parts import to_first, to_last  # noqa: E402


def array(name, i, shape):
    """An array of the directory, channels last."""
    flat = np.fromfile(os.path.join(ARGS.dir, f"{name}{i}.f32"), np.float32)
    return torch.from_numpy(flat).reshape(shape)


class Torch:
    def __init__(self, net, inputs, form):
        for p in net.parameters():
            p.data = formatted(p.data, form)
        self.inputs = [formatted(x, form) for x in inputs]
        self.call = {"eager": net}

    def run(self, mode):
        with torch.no_grad():
            return self.call[mode](*self.inputs)

    def compile(self, seconds):
        """Fold and pack constants, as dnn-toolkit does."""
        import torch._inductor.config
        torch._inductor.config.freezing = True
        self.call["compile"] = torch.compile(self.call["eager"], dynamic=False)
        return within(seconds, lambda: [self.run("compile") for _ in range(3)])


class Onnx:
    def __init__(self, net, inputs):
        import onnxruntime
        self.version = onnxruntime.__version__
        path = os.path.join(ARGS.dir, "net.onnx")
        names = [f"input{i}" for i in range(len(inputs))]
        torch.onnx.export(net, tuple(inputs), path, input_names=names, dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = ARGS.threads
        # Its threads shall not take the cores from the next program.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.inputs = {n: x.numpy() for n, x in zip(names, inputs)}

    def run(self, _):
        return self.session.run(None, self.inputs)


def error(outputs):
    worst = 0.0
    for i, y in enumerate(outputs):
        y = to_last(torch.as_tensor(y)).contiguous()
        ours = array("output", i, y.shape)
        worst = max(worst, ((y - ours).abs().max() / ours.abs().max()).item(),
                    key=lambda e: math.inf if math.isnan(e) else e)
    return worst if math.isfinite(worst) else 1e30


def main():
    torch.set_num_threads(ARGS.threads)
    net = keras_torch.read(os.path.join(ARGS.dir, "net.json"), ARGS.batch).eval()
    keras_torch.load_file(net, os.path.join(ARGS.dir, "net.weights.h5"))
    net.requires_grad_(False)
    inputs = [to_first(array("input", i, [ARGS.batch] + s[1:] + s[:1])).contiguous()
              for i, s in enumerate(net.input_shapes)]
    onnx = ARGS.kind == "onnxruntime"
    peer = Onnx(net, inputs) if onnx else Torch(net, inputs, ARGS.kind)

    def seconds(mode):
        start = time.perf_counter()
        peer.run(mode)
        return time.perf_counter() - start
    mode = "session" if onnx else "eager"
    seconds(mode)
    reply(**about(), onnxruntime=peer.version if onnx else "", seconds=seconds(mode))
    for line in sys.stdin:
        verb, word = line.split()
        if verb == "compile":
            reply(reason=peer.compile(int(word)))
        elif verb == "compare":
            reply(error=error(peer.run(word)))
        else:
            reply(seconds=seconds(word))


if __name__ == "__main__":
    main()
