# prepare_formats.py - small files of every format, written by other libraries, prepared
# with dnn-prepare, and compared with the dataset as read by Python's ADIOS2.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import csv
import io
import json
import os
import shutil

import h5py
import nibabel
import numpy as np
import tifffile
from PIL import Image

from dataset_file import Dataset, write_bp
from import_writers import FASHION, encoded, fashion_mnist, write_cifar10, write_tfrecord
from prepare_run import array_differs, list_differs, prepared, run, tests
from tap import result, skip

rng = np.random.default_rng(3)


def bytes_of(*shape, below=256):
    return rng.integers(0, below, shape).astype("u1")


def rows(name, n):
    """Names of the rows of an array."""
    return [f"{name}[{i}]" for i in range(n)]


def written(path, array, write):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, array)


def save_image(path, array):
    Image.fromarray(array).save(path)


# ---- collections ----

def fashion():
    if not os.path.isdir(FASHION):
        skip("Fashion-MNIST", "the package dataset-fashion-mnist is not installed")
        return
    images, classes = fashion_mnist()
    prepared("Fashion-MNIST: 70000 images, labels and names in two splits", ["--from", FASHION],
             {split: {"input": images[part], "target": classes[part].astype("i4"),
                      "names": rows(f"{part}-images-idx3-ubyte.gz", len(images[part]))}
              for split, part in (("train", "train"), ("test", "t10k"))})


def cifar():
    images, classes = bytes_of(9, 3, 32, 32), rng.integers(0, 10, 9)
    files = {"data_batch_1": slice(4), "data_batch_2": slice(4, 7), "test_batch": slice(7, 9)}
    write_cifar10("c10", files, images, classes)
    last, names = images.transpose(0, 2, 3, 1), [f"name{i}" for i in range(10)]
    prepared("CIFAR-10: images, labels, names of classes", ["--from", "c10"],
             {split: {"input": last[part], "target": classes[part].astype("i4"),
                      "target classes": names,
                      "names": [n for f in of for n in rows(f + ".bin", files[f].stop - (files[f].start or 0))]}
              for split, part, of in (("train", slice(7), ["data_batch_1", "data_batch_2"]),
                                      ("test", slice(7, 9), ["test_batch"]))})


# ---- images ----

def folder(suffix):
    images = {}
    for k, name in enumerate(("dog", "cat", "élan")):
        for i in range(3 + k):
            path = f"{name}/{i}{suffix}"
            written("pets/" + path, bytes_of(8, 11, 3), save_image)
            images[path] = np.asarray(Image.open("pets/" + path))
    order = sorted(images, key=lambda n: n.encode())
    classes = ["cat", "dog", "élan"]
    prepared(f"class directories of {suffix}", ["--from", "pets"],
             {"all": {"input": np.stack([images[n] for n in order]),
                      "target": np.array([classes.index(n.split("/")[0]) for n in order], "i4"),
                      "target classes": classes, "names": order}})


def png_folder():
    folder(".png")


def jpeg_folder():
    folder(".jpg")


def png_pairs():
    images, masks = {}, {}
    for name in "b.png", "a/10.png", "a/9.png":
        images[name], masks[name] = bytes_of(6, 9, 3), bytes_of(6, 9, below=3)
        written("in/" + name, images[name], save_image)
        written("out/" + name, masks[name], save_image)
    order = sorted(images)
    prepared("pairs of PNG: images and masks",
             ["--from", "in", "--target", "out", "--target-kind", "mask"],
             {"all": {"input": np.stack([images[n] for n in order]),
                      "target": np.stack([masks[n][..., None] for n in order]), "names": order}})


def nifti_pairs():
    affine = np.array([[-1.5, 0, 0, 90], [0, 2, 0, -126], [0, 0, 2.5, -72], [0, 0, 0, 1.0]])
    for suffix in ".nii", ".nii.gz":
        images, masks, turned = [], [], []
        for i in range(3):
            images.append(rng.normal(size=(4, 5, 6)).astype("f4"))
            masks.append(bytes_of(4, 5, 6, below=4))
            turned.append(affine.copy())
            turned[-1][:3, 3] += i
            for place, array in ("scans", images[-1]), ("masks", masks[-1]):
                written(f"{place}{suffix}/p{i}{suffix}", array,
                        lambda p, a, m=turned[-1]: nibabel.save(nibabel.Nifti1Image(a, m), p))
        flat = np.stack([m[:3].reshape(-1) for m in turned])
        good = prepared(f"pairs of {suffix}: volumes, masks, affine matrices",
                        ["--from", "scans" + suffix, "--target", "masks" + suffix],
                        {"all": {"input": np.stack([v.transpose(2, 1, 0)[..., None] for v in images]),
                                 "input.affine": flat,
                                 "target": np.stack([v.transpose(2, 1, 0)[..., None] for v in masks]),
                                 "target.affine": flat,
                                 "names": [f"p{i}{suffix}" for i in range(3)]}})
        if good:
            data = Dataset("made.bp")
            for column in "input", "target":
                result(f"pairs of {suffix}: spacing of {column}",
                       list_differs(data.values(f"all/{column}/spacing"), [2.5, 2, 1.5]))
            data.close()


def tiff_stacks():
    stacks, masks = [], []
    for i in range(3):
        stacks.append(rng.integers(0, 65536, (5, 7, 8)).astype("u2"))
        masks.append(bytes_of(5, 7, 8, below=3))
        for place, array in ("ct", stacks[-1]), ("seg", masks[-1]):
            written(f"{place}/{i}.tif", array,
                    lambda p, a: tifffile.imwrite(p, a, photometric="minisblack", compression="zlib"))
    prepared("TIFF stacks and masks",
             ["--from", "ct", "--target", "seg", "--target-kind", "mask"],
             {"all": {"input": np.stack(stacks)[..., None], "target": np.stack(masks)[..., None],
                      "names": [f"{i}.tif" for i in range(3)]}})


def raw_volumes():
    volumes = [rng.normal(size=(4, 6, 5)).astype(">f4") for _ in range(3)]
    masks = [bytes_of(4, 6, 5, below=2) for _ in range(3)]
    for i in range(3):
        written(f"vol/{i}.raw", b"head" + volumes[i].tobytes(), lambda p, b: open(p, "wb").write(b))
        written(f"seg/{i}.raw", masks[i].tobytes(), lambda p, b: open(p, "wb").write(b))
    prepared("raw volumes behind a header, most significant byte first, and masks",
             ["--from", "vol", "--target", "seg", "--input-shape", "4,6,5", "--input-dtype", "f32",
              "--input-offset", 4, "--input-big-endian", "--input-layout", "none",
              "--target-shape", "4,6,5", "--target-kind", "mask", "--target-layout", "none"],
             {"all": {"input": np.stack(volumes).astype("f4")[..., None],
                      "target": np.stack(masks)[..., None],
                      "names": [f"{i}.raw" for i in range(3)]}})


# ---- arrays ----

def npz():
    x, y = rng.normal(size=(8, 3, 6, 5)).astype("f4"), rng.integers(0, 4, 8)
    np.savez("a.npz", x=x, y=y)
    prepared("NPZ with channels first", ["--from", "a.npz", "--input-layout", "first"],
             {"all": {"input": x.transpose(0, 2, 3, 1), "target": y, "names": rows("a.npz", 8)}})
    np.savez_compressed("b.npz", x_train=x[:5], y_train=y[:5], x_test=x[5:], y_test=y[5:])
    prepared("NPZ: one of its splits",
             ["--from", "b.npz", "--input-layout", "first", "--from-split", "test"],
             {"test": {"input": x[5:].transpose(0, 2, 3, 1), "target": y[5:],
                       "names": rows("b.npz", 3)}})


def npy():
    x, y = bytes_of(7, 9, 6, 3), np.arange(7) % 3
    np.save("y.npy", y)
    for order in "CF":
        np.save("x.npy", np.array(x, order=order))
        prepared(f"NPY in {order} order, labels in another",
                 ["--from", "x.npy", "--target", "y.npy", "--target-kind", "label"],
                 {"all": {"input": x, "target": y, "names": rows("x.npy", 7)}})


def hdf5():
    parts, n = [], [3, 4, 2]
    for i, k in enumerate(n):
        parts.append((rng.normal(size=(k, 5, 4, 2)).astype("f4"),
                      np.eye(3, dtype="f4")[rng.integers(0, 3, k)]))
        with h5py.File(f"part{2 - i}.h5", "w") as f:
            f.create_dataset("Images", data=parts[-1][0], chunks=True, compression="gzip")
            f["Labels"] = parts[-1][1]
            f["Other"] = np.zeros(k)
    with open("train.txt", "w") as f:
        f.write("".join(f"part{2 - i}.h5\n" for i in range(3)))
    words = ["--features-name", "Images", "--labels-name", "Labels"]
    prepared("a list of HDF5 files, with the names of its arrays", ["--from", "train.txt", *words],
             {"all": {"input": np.concatenate([p[0] for p in parts]),
                      "target": np.concatenate([p[1] for p in parts]),
                      "names": [r for i in range(3) for r in rows(f"part{2 - i}.h5", n[i])]}})
    prepared("one HDF5 file", ["--from", "part1.h5", *words],
             {"all": {"input": parts[1][0], "target": parts[1][1], "names": rows("part1.h5", 4)}})


# ---- tables and records ----

def tables():
    values = rng.normal(size=(6, 3)).astype("f4")
    kinds, order = ["red", "green", "dark, blue"], ["dark, blue", "green", "red"]
    images = bytes_of(6, 5, 4, 3)
    with open("t.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["picture", "a", "b", "c", "kind"])
        for i in range(6):
            written(f"objects/{i}.png", images[i], save_image)
            out.writerow([f"{i}.png", *map(repr, map(float, values[i])), kinds[i % 3]])
    target = np.array([order.index(kinds[i % 3]) for i in range(6)], "i4")
    prepared("a table of numbers and classes",
             ["--from", "t.csv", "--inputs", "a,b,c", "--targets", "kind"],
             {"all": {"input": values, "target": target, "target classes": order,
                      "names": rows("t.csv", 6)}})
    prepared("a table of numbers, classes and files",
             ["--from", "t.csv", "--objects", "picture", "--object-dir", "objects", "--targets",
              "kind"],
             {"all": {"values": values, "picture": images, "target": target,
                      "target classes": order, "names": [f"{i}.png" for i in range(6)]}})


def tfrecord():
    images, classes = bytes_of(6, 8, 7, 3), rng.integers(0, 5, 6)
    for form in "PNG", "JPEG":
        packed = [encoded(a, form) for a in images]
        write_tfrecord("a.tfrecord", [{"image/encoded": p, "image/class/label": int(c)}
                                      for p, c in zip(packed, classes)])
        prepared(f"TFRecord of {form} and labels", ["--from", "a.tfrecord"],
                 {"all": {"input": np.stack([np.asarray(Image.open(io.BytesIO(p))) for p in packed]),
                          "target": classes, "names": rows("a.tfrecord", 6)}})


def bp():
    x, y = bytes_of(12, 6, 5, 3), np.arange(12) % 3
    np.savez("a.npz", x=x, y=y)
    why = run("--from", "a.npz", "--to", "first.bp", "--target-kind", "label", "--split", "0.5,0.25,0.25",
              "--stratify")
    if why:
        result("a dataset as input", why)
        return
    first, want = Dataset("first.bp"), {}
    for split in first.splits:
        names = first.names(split)
        at = [int(n[6:-1]) for n in names]
        # Scaled values are read as in training: the product of f32 numbers.
        want[split] = {"input": x[at].astype("f4") * np.float32(1 / 255), "target": y[at],
                       "names": names}
    first.close()
    prepared("a dataset as input: splits, values, names", ["--from", "first.bp"], want)
    shutil.copytree("first.bp", "renamed")
    prepared("the same under a name that does not end in .bp", ["--from", "renamed"], want)
    prepared("one of its splits", ["--from", "first.bp", "--from-split", "validation"],
             {"validation": want["validation"]})
    data = Dataset("made.bp")
    record = json.loads(data.text("dataset/provenance"))
    data.close()
    result("every file of it is in the provenance",
           list_differs([f["path"] for f in record["file"]],
                        sorted("first.bp/" + f for f in os.listdir("first.bp")))
           or list_differs([record["files"], *[f["bytes"] for f in record["file"]]],
                           [len(record["file"]),
                            *[os.path.getsize(f["path"]) for f in record["file"]]]))
    shutil.rmtree("first.bp")
    run("--from", "a.npz", "--to", "first.bp", "--target-kind", "label", "--split", "0.5,0.25,0.25")
    output = run("--from", "first.bp", "--from-split", "validation", "--to", "made.bp")
    result("a change of it is detected",
           list_differs([output], ["dnn-prepare: made.bp: exists already and was made by another "
                                 "configuration or from other files; use --replace to replace it"]))


def about(data):
    """Metadata of each column and sample."""
    known = {"splits": data.splits}
    for split in data.splits:
        known[split] = data.names(split), data.groups(split), data.count(split)
        for column in data.texts_of(f"{split}/columns"):
            name = f"{split}/{column}"
            known[name] = (data.text(name + "/role"), data.text(name + "/kind"),
                           data.texts_of(name + "/class_names"),
                           *(list(data.values_or(f"{name}/{what}", [])) for what in ("spacing", "classes")))
    return known


def again():
    """Groups, class names, spacing, scaled numbers and f16 are kept by another preparation."""
    for i in range(9):
        image = nibabel.Nifti1Image(rng.integers(-500, 500, (4, 5, 6)).astype("i2"), np.diag([3, 2, 1.5, 1]))
        written(f"scans/{'abc'[i % 3]}/p{i // 2}_{i}.nii", image, lambda p, v: nibabel.save(v, p))
    for store in "f16", "i16":
        shutil.rmtree("first.bp", ignore_errors=True)
        why = run("--from", "scans", "--group", "_", "--split", "0.6,0,0.4", "--normalise", "channel",
                  "--type", store, "--to", "first.bp")
        shutil.rmtree("made.bp", ignore_errors=True)
        why = why or run("--from", "first.bp", "--to", "made.bp") or run("--verify", "made.bp")
        if not why:
            first, second = Dataset("first.bp"), Dataset("made.bp")
            why = list_differs(about(second).items(), about(first).items())
            for split in first.splits:
                for column in first.texts_of(f"{split}/columns"):
                    a, b = second.meant(split, column), first.meant(split, column)
                    # Scaled values are computed in f32 when they are read.
                    if a.shape != b.shape or np.abs(a - b).max() > 3e-7 * np.abs(b).max():
                        why = why or array_differs(a.astype("f4"), b.astype("f4"))
            first.close()
            second.close()
        result(f"a dataset with groups, classes, spacing and numbers in {store} is prepared again",
               why)


def foreign_bp():
    """Arrays that Python's ADIOS2 wrote, and several such files in a directory."""
    x, y = rng.normal(size=(8, 5, 4, 3)).astype("f4"), np.arange(8)
    for i in range(2):
        write_bp(f"many/{i}.bp", {"image": x[4 * i:4 * i + 4], "label": y[4 * i:4 * i + 4]})
    prepared("BP of another writer", ["--from", "many/1.bp"],
             {"all": {"input": x[4:], "target": y[4:], "names": rows("many/1.bp", 4)}})
    prepared("a directory of BP files", ["--from", "many"],
             {"all": {"input": x, "target": y, "names": rows("0.bp", 4) + rows("1.bp", 4)}})


if __name__ == "__main__":
    tests(cifar, png_folder, jpeg_folder, png_pairs, nifti_pairs, tiff_stacks, raw_volumes,
          npz, npy, hdf5, tables, tfrecord, bp, again, foreign_bp, fashion)
