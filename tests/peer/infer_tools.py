# infer_tools.py - runs dnn-infer and other commands for comparison with other programs.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import json
import os
import subprocess

import numpy as np

TOP = os.path.abspath(os.environ.get("top_builddir", "."))
LIMIT = 1e-5  # of the largest value


def run(*words):
    """Run a program of the build; returns its output."""
    done = subprocess.run([os.path.join(TOP, words[0]), *words[1:]], timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: status {done.returncode}: {done.stderr}")
    return done.stdout


def infer(*words, ranks=1):
    launch = [os.environ.get("MPIEXEC", "mpiexec"), "-n", str(ranks)] if ranks > 1 else []
    return run(*launch, os.path.join(TOP, "dnn-infer"), "-q", "--kernels", "heuristic",
               *words)


def write(path, what):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(what, file)


def random_network(where, text):
    """Random weights for a network of Keras JSON: model.json, model.weights.h5,
    model.keras and model.dnn in the directory `where`."""
    os.makedirs(where, exist_ok=True)
    with open(f"{where}/net.json", "w", encoding="utf-8") as file:
        file.write(text)
    run("tests/peer/keras_run", f"{where}/net.json", where)


def differs(name, got, want, limit=LIMIT):
    """What is wrong with an output, as a list."""
    if got.shape != want.shape:
        return [f"{name}: shape {got.shape}, not {want.shape}"]
    apart = np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30)
    return [] if apart <= limit else [f"{name}: apart by {apart:g} of the largest value"]
