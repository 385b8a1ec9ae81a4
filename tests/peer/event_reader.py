# event_reader.py - TensorBoard's event files, read without TensorBoard.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import glob
import os
import struct

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def make_event():
    """The protocol buffers of TensorBoard, only the fields used here."""
    f = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t",
                                           syntax="proto3")
    kinds = {"double": 1, "float": 2, "int64": 3, "int32": 5, "string": 9, "bytes": 12}

    def message(name, *fields):
        m = f.message_type.add(name=name)
        for kind, label, number in fields:
            field = m.field.add(name=label.strip("*"), number=number,
                                label=3 if label[-1] == "*" else 1)
            if kind in kinds:
                field.type = kinds[kind]
            else:
                field.type, field.type_name = 11, ".t." + kind

    message("Image", ("int32", "height", 1), ("int32", "width", 2),
            ("int32", "colorspace", 3), ("bytes", "encoded", 4))
    message("Histogram", ("double", "min", 1), ("double", "max", 2), ("double", "num", 3),
            ("double", "sum", 4), ("double", "sum_squares", 5), ("double", "limit*", 6),
            ("double", "bucket*", 7))
    message("Value", ("string", "tag", 1), ("float", "simple_value", 2),
            ("Image", "image", 4), ("Histogram", "histo", 5))
    message("Summary", ("Value", "value*", 1))
    message("SessionLog", ("int32", "status", 1))
    message("Event", ("double", "wall_time", 1), ("int64", "step", 2),
            ("string", "file_version", 3), ("Summary", "summary", 5),
            ("SessionLog", "session_log", 7))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(f)
    kind = pool.FindMessageTypeByName("t.Event")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(kind)
    return message_factory.MessageFactory(pool).GetPrototype(kind)


def crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = crc_table()


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(path, Event):
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        n, = struct.unpack_from("<Q", data, at)
        body = data[at + 12:at + 12 + n]
        sums = struct.unpack_from("<I", data, at + 8) + struct.unpack_from(
            "<I", data, at + 12 + n)
        if sums != (masked(data[at:at + 8]), masked(body)):
            raise ValueError("%s: wrong sum at byte %d" % (path, at))
        event = Event.FromString(body)
        at += 16 + n
        yield event


def run_of(directory, run, Event):
    """All values by tag, as TensorBoard merges files: a start event removes later steps."""
    tags, starts = {}, []
    for path in sorted(glob.glob(os.path.join(directory, "events", run, "*tfevents*"))):
        first = True
        for event in events(path, Event):
            if first and event.file_version != "brain.Event:2":
                raise ValueError(path + ": no version")
            first = False
            if event.session_log.status == 1:
                starts.append(event.step)
                for tag in tags:
                    tags[tag] = [v for v in tags[tag] if v[0] < event.step]
            for value in event.summary.value:
                tags.setdefault(value.tag, []).append((event.step, value))
    return tags, starts
