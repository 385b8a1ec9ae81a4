# import_formats.py - IDX, CIFAR, raw files, tables, class directories, pairs and lists,
# written by Python, read by the toolkit's importers and compared number by number.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import csv
import gzip
import io
import os
import tempfile

import nibabel
import numpy as np
from PIL import Image

from import_reader import differ, read
from import_writers import FASHION, fashion_mnist, write_cifar10, write_idx
from tap import finish, result, skip, unless

IDX = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
rng = np.random.default_rng(11)


def numbers(shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype.newbyteorder("="),
                        endpoint=True).astype(dtype)


def native(array):
    return array.astype(array.dtype.newbyteorder("="))


def labels(values):
    return [np.array(v, "i4") for v in values]


# ---- IDX ----

def fashion():
    if not os.path.isdir(FASHION):
        skip("Fashion-MNIST", "the package dataset-fashion-mnist is not installed")
        return
    images, classes = fashion_mnist()
    every = np.concatenate([classes["train"], classes["t10k"]])
    got = read("--quiet", FASHION)
    result("Fashion-MNIST: all 70000 labels, training first",
           got if isinstance(got, str) else
           unless([int(s["class"]) for s in got.samples] == list(every), "they differ"))
    for first, part, at in (0, "train", 0), (59900, "train", 59900), (60000, "t10k", 0), \
            (69900, "t10k", 9900):
        got = read("--samples", f"{first}:{first + 100}", FASHION)
        result(f"Fashion-MNIST: 100 images from {first} on",
               differ(got, images[part][at:at + 100], labels(classes[part][at:at + 100])))
    got = read("--samples", "0:100", "--split", "test", FASHION)
    result("Fashion-MNIST: the test split alone",
           differ(got, images["t10k"][:100], labels(classes["t10k"][:100]))
           or unless(got.count == 10000, f"{got.count} samples"))


def idx_types():
    for code, kind in IDX.items():
        array = numbers((3, 5, 4), kind)
        write_idx(f"{code}.idx", code, array)
        result(f"IDX numbers of type {kind}",
               differ(read(f"{code}.idx"), native(array)[..., None]))
    array = numbers((4, 6, 5, 3), "u1")
    write_idx("colour.idx", 8, array)
    result("IDX images in colour", differ(read("colour.idx"), array))


# ---- CIFAR ----

def cifar():
    images = numbers((7, 3, 32, 32), "u1")
    fine, coarse = rng.integers(0, 100, 7), rng.integers(0, 20, 7)
    os.makedirs("c100")
    write_cifar10("c10", {"data_batch_1": slice(3), "data_batch_2": slice(3, 5),
                          "test_batch": slice(5, 7)}, images, fine % 10)
    want = images.transpose(0, 2, 3, 1)
    got = read("c10")
    result("CIFAR-10: a directory", differ(got, want, labels(fine % 10)))
    result("CIFAR-10: names of classes",
           unless(got.columns["target"]["names"] == [f"name{i}" for i in range(10)],
                  got.columns["target"]))
    result("CIFAR-10: the test split",
           differ(read("--split", "test", "c10"), want[5:], labels(fine[5:] % 10)))
    with open("c100/train.bin", "wb") as f:
        for k in range(7):
            f.write(bytes([coarse[k], fine[k]]) + images[k].tobytes())
    result("CIFAR-100: fine", differ(read("c100"), want, labels(fine), labels(coarse)))
    result("CIFAR-100: coarse",
           differ(read("--target-name", "coarse", "c100/train.bin"), want, labels(coarse),
                  labels(fine)))


# ---- raw ----

def raw():
    for kind, name in ("u1", "u8"), ("i2", "i16"), ("u4", "u32"), ("i8", "i64"), ("f2", "f16"), \
            ("f4", "f32"), ("f8", "f64"), ("?", "bool"):
        for order in "<", ">":
            array = numbers((3, 4, 5), order + kind)
            with open("x.raw", "wb") as f:
                f.write(b"header!" + array.tobytes())
            got = read("--input-shape", "[4, 5]", "--input-dtype", name, "--input-offset", 7,
                       "--input-big-endian", "true" if order == ">" else "false", "x.raw")
            result(f"raw {order}{kind}", differ(got, native(array)[..., None]))
    array = numbers((2, 3, 4, 5, 6), "u2")
    with gzip.open("v.raw", "wb") as f:
        f.write(array.tobytes())
    got = read("--input-shape", "[3, 4, 5, 6]", "--input-dtype", "u16", "--input-layout", "first",
               "v.raw")
    result("raw volumes with channels first, compressed",
           differ(got, array.transpose(0, 2, 3, 4, 1)))


# ---- tables ----

def tables():
    values = rng.normal(size=(50, 4)) * 10.0 ** rng.integers(-30, 30, (50, 4))
    words = ["plain", "with, comma", 'a "quote"', "two\nlines", " spaces ", "ü;ö", "x"]
    classes = rng.integers(0, len(words), 50)
    classes[:len(words)] = np.arange(len(words))
    names = sorted(words, key=lambda w: w.encode())
    for separator, end in (",", "\r\n"), (";", "\n"), ("\t", "\n"):
        text = io.StringIO()
        out = csv.writer(text, delimiter=separator, lineterminator=end)
        out.writerow(["a", "b", "c", "d", "class"])
        for row, k in zip(values, classes):
            out.writerow([repr(float(v)) for v in row] + [words[k]])
        with gzip.open("t.csv.gz", "wt", newline="") as f:
            f.write(text.getvalue())
        with open("t.csv", "w", newline="") as f:
            f.write(text.getvalue())
        for path in "t.csv", "t.csv.gz":
            got = read("--targets", "class", "--input-dtype", "f64", path)
            result(f"{path} with {separator!r}: every digit of the numbers, any class",
                   differ(got, values, labels(names.index(words[k]) for k in classes)))
    got = read("--inputs", '["d", "b"]', "--targets", '["a", "c"]', "t.csv")
    result("columns that are named, as f32",
           differ(got, values[:, [1, 3]].astype("f4"), values[:, [0, 2]].astype("f4")))


def locators():
    """A table whose columns name files: images, arrays, volumes."""
    os.makedirs("objects/sub")
    images, arrays, volumes, ages, sick, rows = [], [], [], [], [], []
    for i in range(4):
        images.append(numbers((5 + i, 6, 3), "u1"))
        Image.fromarray(images[-1]).save(f"objects/sub/i{i}.png")
        arrays.append(numbers((4,), "f4"))
        np.save(f"objects/a{i}.npy", arrays[-1])
        volumes.append(numbers((4, 3, 5), "i2"))
        nibabel.save(nibabel.Nifti1Image(volumes[-1], np.eye(4)), f"objects/v{i}.nii.gz")
        ages.append([20.5 + i])
        sick.append(i % 2)
        rows.append([f"sub/i{i}.png", f"a{i}.npy", f"v{i}.nii.gz", ages[-1][0], "no yes".split()[i % 2]])
    with open("locate.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["picture", "array", "volume", "age", "sick"])
        out.writerows(rows)
    got = read("--objects", '["picture", "array", "volume"]', "--targets", "sick",
               "--object-dir", "objects", "locate.csv")
    if isinstance(got, str):
        result("a table of locators", got)
        return
    # A volume of NIfTI runs fastest along its first axis: DxHxW is z, y, x.
    result("a table of locators: images, arrays, volumes, numbers, classes",
           differ(got, [np.array(a, "f4") for a in ages], images, arrays,
                  [v.transpose(2, 1, 0)[..., None] for v in volumes], labels(sick)))
    result("its columns have the names of the table",
           unless(list(got.columns) == ["values", "picture", "array", "volume", "target"],
                  list(got.columns)))
    result("every file is listed", unless(len(got.files) == 13, got.files))
    got = read("--objects", "picture", "--inputs", "picture", "--targets", "sick", "--object-dir",
               "objects", "--group", "age", "locate.csv")
    result("one object and one class: input and target", differ(got, images, labels(sick)))
    groups = [s["group"] for s in got.samples]
    result("groups by a column", unless(groups == ["20.5", "21.5", "22.5", "23.5"], groups))


# ---- many files ----

def folders():
    images = {}
    for name in "train/dog/2.png", "train/dog/10.png", "train/cat/1.png", "test/cat/3.png":
        os.makedirs("pets/" + os.path.dirname(name), exist_ok=True)
        images[name] = numbers((4, 5), "u1")
        Image.fromarray(images[name]).save("pets/" + name)
    order = sorted(images)
    got = read("pets")
    result("class directories below directories of splits",
           differ(got, [images[n][..., None] for n in order],
                  labels(["cat", "dog"].index(n.split("/")[1]) for n in order)))
    result("in order", unless([s["name"] for s in got.samples] == order, "other names"))
    order = [n for n in order if n.startswith("train")]
    got = read("--split", "train", "pets")
    result("those of one split",
           differ(got, [images[n][..., None] for n in order], labels([0, 1, 1])))


def pairs():
    inputs, masks = {}, {}
    for name in "b", "a/x", "a/y":
        os.makedirs(os.path.dirname("in/" + name), exist_ok=True)
        os.makedirs(os.path.dirname("out/" + name), exist_ok=True)
        inputs[name] = numbers((6, 7, 3), "u1")
        masks[name] = numbers((6, 7), "u1") % 3
        Image.fromarray(inputs[name]).save(f"in/{name}.png")
        np.save(f"out/{name}.npy", masks[name])
    order = sorted(inputs)
    got = read("--target-kind", "mask", "in", "out")
    result("images and masks of another format, by name",
           differ(got, [inputs[n] for n in order], [masks[n][..., None] for n in order]))
    got = read("--target-kind", "mask", "--group", "directory", "in", "out")
    result("groups by directory",
           unless(not isinstance(got, str) and
                  [s["group"] for s in got.samples] == ["a", "a", "."], got))
    with open("some.txt", "w") as f:
        f.write("out/b.npy\nout/a/x.npy\n")
    got = read("--input-kind", "mask", "some.txt")
    result("files of a list", differ(got, [masks[n][..., None] for n in ("b", "a/x")]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in fashion, idx_types, cifar, raw, tables, locators, folders, pairs:
            test()
        os.chdir("/")
    finish()


if __name__ == "__main__":
    main()
