#!/usr/bin/env python3
# make1.py - the same as make.py for Keras 1 (Python 3.6: pip install tensorflow==1.4.0
# keras==1.2.2 "h5py<3" "numpy<1.17").  Usage: make1.py OUTPUT-DIRECTORY
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import h5py
import numpy as np
from keras import backend as K
from keras import layers as L
from keras.models import Model, Sequential
from keras.layers.advanced_activations import ELU, LeakyReLU, PReLU

BATCH = 2


def images():
    model = Sequential(name="images")
    model.add(
        L.Convolution2D(
            4, 3, 3, border_mode="same", input_shape=(9, 8, 2), name="same"
        )
    )
    model.add(L.BatchNormalization(name="bn"))
    model.add(L.Activation("relu", name="relu"))
    model.add(L.MaxPooling2D((3, 3), (2, 2), border_mode="same", name="pool"))
    model.add(L.ZeroPadding2D((1, 2), name="pad"))
    model.add(
        L.Convolution2D(
            3, 2, 2, subsample=(2, 2), bias=False, activation="tanh", name="stride"
        )
    )
    model.add(L.AveragePooling2D((2, 2), (1, 1), name="average"))
    model.add(LeakyReLU(0.2, name="leaky"))
    model.add(PReLU(name="prelu"))
    model.add(L.UpSampling2D((2, 2), name="up"))
    model.add(L.Cropping2D(((1, 0), (0, 1)), name="crop"))
    model.add(L.Dropout(0.5, name="drop"))
    model.add(L.Flatten(name="flat"))
    model.add(L.Dense(5, activation="hard_sigmoid", name="dense"))
    model.add(L.Dense(3, activation="softmax", name="head"))
    return model


def joined():
    a = L.Input((6,), name="left")
    b = L.Input((6,), name="right")
    shared = L.Dense(4, activation="tanh", name="shared")
    x, y = shared(a), shared(b)
    z = L.merge([x, y], mode="sum", name="sum")
    c = L.merge([x, y, z], mode="concat", name="concat")
    m = L.merge([x, y], mode="mul", name="mul")
    d = ELU(0.5, name="elu")(L.Dense(3, name="out")(c))
    return Model([a, b], [d, m], name="joined")


def other_ranks():
    a = L.Input((5, 6, 4, 2), name="volume")
    x = L.Convolution3D(3, 2, 3, 2, border_mode="same", name="conv3")(a)
    x = L.MaxPooling3D((2, 2, 2), name="pool3")(x)
    b = L.Input((7, 7, 3), name="image")
    y = L.SeparableConvolution2D(4, 3, 3, depth_multiplier=2, name="separable")(b)
    y = L.AtrousConvolution2D(3, 2, 2, atrous_rate=(2, 2), name="atrous")(y)
    y = L.GlobalAveragePooling2D(name="global")(y)
    c = L.Input((9, 2), name="signal")
    z = L.Convolution1D(4, 3, border_mode="same", name="conv1")(c)
    z = L.AtrousConvolution1D(3, 2, atrous_rate=2, name="atrous1")(z)
    z = L.GlobalMaxPooling1D(name="global1")(L.MaxPooling1D(2, name="pool1")(z))
    return Model([a, b, c], [x, y, z], name="other_ranks")


def randomize(model, rng):
    for layer in model.layers:
        values = []
        for value, w in zip(layer.get_weights(), layer.weights):
            name = w.name.split(":")[0]
            noise = 0.3 * rng.randn(*value.shape)
            if name.endswith("running_std"):
                noise = rng.uniform(0.5, 1.5, value.shape)
            elif name.endswith("gamma"):
                noise = 1 + noise
            values.append(noise.astype("float32"))
        layer.set_weights(values)


def main():
    for build in (images, joined, other_ranks):
        rng = np.random.RandomState(len(build.__name__))
        model = build()
        randomize(model, rng)
        path = os.path.join(sys.argv[1], "k1_" + build.__name__)
        with open(path + ".json", "w") as f:
            f.write(model.to_json() + "\n")
        model.save_weights(path + ".h5", overwrite=True)
        inputs = [
            rng.randn(*([BATCH] + [int(d) for d in K.int_shape(t)[1:]])).astype("float32")
            for t in model.inputs
        ]
        outputs = model.predict(inputs if len(inputs) > 1 else inputs[0])
        outputs = outputs if isinstance(outputs, list) else [outputs]
        with h5py.File(path + ".data.h5", "w", libver="latest") as out:
            for k, x in enumerate(inputs):
                out["input/%d" % k] = x
            for k, y in enumerate(outputs):
                out["output/%d" % k] = y
        print(build.__name__)


main()
