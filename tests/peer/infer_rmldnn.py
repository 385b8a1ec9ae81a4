# infer_rmldnn.py - rmldnn's tutorials with small data and networks: dnn-train trains with a
# configuration like the tutorial's, and dnn-infer runs the tutorial's inference configuration.
# Its outputs are those of Keras with the trained weights, to 1e-5 of the largest value.
#
# Numbers of filters and the extents of volumes are smaller than in the tutorials; all keys, paths
# and the extents of pictures are theirs.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import glob
import os
import tempfile

import keras
import numpy as np
from PIL import Image

import rmldnn_files
from infer_tools import differs, infer, run, write
from rmldnn_files import array, conv, layer, network, picture, rng
from tap import finish, result, unless

STD = 0.003921568
CLASSES = ["barn", "lake", "road"]


# ---- networks in the JSON of Keras 2 ----

def functional(path, shape, *nodes):
    """Nodes are a layer and the names of its inputs; without names, the layer before it."""
    layers = [dict(layer("InputLayer", "input", batch_input_shape=[None] + shape), name="input",
                   inbound_nodes=[])]
    for node in nodes:
        node, names = node if isinstance(node, tuple) else (node, [layers[-1]["name"]])
        layers.append(dict(node, name=node["config"]["name"],
                           inbound_nodes=[[[name, 0, 0, {}] for name in names]]))
    write(path, {"class_name": "Functional", "keras_version": "2.9.0", "config": {
        "name": "net", "layers": layers, "input_layers": [["input", 0, 0]],
        "output_layers": [[layers[-1]["name"], 0, 0]]}})


def norm(name, axis, **more):
    return layer("BatchNormalization", name, axis=axis, momentum=0.9, epsilon=1e-3, **more)


def relu(name):
    return layer("Activation", name, activation="relu")


def digits_network():
    network("mnist_keras_net.json",
            conv(2, "c1", 8, batch_input_shape=[None, 28, 28, 1], activation="relu"),
            layer("MaxPooling2D", "p1", pool_size=[2, 2]), conv(2, "c2", 12, activation="relu"),
            layer("MaxPooling2D", "p2", pool_size=[2, 2]), layer("Flatten", "f"),
            layer("Dropout", "drop", rate=0.5),
            layer("Dense", "d", units=3, activation="log_softmax"))


def pets_network():
    separable = {"kernel_size": [3, 3], "padding": "same"}
    functional(
        "network_xception2D.json", [160, 160, 3], conv(2, "c1", 8, strides=[2, 2]),
        norm("n1", [3]), relu("r1"), layer("SeparableConv2D", "s1", filters=12, **separable),
        norm("n2", [3]), layer("MaxPooling2D", "p1", pool_size=[3, 3], strides=[2, 2], padding="same"),
        (conv(2, "res", 12, 1, strides=[2, 2]), ["r1"]), (layer("Add", "add"), ["p1", "res"]),
        relu("r2"), layer("Conv2DTranspose", "t1", filters=8, **separable), norm("n3", [3]),
        layer("UpSampling2D", "u1", size=[2, 2]), layer("UpSampling2D", "u2", size=[2, 2]),
        conv(2, "out", 3, activation="softmax"))


def tumour_network():
    functional(
        "layers_resunet.json", [256, 256, 3], layer("ZeroPadding2D", "z", padding=[[1, 1], [1, 1]]),
        layer("Conv2D", "c1", filters=4, kernel_size=[3, 3], padding="valid", use_bias=False),
        norm("n1", 3), relu("r1"), layer("MaxPooling2D", "p1", pool_size=[2, 2]),
        conv(2, "c2", 6), norm("n2", 3), relu("r2"),
        layer("UpSampling2D", "u1", size=[2, 2], interpolation="bilinear"),
        (layer("Concatenate", "cat", axis=3), ["u1", "r1"]), conv(2, "c3", 4), relu("r3"),
        conv(2, "out", 1, 1, activation="sigmoid"))


def land_network():
    frozen = {"trainable": False}
    functional(
        "layers_bn_trainable.json", [64, 64, 3],
        layer("ZeroPadding2D", "z", padding=[[3, 3], [3, 3]]),
        layer("Conv2D", "c1", filters=8, kernel_size=[7, 7], strides=[2, 2], **frozen),
        norm("n1", [3]), relu("r1"), conv(2, "c2", 12, strides=[2, 2], **frozen), norm("n2", [3]),
        relu("r2"), layer("GlobalAveragePooling2D", "g"),
        layer("Dense", "d", units=len(CLASSES), activation="log_softmax"))


def rock_network(path, extents):
    pad = [[1, 1]] * 3
    functional(
        path, extents + [1], layer("ZeroPadding3D", "z1", padding=pad),
        layer("Conv3D", "c1", filters=6, kernel_size=[3, 3, 3], padding="valid"), norm("n1", [4]),
        relu("r1"), layer("MaxPooling3D", "p1", pool_size=[2, 2, 2]),
        layer("ZeroPadding3D", "z2", padding=pad),
        layer("Conv3D", "c2", filters=8, kernel_size=[3, 3, 3], padding="valid"), norm("n2", [4]),
        relu("r2"), layer("UpSampling3D", "u", size=[2, 2, 2]),
        (layer("Concatenate", "cat", axis=-1), ["u", "r1"]),
        conv(3, "c3", 4, 1, activation="log_softmax"))


# ---- what Keras computes ----

def resized(x, extents):
    """Bilinear; the centres of the corner pixels are half a pixel from the edges."""
    for axis, n in enumerate(extents):
        m = x.shape[axis]
        at = np.clip((np.arange(n) + 0.5) * m / n - 0.5, 0, m - 1)
        low = at.astype(int)
        share = (at - low).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
        x = x.take(low, axis) * (1 - share) + x.take(np.minimum(low + 1, m - 1), axis) * share
    return x


def pixels(path, extents, scale=1.0):
    x = np.asarray(Image.open(path), np.float64) / 255
    return resized(x if x.ndim == 3 else x[..., None], extents) * scale


def trained(config, epoch):
    """Train; the network as Keras opens it.  Only the checkpoint of the last epoch is kept."""
    write("config_train.json", {"neural_network": {
        **config, "num_epochs": epoch, "checkpoints": {**config["checkpoints"], "interval": epoch}}})
    run("dnn-train", "-q", "--kernels", "heuristic", "--config=config_train.json")
    model = keras.models.load_model("run-config_train/model.keras")
    return lambda x: keras.ops.convert_to_numpy(
        model(np.asarray(x, np.float32), training=False))


def test(config, ranks=1):
    """The datasets of the file that dnn-infer writes with an inference configuration."""
    write("config_test.json", {"neural_network": config})
    infer("--config=config_test.json", ranks=ranks)
    data = config["data"]
    path = data.get("hdf5_outfile") or os.path.join(
        data.get("test_output_path", "run-config_test"), "output_1.h5")
    return rmldnn_files.datasets(path)


def compare_pictures(got, model, where, extents, scale=1.0):
    """Datasets are named as the files, with the channels first."""
    names = [os.path.relpath(path, where)
             for path in glob.glob(f"{where}/**/*.*", recursive=True)]
    wrong = unless(sorted(got) == sorted(names) and len(names) > 2, (sorted(got), sorted(names)))
    for name in names if not wrong else []:
        want = model(pixels(os.path.join(where, name), extents, scale)[None])[0]
        wrong += differs(name, got[name], np.moveaxis(want, -1, 0))
    return wrong


# ---- tutorials ----

def digits():
    digits_network()
    for label in "012":
        for i in range(2):
            picture(f"mnist/training/{label}/{i}.jpg", (28, 28))
            picture(f"mnist_digits/{label}_{i}.jpg", (28, 28))
    model = trained({
        "layers": "./mnist_keras_net.json", "checkpoints": {"save": "./mnist_model/"},
        "data": {"input_type": "images", "target_type": "labels", "input_path": "./mnist/training/",
                 "batch_size": 128, "grayscale": True, "preload": True},
        "optimizer": {"type": "Adam", "learning_rate": 1e-4}, "loss": {"function": "NLL"}}, 20)
    got = test({
        "layers": "./mnist_keras_net.json",
        "checkpoints": {"load": "./mnist_model/model_checkpoint_20.pt"},
        "data": {"input_type": "images", "test_input_path": "./mnist_digits/",
                 "test_output_path": "./mnist_predictions/", "grayscale": True}})
    result("MNIST: grey JPEG, a classifier", compare_pictures(got, model, "mnist_digits", (28, 28)))


def pets():
    pets_network()
    for i in range(3):
        picture(f"in/p{i}.jpg", (150 + 7 * i, 170, 3))
        picture(f"to/p{i}.png", (150 + 7 * i, 170), [0, 1, 2])
        picture(f"samples/Abyssinian_{i}.jpg", (201 - 40 * i, 133, 3))
    model = trained({
        "layers": "./network_xception2D.json",
        "checkpoints": {"save": "./model_pets_segmentation/"},
        "data": {"type": "images", "input_path": "./in/", "target_path": "./to/", "batch_size": 2,
                 "target_grayscale": True, "target_is_mask": True,
                 "transforms": [{"resize": [160, 160]}, {"normalize": {"std": STD}}]},
        "optimizer": {"type": "rmsprop", "learning_rate": 1e-3},
        "loss": {"function": "Dice", "source": "softmax"}}, 30)
    got = test({
        "layers": "./network_xception2D.json",
        "checkpoints": {"load": "./model_pets_segmentation/model_checkpoint_30.pt"},
        "data": {"type": "images", "test_input_path": "./samples/",
                 "test_output_path": "./predictions/", "test_batch_size": 16,
                 "transforms": [{"resize": [160, 160]}, {"normalize": {"std": STD}}]}}, 2)
    result("pets: masks of pictures, resized and normalised, 2 ranks",
           compare_pictures(got, model, "samples", (160, 160), 1 / STD))


def tumours():
    tumour_network()
    for i in range(3):
        picture(f"in/t{i}.tif", (256, 256, 3))
        picture(f"to/t{i}.png", (256, 256), [0, 255])
        picture(f"data/sample/t{i}.tif", (256, 250 + 6 * i, 3))
    model = trained({
        "layers": "./layers_resunet.json",
        "checkpoints": {"save": "./model_MRI_segmentation_resunet/"},
        "data": {"type": "images", "input_path": "./in/", "target_path": "./to/", "batch_size": 32,
                 "target_grayscale": True, "target_is_mask": True,
                 "transforms": [{"resize": [256, 256]}]},
        "optimizer": {"type": "Adam", "learning_rate": 1e-4},
        "loss": {"function": "Dice", "source": "sigmoid"}}, 10)
    got = test({
        "debug": True, "layers": "./layers_resunet.json",
        "checkpoints": {"load": "./model_MRI_segmentation_resunet/model_checkpoint_10.pt"},
        "data": {"type": "images", "test_input_path": "./data/sample/", "test_batch_size": 16,
                 "transforms": [{"resize": [256, 256]}]}})
    result("brain MRI: masks of TIFF, outputs in the run directory",
           compare_pictures(got, model, "data/sample", (256, 256))
           + unless(os.path.exists("run-config_test/network.dot"), "no network.dot"))


def land():
    land_network()
    for name in CLASSES:
        for i in range(2):
            picture(f"data/train/{name}/{name}_{i}.jpg", (64, 64, 3))
            picture(f"data/test/{name}/{name}_{i}.jpg", (64, 60 + 4 * i, 3))
    model = trained({
        "layers": "./layers_bn_trainable.json", "checkpoints": {"save": "./model_land/"},
        "data": {"input_type": "images", "target_type": "labels", "input_path": "./data/train/",
                 "batch_size": 64, "transforms": [{"resize": [64, 64]}]},
        "optimizer": {"type": "Adam", "learning_rate": 0.05,
                      "lr_scheduler": {"type": "Exponential", "gamma": 0.95}},
        "loss": {"function": "NLL"}}, 50)
    got = test({
        "layers": "./layers_bn_trainable.json",
        "checkpoints": {"load": "./model_land/model_checkpoint_50.pt"},
        "data": {"input_type": "images", "test_input_path": "./data/test/",
                 "test_output_path": "./predictions_land/", "transforms": [{"resize": [64, 64]}]}})
    result("satellite images: frozen layers, outputs grouped by class",
           compare_pictures(got, model, "data/test", (64, 64)))


def cut(volume, size, padding, at):
    """A box of a volume with its padding; points outside the volume are 0."""
    wide = np.pad(volume, [(p, s + p) for s, p in zip(size, padding)])
    return wide[tuple(slice(a, a + s + 2 * p) for a, s, p in zip(at, size, padding))]


def assembled(volume, model, size, stride, padding, full):
    """Outputs for boxes, without their padding, averaged; full: extents of the result."""
    total, count = np.zeros(full + (4,)), np.zeros(full + (1,))
    for at in np.ndindex(*[-(-(n - s) // t) + 1 for n, s, t in zip(full, size, stride)]):
        at = [a * t for a, t in zip(at, stride)]
        y = model(cut(volume, size, padding, at)[None, ..., None])[0]
        y = y[tuple(slice(p, p + s) for s, p in zip(size, padding))]
        to = tuple(slice(a, a + s) for a, s in zip(at, size))
        total[to] += y[tuple(slice(0, n) for n in total[to].shape)]
        count[to] += 1
    return (total / count).astype(np.float32)


def rocks():
    volume = rng.random((9, 19, 27), dtype=np.float32)
    array("parihaka/input3D_train.npy", volume)
    array("parihaka/target3D_train.npy", rng.integers(0, 4, volume.shape).astype(np.uint8))
    volume = rng.random((9, 19, 27), dtype=np.float32)
    array("parihaka/input3D_test.npy", volume)
    array("parihaka/target3D_test.npy", rng.integers(0, 4, volume.shape).astype(np.uint8))
    rock_network("unet3d_seismic.json", [4, 8, 12])
    model = trained({
        "layers": "./unet3d_seismic.json", "checkpoints": {"save": "./model_seismic3d/"},
        "data": {"type": "numpy", "input_path": "./parihaka/input3D_train.npy",
                 "target_path": "./parihaka/target3D_train.npy", "batch_size": 16, "preload": True,
                 "slicers": [{"name": "train_sample", "sizes": [4, 8, 12], "strides": [4, 8, 3],
                              "discard_remainders": True}]},
        "optimizer": {"type": "Adam", "learning_rate": 1e-4}, "loss": {"function": "NLL"}}, 20)
    common = {"layers": "./unet3d_seismic.json",
              "checkpoints": {"load": "./model_seismic3d/model_checkpoint_20.pt"}}
    data = {"type": "numpy", "test_input_path": "./parihaka/input3D_test.npy"}
    got = test({**common, "data": {
        **data, "test_target_path": "./parihaka/target3D_test.npy",
        "test_output_path": "./prediction/", "test_batch_size": 1,
        "slicers": [{"name": "test_sample", "sizes": [4, 8, 12], "discard_remainders": True}]},
        "loss": {"function": "Dice", "source": "log_softmax"}})
    want = assembled(volume, model, (4, 8, 12), (4, 8, 12), (0, 0, 0), (8, 16, 24))
    result("seismic facies: slices, with a loss",
           differs("test_sample", got.get("test_sample", np.zeros(0)), want)
           + unless(len(got) == 1 and os.path.exists("run-config_test/test.json"), sorted(got)))
    slicers = [{"name": "wide", "sizes": [2, 6, 10], "strides": [1, 5, 4], "padding": [1, 1, 1]}]
    want = assembled(volume, model, (2, 6, 10), (1, 5, 4), (1, 1, 1), volume.shape)
    for precision, limit in ("double", 1e-5), ("half", 1e-3):
        got = test({**common, "data": {**data, "slicers": slicers, "test_batch_size": 3,
                                       "hdf5_outfile": f"./{precision}.h5",
                                       "hdf5_precision": precision}}, 2)["wide"]
        kind = {"double": "float64", "half": "float16"}[precision]
        result(f"overlapping slices with padding and remainders to hdf5_outfile, {precision}",
               differs("wide", got, want, limit) + unless(got.dtype == kind, got.dtype))


def main():
    for tutorial in digits, pets, tumours, land, rocks:
        os.mkdir(tutorial.__name__)
        os.chdir(tutorial.__name__)
        tutorial()
        os.chdir("..")
    finish()


with tempfile.TemporaryDirectory() as directory:
    os.environ["XDG_CACHE_HOME"] = directory
    os.chdir(directory)
    main()
