# import_writers.py - writers for formats without a Python library: IDX, CIFAR, TFRecord; and
# the files of Debian's package of Fashion-MNIST.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import gzip
import io
import os
import struct

import numpy as np
from PIL import Image

FASHION = "/usr/share/datasets/fashion-mnist"


def fashion_mnist():
    """Images and labels, by "train" and "t10k"."""
    images, classes = {}, {}
    for part in "train", "t10k":
        with gzip.open(f"{FASHION}/{part}-images-idx3-ubyte.gz") as f:
            images[part] = np.frombuffer(f.read(), "u1", offset=16).reshape(-1, 28, 28, 1)
        with gzip.open(f"{FASHION}/{part}-labels-idx1-ubyte.gz") as f:
            classes[part] = np.frombuffer(f.read(), "u1", offset=8)
    return images, classes


def write_idx(path, code, array):
    with open(path, "wb") as f:
        f.write(struct.pack(">BBBB", 0, 0, code, array.ndim))
        f.write(struct.pack(f">{array.ndim}I", *array.shape))
        f.write(array.tobytes())


def write_cifar10(folder, files, images, classes):
    """files: slices of the images (channels first) by file name; classes are name0 to name9."""
    os.makedirs(folder)
    for name, part in files.items():
        with open(f"{folder}/{name}.bin", "wb") as f:
            for image, label in zip(images[part], classes[part]):
                f.write(bytes([label]) + image.tobytes())
    with open(f"{folder}/batches.meta.txt", "w") as f:
        f.write("\n".join(f"name{i}" for i in range(10)) + "\n\n")


# ---- TFRecord ----

def example_class():
    """tf.train.Example, with a map of features."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="e.proto", package="t", syntax="proto3")

    def message(name, *fields):
        m = file.message_type.add(name=name)
        for number, (field, label, type_, of) in enumerate(fields, 1):
            m.field.add(name=field, number=number, label=label, type=type_, type_name=of)
        return m

    message("BytesList", ("value", kind.LABEL_REPEATED, kind.TYPE_BYTES, None))
    message("FloatList", ("value", kind.LABEL_REPEATED, kind.TYPE_FLOAT, None))
    message("Int64List", ("value", kind.LABEL_REPEATED, kind.TYPE_INT64, None))
    feature = message("Feature", *[(n + "_list", kind.LABEL_OPTIONAL, kind.TYPE_MESSAGE, f".t.{m}List")
                                   for n, m in (("bytes", "Bytes"), ("float", "Float"),
                                                ("int64", "Int64"))])
    feature.oneof_decl.add(name="kind")
    for f in feature.field:
        f.oneof_index = 0
    features = message("Features", ("feature", kind.LABEL_REPEATED, kind.TYPE_MESSAGE,
                                    ".t.Features.FeatureEntry"))
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=kind.TYPE_STRING)
    entry.field.add(name="value", number=2, label=1, type=kind.TYPE_MESSAGE, type_name=".t.Feature")
    message("Example", ("features", kind.LABEL_OPTIONAL, kind.TYPE_MESSAGE, ".t.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("t.Example")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(pool).GetPrototype(found)


TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
    TABLE.append(i)


def crc(data):
    value = 0xffffffff
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 255]
    value ^= 0xffffffff
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff)


def write_tfrecord(path, examples, opener=open):
    Example = example_class()
    with opener(path, "wb") as f:
        for values in examples:
            e = Example()
            for key, value in values.items():
                feature = e.features.feature[key]
                if isinstance(value, (bytes, str)):
                    feature.bytes_list.value.append(value if isinstance(value, bytes) else value.encode())
                elif np.asarray(value).dtype.kind == "f":
                    feature.float_list.value.extend(np.ravel(value).tolist())
                else:
                    feature.int64_list.value.extend(np.ravel(value).tolist())
            data = e.SerializeToString()
            head = struct.pack("<Q", len(data))
            f.write(head + crc(head) + data + crc(data))


def encoded(array, form):
    out = io.BytesIO()
    Image.fromarray(array).save(out, form)
    return out.getvalue()
