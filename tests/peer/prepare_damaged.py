# prepare_damaged.py - files for prepare_errors.t: a complete file of each format, its first half,
# and files with wrong data.
#
# Prints the formats that it could not write, one per line.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import gzip
import os
import struct

import numpy as np

rng = np.random.default_rng(9)


def noise(*shape):
    return rng.integers(0, 256, shape).astype("u1")


def half(path):
    """Write the file to whole/ and its first half to half/."""
    with open("whole/" + path, "rb") as f:
        data = f.read()
    with open("half/" + path, "wb") as f:
        f.write(data[:len(data) // 2])


def png():
    from PIL import Image
    Image.fromarray(noise(20, 30, 3)).save("whole/a.png")
    for name in "cat", "dog":
        os.makedirs("pets/" + name)
        os.makedirs("mixed/" + name)
        for i in range(3):
            Image.fromarray(noise(20, 30, 3)).save(f"pets/{name}/{i}.png")
            grey = name == "dog" and i == 1
            Image.fromarray(noise(20, 30) if grey else noise(20, 30, 3)).save(f"mixed/{name}/{i}.png")
    with open("pets/dog/1.png", "r+b") as f:
        f.truncate(900)
    return ["a.png"]


def jpeg():
    from PIL import Image
    Image.fromarray(noise(20, 30, 3)).save("whole/a.jpg")
    return ["a.jpg"]


def tiff():
    import tifffile
    tifffile.imwrite("whole/a.tif", noise(3, 20, 30), photometric="minisblack")
    return ["a.tif"]


def nifti():
    import nibabel
    for name in "a.nii", "a.nii.gz":
        nibabel.save(nibabel.Nifti1Image(noise(10, 11, 12), np.eye(4)), "whole/" + name)
    return ["a.nii", "a.nii.gz"]


def numpy():
    np.save("whole/a.npy", noise(5, 6, 7, 3))
    np.savez("whole/a.npz", x=noise(5, 6, 7, 3), y=np.arange(5))
    return ["a.npy", "a.npz"]


def hdf5():
    import h5py
    with h5py.File("whole/a.h5", "w") as f:
        f["features"], f["labels"] = noise(50, 6, 7, 3), np.arange(50)
    return ["a.h5"]


def tfrecord():
    from import_writers import encoded, write_tfrecord
    write_tfrecord("whole/a.tfrecord", [{"image/encoded": encoded(noise(6, 7, 3), "PNG"),
                                         "image/class/label": i} for i in range(5)])
    return ["a.tfrecord"]


def plain():
    """Formats that need no library."""
    with open("whole/a.idx", "wb") as f:
        f.write(struct.pack(">BBBBIII", 0, 0, 8, 3, 5, 6, 7) + noise(5, 6, 7).tobytes())
    with open("whole/data_batch_1.bin", "wb") as f:
        f.write(b"".join(bytes([i]) + noise(3072).tobytes() for i in range(5)))
    with gzip.open("whole/a.csv.gz", "wt") as f:
        f.write("a,b\n" + "".join(f"{x},{y}\n" for x, y in noise(50, 2)))
    with open("whole/a.raw", "wb") as f:
        f.write(noise(3, 5, 6).tobytes())
    return ["a.idx", "data_batch_1.bin", "a.csv.gz", "a.raw"]


def wrong():
    """Complete files with wrong content."""
    values = rng.normal(size=(4, 5)).astype("f4")
    values[2, 3] = np.nan
    np.save("nan.npy", values)
    values[2, 3] = np.inf
    np.save("inf.npy", values)
    np.savez("minus.npz", x=np.zeros((3, 2), "f4"), y=np.array([0, -1, 1]))
    np.savez("high.npz", x=np.zeros((3, 2), "f4"), y=np.array([0, 5, 1]))
    np.savez("fewer.npz", x=np.zeros((3, 2), "f4"), y=np.array([0, 1]))
    with open("data_batch_1.bin", "wb") as f:
        f.write(bytes([3]) + bytes(3072) + bytes([12]) + bytes(3072))
    with open("x-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">BBBBIII", 0, 0, 8, 3, 5, 6, 7) + bytes(210))
    with open("x-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">BBBBI", 0, 0, 8, 1, 4) + bytes(4))
    with open("words.csv", "w") as f:
        f.write("a,b\n1,2\n3,four\n")
    with open("ragged.csv", "w") as f:
        f.write("a,b\n1,2\n3\n")
    with open("locate.csv", "w") as f:
        f.write("file,b\nhere.npy,2\ngone.npy,3\n")
    np.save("here.npy", np.zeros(3, "f4"))
    os.makedirs("shapes")
    for i, shape in enumerate([(4, 5, 1), (4, 5, 1), (6, 5, 1)]):
        np.save(f"shapes/{i}.npy", np.zeros(shape, "f4"))
    for side, names in (("in", "abc"), ("out", "bcd")):
        os.makedirs(side)
        for name in names:
            np.save(f"{side}/{name}.npy", np.zeros((4, 5, 1), "u1"))


def main():
    for folder in "whole", "half":
        os.makedirs(folder)
    for format in png, jpeg, tiff, nifti, numpy, hdf5, tfrecord, plain:
        try:
            names = format()
        except ImportError:
            print(format.__name__)
            continue
        for name in names:
            half(name)
    wrong()


main()
