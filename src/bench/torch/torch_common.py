# torch_common.py - functions shared by the scripts of `dnn-bench --against torch`.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import re
import signal
import sys

import torch


def reply(**fields):
    """Print one line of JSON on stdout."""
    print(json.dumps(fields), flush=True)


def about():
    """Version and properties of this PyTorch."""
    onednn = re.search(r"(?:MKL-DNN|oneDNN) v([\d.]+)", torch.__config__.show())
    return {"python": sys.executable, "torch": torch.__version__,
            "mkl": torch.backends.mkl.is_available(),
            "onednn": onednn.group(1) if onednn else "",
            "threads": torch.get_num_threads()}


def formatted(x, form):
    """x in this memory format, if PyTorch supports it for this number of axes."""
    if form == "contiguous" or x.ndim < 4:
        return x.contiguous()
    return x.contiguous(memory_format=torch.channels_last if x.ndim == 4
                        else torch.channels_last_3d)


def within(seconds, call):
    """Run call() with a time limit; returns None, or why it failed."""
    def too_slow(*_):
        raise TimeoutError(f"not compiled within {seconds} seconds")
    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(seconds)
    try:
        call()
        return None
    except Exception as e:  # any error of the compiler: eager mode is used
        lines = [s.strip() for s in str(e).splitlines()]
        named = [s for s in lines if s and not s.endswith("raised:")]
        return (named or [type(e).__name__])[0][:200]
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    reply(**about())
