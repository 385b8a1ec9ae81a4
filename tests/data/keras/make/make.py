#!/usr/bin/env python3
# make.py - write the networks of networks.py with Keras: JSON, weights and results.
# Usage: make.py OUTPUT-DIRECTORY [NETWORK...]
#
# Run it once with Keras 2 (pip install tensorflow-cpu==2.15.1) and once with Keras 3
# (pip install keras tensorflow-cpu); each writes its own files, k2_* and k3_*.
#   NAME.json          model.to_json()
#   NAME.h5            model.save_weights() of Keras 2; model.save() of some, and of
#                      Keras 3
#   NAME.weights.h5    model.save_weights() of Keras 3 (and of Keras 2.15)
#   NAME.keras         model.save() of Keras 3
#   NAME.data.h5       input/N, output/N for inference; for a training step
#                      seed/N, the gradient of the outputs; train/N, the outputs;
#                      grad/LAYER/WEIGHT; after/LAYER/WEIGHT, the moving averages
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import h5py
import keras
import numpy as np
import tensorflow as tf

from networks import NETWORKS

MAJOR = int(keras.__version__.split(".")[0])


def leaves(model, prefix=""):
    """Every layer that is not a model, with its full name."""
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from leaves(layer, prefix + layer.name + "/")
        else:
            yield prefix + layer.name, layer


def weight_name(weight, layer):
    name = weight.name.split("/")[-1].split(":")[0]
    # Keras 3 has another name
    if name == "kernel" and type(layer).__name__.startswith("Depthwise"):
        return "depthwise_kernel"
    return name


def randomize(model, rng):
    for _, layer in leaves(model):
        for w in layer.weights:
            value = np.asarray(w)
            name = weight_name(w, layer)
            if value.dtype.kind != "f":
                continue  # the state of a random generator
            noise = rng.standard_normal(value.shape).astype("float32")
            if name == "moving_variance":
                value = rng.uniform(0.5, 1.5, value.shape)
            elif "kernel" in name:
                value = value + 0.05 * noise
            else:
                value = value + 0.2 * noise
            if name == "kernel" and getattr(layer, "kernel_constraint", None):
                value = np.abs(value)
            w.assign(value.astype("float32"))


def as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def shape_of(tensor):
    return [12 if d is None else d for d in list(tensor.shape)[1:]]


def train_step(model, inputs, rng, out):
    variables = [
        ("grad/%s/%s" % (name, weight_name(w, layer)), w)
        for name, layer in leaves(model)
        for w in layer.trainable_weights
    ]
    with tf.GradientTape() as tape:
        given = [tf.constant(x) for x in inputs]
        results = as_list(model(given if len(given) > 1 else given[0], training=True))
        seeds = [rng.standard_normal(y.shape).astype("float32") for y in results]
        loss = tf.add_n([tf.reduce_sum(y * s) for y, s in zip(results, seeds)])
    plain = [getattr(w, "value", w) if MAJOR > 2 else w for _, w in variables]
    gradients = tape.gradient(loss, plain)
    for k, (y, s) in enumerate(zip(results, seeds)):
        out["seed/%d" % k] = s
        out["train/%d" % k] = np.asarray(y)
    for (name, _), g in zip(variables, gradients):
        out[name] = np.asarray(g)
    for name, layer in leaves(model):
        for w in layer.weights:
            last = weight_name(w, layer)
            if last.startswith("moving_"):
                out["after/%s/%s" % (name, last)] = np.asarray(w)


def write_weights(model, path, form):
    if form == "h5" and MAJOR < 3 and model.name in ("outer", "merges", "sequential"):
        model.save(path + ".h5", include_optimizer=False)
    elif form == "h5" and MAJOR < 3:
        model.save_weights(path + ".h5")
    elif form == "weights.h5":
        model.save_weights(path + ".weights.h5")
    else:
        model.save(path + "." + form)


def make(directory, name, build, train, batch, weights):
    keras.backend.clear_session()
    seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
    rng = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    model = build(keras, keras.layers)
    randomize(model, rng)
    path = os.path.join(directory, "k%d_%s" % (MAJOR, name))
    with open(path + ".json", "w") as f:
        f.write(model.to_json() + "\n")
    for form in weights:
        write_weights(model, path, form)
    inputs = [
        rng.standard_normal([batch] + shape_of(t)).astype("float32")
        for t in model.inputs
    ]
    with h5py.File(path + ".data.h5", "w", libver="latest") as out:
        outputs = model(inputs if len(inputs) > 1 else inputs[0], training=False)
        for k, x in enumerate(inputs):
            out["input/%d" % k] = x
        for k, y in enumerate(as_list(outputs)):
            out["output/%d" % k] = np.asarray(y)
        if train:
            train_step(model, inputs, rng, out)


def main():
    directory, wanted = sys.argv[1], sys.argv[2:]
    for build, majors, train, batch, weights in NETWORKS:
        name = build.__name__
        if MAJOR in majors and (not wanted or name in wanted):
            make(directory, name, build, train, batch, weights[MAJOR])
            print(name, flush=True)


main()
