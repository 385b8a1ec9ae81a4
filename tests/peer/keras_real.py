# keras_real.py - comparison with Keras 3 in both directions: Keras opens every network of the
# zoo as dnn-train writes it, and the toolkit opens networks of keras.applications as Keras writes
# them.  Outputs agree to 1e-5 of the largest value.
#
# "all" as an argument takes every network, not one of each family;
# other arguments select by name.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import keras
import numpy as np
from keras.src.initializers import random_initializers

from tap import finish, result, unless

LIMIT = 1e-5
TOP = os.environ.get("top_builddir", ".")
SMALL = {
    "simplemlp": ["base=16"], "simplecnn": ["input=[12,12,1]"],
    "alexnet": ["input=[67,67,3]"], "googlenet": ["input=[64,64,3]"],
    "inceptionv3": ["input=[75,75,3]"], "wideresnet28_10": ["base=2", "input=[16,16,3]"],
    "resnet20": ["base=4", "input=[16,16,3]"],
    "pspnet": ["input=[48,48,3]"], "unet2d": ["base=4", "depth=2", "input=[16,12,1]"],
    "unet3d": ["base=4", "depth=2", "input=[8,8,12,1]"],
}
MORE = [
    ("unet3d", ["base=4", "depth=2", "norm=instance", "down=stride", "input=[8,4,12,2]"]),
    ("unet2d", ["base=4", "depth=1", "norm=group", "input=[12,8,2]"]),
    ("unet3d", ["base=3", "depth=2", "norm=layer", "up=upsample", "input=[8,4,12,2]"]),
]
# One network of each family, with small images.
FAMILIES = ["ConvNeXtTiny", "DenseNet121", "EfficientNetB0", "EfficientNetV2B0",
            "InceptionResNetV2", "InceptionV3", "MobileNet", "MobileNetV2",
            "MobileNetV3Small", "NASNetMobile", "ResNet50", "ResNet50V2", "VGG16",
            "Xception"]
# Only with "all": a smaller network of the family is always tested.
DEEP = [
    "vgg11", "vgg11_cifar10", "vgg11bn", "vgg11bn_cifar10", "vgg13", "vgg13bn", "vgg16bn",
    "vgg16_cifar10", "vgg19", "vgg19bn", "vgg2", "vgg3", "vgg3do2", "densenet161", "densenet169",
    "densenet201", "densenet121_cifar10", "densenet161_cifar10", "densenet169_cifar10",
    "densenet201_cifar10", "googlenet_cifar10", "resnet34", "resnet101", "resnet152",
    "resnet101v2", "resnet152v2", "resnet101v15", "resnet152v15", "resnet34_cifar10",
    "resnet50_cifar10", "resnet101_cifar10", "resnet152_cifar10", "resnet32_cifar10",
    "resnet44_cifar10", "resnet56_cifar10", "resnet110_cifar10", "resnet1202_cifar10",
]
SIDE = {"InceptionResNetV2": 75, "InceptionV3": 75, "Xception": 71}
GENERATOR = np.random.default_rng(1)


def draw(self, shape, dtype=None, **_):
    """Random weights by NumPy: JAX would compile a program for each shape."""
    fan = np.prod(shape[:-1]) if len(shape) > 1 else 1
    return (GENERATOR.standard_normal(shape, dtype=np.float32)
            / np.float32(max(fan, 1)) ** 0.5)


for name in ("VarianceScaling", "RandomNormal", "TruncatedNormal", "RandomUniform"):
    getattr(random_initializers, name).__call__ = draw


def check(good, what, complaint):
    result(what, unless(good, complaint or "it failed"))


def run(tool, *words):
    done = subprocess.run([f"{TOP}/tests/peer/{tool}", *words], timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


def distance(got, want):
    """The largest difference relative to the largest value.  The random weights of resnet1202
    make values overflow: where Keras's output is not finite, ours must not be finite either."""
    worst = 0.0
    for a, b in zip(got, want):
        a, finite = a.reshape(b.shape), np.isfinite(b)
        if not np.array_equal(np.isfinite(a), finite):
            return np.inf
        a, b = np.where(finite, a, 0), np.where(finite, b, 0)
        scale = max(float(np.abs(b).max()), 1e-30)
        worst = max(worst, float(np.abs(a - b).max()) / scale)
    return worst if len(got) == len(want) else np.inf


def predict(model, where):
    """Keras's outputs for the inputs in a directory."""
    inputs = []
    for i, x in enumerate(model.inputs):
        inputs.append(np.fromfile(f"{where}/input_{i}.f32", np.float32)
                      .reshape((2,) + tuple(x.shape[1:])))
    out = model(inputs if len(inputs) > 1 else inputs[0], training=False)
    return [np.asarray(y) for y in (out if isinstance(out, list) else [out])]


def ours(where, n):
    return [np.fromfile(f"{where}/output_{i}.f32", np.float32) for i in range(n)]


def two_methods(where):
    """The two methods to load a model in Keras."""
    yield "load_model", keras.models.load_model(f"{where}/model.keras")
    with open(f"{where}/model.json", encoding="utf-8") as file:
        model = keras.models.model_from_json(file.read())
    model.load_weights(f"{where}/model.weights.h5")
    yield "model_from_json and load_weights", model


def same_members(where):
    """model.dnn has the network and the weights of model.keras, to the byte."""
    with zipfile.ZipFile(f"{where}/model.keras") as a, zipfile.ZipFile(f"{where}/model.dnn") as b:
        return all(a.read(name) == b.read(name) for name in a.namelist())


def zoo(name, words, where):
    status, text, error = run("net_run", "zoo", name, *words)
    title = " ".join(["zoo:", name] + words)
    if status != 0:
        check(False, title, error)
        return
    with open(f"{where}/net.json", "w", encoding="utf-8") as file:
        file.write(text)
    status, _, error = run("keras_run", f"{where}/net.json", where)
    if status != 0:
        check(False, title, error)
        return
    check(same_members(where), f"{title}: model.dnn has what model.keras has", "it differs")
    want = None
    for variant, model in two_methods(where):
        if want is None:
            want = predict(model, where)
        else:  # the same network: only weights can differ
            again = [np.asarray(w) for w in model.get_weights()]
            check(all(np.array_equal(a, b) for a, b in zip(again, first))
                  and len(again) == len(first), f"{title}: {variant}", "other weights")
            continue
        first = [np.asarray(w) for w in model.get_weights()]
        apart = distance(ours(where, len(want)), want)
        check(apart <= LIMIT, f"{title}: {variant}", f"apart by {apart:g}")


def to_ours(title, model, shape, where):
    """A Keras model, written by Keras, computed by the toolkit."""
    with open(f"{where}/net.json", "w", encoding="utf-8") as file:
        file.write(model.to_json())
    model.save_weights(f"{where}/net.weights.h5")
    GENERATOR.standard_normal((2,) + shape, dtype=np.float32).tofile(
        f"{where}/input_0.f32")
    status, _, error = run("keras_run", f"{where}/net.json", where,
                           f"{where}/net.weights.h5")
    if status != 0:
        check(False, title, error)
        return
    want = predict(model, where)
    apart = distance(ours(where, len(want)), want)
    check(apart <= LIMIT, title, f"apart by {apart:g}")


def application(name, where):
    side = SIDE.get(name, 32 if "VGG" in name or "Res" in name else 64)
    options = {"weights": None, "input_shape": (side, side, 3)}
    # Without the top: it is a dense layer, the same in all networks.
    model = getattr(keras.applications, name)(include_top=False, pooling="avg", **options)
    for w in model.weights:  # random factors and statistics, so that errors are visible
        if len(w.shape) == 1:
            noise = GENERATOR.standard_normal(w.shape, dtype=np.float32)
            near_one = "gamma" in w.path or "variance" in w.path
            w.assign(np.exp(0.2 * noise) if near_one else 0.1 * noise)
    to_ours(f"keras.applications.{name}", model, options["input_shape"], where)


def operations():
    """Operations between layers, with tensors and numbers; models in models, a shared
    one, several outputs."""
    ops, layers = keras.ops, keras.layers
    image = keras.Input((8, 6, 3), name="image")
    inner = keras.Sequential([keras.Input((8, 6, 4)), layers.Conv2D(4, 1)], name="chain")
    two = keras.Input((None, None, 4))
    both = keras.Model(two, [layers.ReLU(max_value=2.0, negative_slope=0.1)(two),
                             layers.Conv2D(4, 3, padding="same")(two)], name="both")
    x = inner(layers.Conv2D(4, 3, padding="same", kernel_regularizer="l2")(image))
    a, b = both(x)
    y = (a + b * 2.0 - 0.5) / 4.0
    y = ops.maximum(3.0 - y, 0.25) + ops.minimum(y, 0.75) - a * b
    y = y / (ops.absolute(b) + 1.0) + 2.0 / (ops.square(a) + 1.0)
    y = ops.relu(y) + ops.silu(-y) + ops.gelu(y) + ops.elu(y) + ops.softmax(y)
    y = ops.concatenate([y, ops.exp(y * -0.1), ops.sqrt(ops.square(y) + 1)], axis=-1)
    z = ops.mean(y, axis=[1, 2], keepdims=True) + ops.max(y, axis=[1, 2], keepdims=True)
    y = layers.Multiply()([y, z])
    y = layers.GroupNormalization(groups=-1)(layers.Conv2D(4, 1)(y))
    c, d = both(y)
    return keras.Model(image, [ops.sum(y, axis=-1), layers.Add()([c, d]), d], name="ops")


def both_ways(where):
    model = operations()
    to_ours("operations between layers, read", model, (8, 6, 3), where)
    os.remove(f"{where}/input_0.f32")
    status, _, error = run("keras_run", f"{where}/net.json", where)
    if status != 0:
        check(False, "operations between layers, written again", error)
        return
    for variant, model in two_methods(where):
        want = predict(model, where)
        apart = distance(ours(where, len(want)), want)
        check(apart <= LIMIT, f"operations between layers, written again: {variant}",
              f"apart by {apart:g}")


def each(title, function, *words):
    """Run a test in its own directory; an exception is a failure."""
    where = tempfile.mkdtemp()
    try:
        function(*words, where)
    except Exception as error:  # any exception of Keras
        check(False, " ".join([title, *words[:1]]), f"{type(error).__name__}: {error}"[:500])
    shutil.rmtree(where)
    keras.backend.clear_session()


def main():
    sys.setrecursionlimit(50000)  # Keras walks a network of 1202 layers by recursion
    # Keras warns about containers whose layers it has loaded already.
    warnings.filterwarnings("ignore", message="Skipping nested container")
    every = "all" in sys.argv[1:]
    chosen = [w for w in sys.argv[1:] if w != "all"]
    status, text, error = run("net_run", "list")
    check(status == 0, "the zoo is listed", error)
    names = [line.split("\t")[1] for line in text.splitlines() if line[:3] == "zoo"]
    networks = [(n, SMALL.get(n, ["input=[32,32,3]"])) for n in names] + MORE
    for name, words in networks:
        if name in chosen or not chosen and (every or name not in DEEP):
            each("zoo:", zoo, name, words)
    if not chosen or "operations" in chosen:
        each("operations", both_ways)
    for name in dir(keras.applications):
        if name[0].isupper() and (name in chosen or
                                  not chosen and (every or name in FAMILIES)):
            each("keras.applications:", application, name)
    finish()


if __name__ == "__main__":
    main()
