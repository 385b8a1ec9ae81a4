# import_images.py - images of PIL, tifffile, nibabel and a PNG writer in this file, read by
# the toolkit's importers and compared number by number.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
import gzip
import os
import struct
import subprocess
import sys
import tempfile
import zlib

import nibabel
import numpy as np
import tifffile
from PIL import Image

from tap import finish, result, skip, unless

PROGRAM = os.path.join(os.environ.get("top_builddir", "."), "tests/peer/image_dump")
TYPES = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4",
         "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8", "bool": "u1"}
rng = np.random.default_rng(7)


class Reader:
    """The importers, in one process for all files."""

    def __init__(self, folder):
        self.out = os.path.join(folder, "out.bin")
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

    def read(self, path, side="input", kind="-", gray=False):
        """The columns by name: (kind, spacing, array); or the message."""
        self.process.stdin.write(f"{side} {kind} {int(gray)} {self.out} {path}\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().rstrip("\n").split(" ", 1)
        if words[0] != "ok":
            return words[1] if len(words) > 1 else "(the program ended)"
        found, at = {}, 0
        with open(self.out, "rb") as f:
            data = f.read()
        for column in words[1].split(" | "):
            name, kind, dtype, shape, spacing = column.split(" ")
            shape = tuple(int(n) for n in shape.split("x"))
            array = np.frombuffer(data, TYPES[dtype], int(np.prod(shape)), at).reshape(shape)
            at += array.nbytes
            found[name] = (kind, [float(s) for s in spacing.split(",")], array)
        return found


def same(found, want, what, column="input", kind="image"):
    if isinstance(found, str):
        return result(what, [found])
    got = found[column]
    if got[0] != kind:
        return result(what, f"kind {got[0]} instead of {kind}")
    if got[2].dtype != want.dtype or got[2].shape != want.shape:
        return result(what, f"{got[2].dtype} {got[2].shape} instead of {want.dtype} {want.shape}")
    differ = np.argwhere(~((got[2] == want) | ((got[2] != got[2]) & (want != want))))
    why = "" if len(differ) == 0 else f"{len(differ)} differ, first at {differ[0]}: " \
        f"{got[2][tuple(differ[0])]} instead of {want[tuple(differ[0])]}"
    return result(what, why)


def fails(found, want, what):
    result(what, unless(found == want, f"{found!r} instead of {want!r}"))


def channels(array):
    return array if array.ndim > 2 else array[..., None]


# ---- PNG ----

def png_rows(samples, depth):
    """Rows of samples (HxWxC) as PNG packs them, each with filter 0."""
    out = b""
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            packed = row.astype(">u2").tobytes()
        elif depth == 8:
            packed = row.astype("u1").tobytes()
        else:
            bits = ((row[:, None].astype(int) >> np.arange(depth - 1, -1, -1)) & 1).reshape(-1)
            packed = np.packbits(bits.astype("u1")).tobytes()
        out += b"\0" + packed
    return out


def write_png(path, samples, depth, colour, interlace=False, palette=None, alpha=None):
    """colour: PNG's colour type; samples HxWxC."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    h, w = samples.shape[:2]
    if interlace:
        raw = b""
        for x, y, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                             (1, 0, 2, 2), (0, 1, 1, 2)):
            part = samples[y::dy, x::dx]
            if part.size > 0:
                raw += png_rows(part, depth)
    else:
        raw = png_rows(samples, depth)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        f.write(chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, int(interlace))))
        if palette is not None:
            f.write(chunk(b"PLTE", palette.astype("u1").tobytes()))
        if alpha is not None:
            f.write(chunk(b"tRNS", alpha))
        f.write(chunk(b"IDAT", zlib.compress(raw)))
        f.write(chunk(b"IEND", b""))


def png(reader, folder):
    path = os.path.join(folder, "a.png")
    for depth in (1, 2, 4, 8, 16):
        for colour, nch in ((0, 1), (2, 3), (3, 1), (4, 2), (6, 4)):
            if (colour in (2, 4, 6) and depth < 8) or (colour == 3 and depth == 16):
                continue
            for interlace in (False, True):
                samples = rng.integers(0, 1 << depth, (13, 21, nch))
                palette = rng.integers(0, 256, (1 << min(depth, 8), 3)) if colour == 3 else None
                write_png(path, samples, depth, colour, interlace, palette)
                name = f"png: {depth} bits, colour type {colour}{', interlaced' * interlace}"
                want = samples.astype("u2" if depth == 16 else "u1")
                if colour == 3:
                    same(reader.read(path, "target"), want, name + ", indices of a mask", "target", "mask")
                    want = palette[samples[..., 0]].astype("u1")
                elif depth < 8:
                    same(reader.read(path, "target"), want, name + ", mask as stored", "target", "mask")
                    want = (samples * 255 // ((1 << depth) - 1)).astype("u1")
                same(reader.read(path), want, name)
                if depth <= 8 and colour != 4:
                    mode = {0: "L", 2: "RGB", 3: "RGB", 6: "RGBA"}[colour]
                    same(reader.read(path), channels(np.array(Image.open(path).convert(mode))),
                         name + ", as PIL")
                    same(reader.read(path, gray=True),
                         channels(np.array(Image.open(path).convert(mode).convert("L"))),
                         name + ", grey as PIL")
    samples = rng.integers(0, 4, (9, 5, 1))
    palette = rng.integers(0, 256, (4, 3))
    write_png(path, samples, 2, 3, False, palette, bytes([0, 100]))
    same(reader.read(path), np.array(Image.open(path).convert("RGBA")), "png: palette with alpha")
    samples = rng.integers(0, 3, (9, 5, 3))
    write_png(path, samples, 8, 2, False, None, struct.pack(">HHH", 1, 1, 2))
    same(reader.read(path), np.array(Image.open(path).convert("RGBA")), "png: one colour transparent")
    write_png(path, rng.integers(4, 5, (3, 3, 1)), 4, 3, False, palette)
    fails(reader.read(path), f"{path}: pixel 0 refers to color 4, but the palette has 4", "png: colour beyond the palette")
    write_png(path, rng.integers(0, 5, (3, 3, 3)), 8, 2)
    fails(reader.read(path, "target", "mask"), f"{path}: a mask must have one channel (the class number), not 3",
         "png: a colour image is not a mask")
    same(reader.read(path, "target"), np.array(Image.open(path)), "png: colours as a target", "target")


# ---- JPEG ----

def jpeg(reader, folder):
    path = os.path.join(folder, "a.jpg")
    y, x = np.mgrid[0:97, 0:131]
    smooth = np.stack([x * 255 / 130, y * 255 / 96, 128 + 100 * np.sin(x * y / 500)], 2)
    picture = np.clip(smooth + rng.normal(0, 12, smooth.shape), 0, 255).astype("u1")
    for quality in (30, 75, 95):
        for sampling in (0, 1, 2):
            for progressive in (False, True):
                Image.fromarray(picture).save(path, quality=quality, subsampling=sampling,
                                              progressive=progressive)
                name = f"jpeg: quality {quality}, sampling {sampling}{', progressive' * progressive}"
                same(reader.read(path), np.array(Image.open(path)), name + ", as PIL")
    same(reader.read(path, gray=True), channels(np.array(Image.open(path).convert("L"))), "jpeg: grey of colours")
    Image.fromarray(picture[..., 0]).save(path, quality=80)
    same(reader.read(path), channels(np.array(Image.open(path))), "jpeg: grey")
    same(reader.read(path, "target"), channels(np.array(Image.open(path))), "jpeg: grey as a target is an image",
         "target")
    Image.fromarray(picture).convert("CMYK").save(path)
    fails(reader.read(path), f"{path}: CMYK JPEG images are not supported; convert it to RGB", "jpeg: CMYK is refused")
    Image.fromarray(picture).save(path)
    data = open(path, "rb").read()
    open(path, "wb").write(data[:len(data) // 2])
    fails(reader.read(path), f"{path}: damaged JPEG: Premature end of JPEG file", "jpeg: truncated")


# ---- TIFF ----

def tiff(reader, folder):
    path = os.path.join(folder, "a.tif")
    tiles = {"tile": (16, 32)}
    for dtype in ("u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4", "f8"):
        for nch in (1, 3, 4):
            for layout in ("strips", "tiles"):
                shape = (45, 70) + ((nch,) if nch > 1 else ())
                a = (rng.normal(0, 50, shape) if dtype[0] == "f" else rng.integers(0, 100, shape)).astype(dtype)
                if dtype[0] == "i":
                    a -= 50
                for order in ("<", ">"):
                    kw = dict(tiles) if layout == "tiles" else {"rowsperstrip": 7}
                    if nch > 1:
                        kw.update(photometric="rgb", planarconfig="contig")
                    tifffile.imwrite(path, a, byteorder=order, **kw)
                    same(reader.read(path), channels(a), f"tiff: {dtype} x {nch}, {layout}, {order}")
                if nch > 1:
                    kw["planarconfig"] = "separate"
                    tifffile.imwrite(path, np.moveaxis(a, -1, 0), **kw)
                    same(reader.read(path), a, f"tiff: {dtype} x {nch}, {layout}, channels apart")
    a = rng.integers(0, 4000, (5, 33, 41)).astype("u2")
    for kw in ({}, {"bigtiff": True}, {"compression": "zlib"}, {"compression": "zlib", "predictor": True},
               {"tile": (16, 16), "compression": "zlib"}):
        tifffile.imwrite(path, a, photometric="minisblack", metadata=None, **kw)
        same(reader.read(path), a[..., None], f"tiff: a stack of pages {kw}")
        same(reader.read(path, "target"), a[..., None], f"tiff: a stack as a mask {kw}", "target", "mask")
    tifffile.imwrite(path, a, photometric="minisblack", imagej=True)
    same(reader.read(path), a[..., None], "tiff: a stack of ImageJ")
    with tifffile.TiffWriter(path) as w:
        w.write(a[0], photometric="minisblack")
        w.write(a[1, :20], photometric="minisblack")
    fails(reader.read(path), f"{path}: page 2 is 20x41 of 1 x 16 bits, but the first is 33x41 of 1 x 16 bits; "
         "all pages of a volume must be alike", "tiff: pages that differ")
    with tifffile.TiffWriter(path) as w:
        w.write(a[0], photometric="minisblack")
        w.write(a[1, ::2, ::2], photometric="minisblack", subfiletype=1)
    same(reader.read(path), a[0][..., None], "tiff: a smaller copy is skipped")
    tifffile.imwrite(path, (a[0] >> 4).astype("u1"), photometric="miniswhite")
    same(reader.read(path), (255 - (a[0] >> 4)).astype("u1")[..., None], "tiff: 0 is white")
    rgb = rng.integers(0, 256, (40, 50, 3)).astype("u1")
    for compression in ("tiff_lzw", "packbits", "tiff_deflate", "zstd", "raw"):
        try:
            Image.fromarray(rgb).save(path, compression=compression)
        except Exception as e:
            skip(f"tiff: {compression}", f"PIL does not write it: {e}")
            continue
        same(reader.read(path), rgb, f"tiff: of PIL, {compression}")
    same(reader.read(path, gray=True), channels(np.array(Image.fromarray(rgb).convert("L"))), "tiff: grey as PIL")
    Image.fromarray(rgb).save(path, compression="jpeg", quality=90)
    same(reader.read(path), np.array(Image.open(path)), "tiff: JPEG inside, as PIL")
    few = Image.fromarray(rgb).quantize(17)
    few.save(path)
    same(reader.read(path), np.array(few.convert("RGB")), "tiff: palette")
    same(reader.read(path, "target"), np.array(few)[..., None], "tiff: indices of a mask", "target", "mask")
    bits = rng.integers(0, 2, (37, 51)).astype(bool)
    for compression in ("raw", "group4", "packbits"):
        Image.fromarray(bits).save(path, compression=compression)
        same(reader.read(path), bits[..., None].astype("u1") * 255, f"tiff: bits, {compression}")
    Image.fromarray(rgb).convert("CMYK").save(path)
    fails(reader.read(path), f"{path}: page 1: photometric interpretation 5 is not supported; "
         "grayscale, RGB and palette are", "tiff: CMYK is refused")


# ---- NIfTI ----

def nifti(reader, folder):
    affine = np.array([[-1.5, 0.1, 0, 90], [0.1, 2, 0, -126], [0, 0.2, 2.5, -72], [0, 0, 0, 1]])
    for kind, version in ((nibabel.Nifti1Image, 1), (nibabel.Nifti2Image, 2)):
        for suffix in (".nii", ".nii.gz"):
            path = os.path.join(folder, "a" + suffix)
            for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"):
                for order in ("<", ">"):
                    a = (rng.normal(0, 99, (5, 6, 7)) if dtype[0] == "f" else
                         rng.integers(0, 100, (5, 6, 7))).astype(order + dtype)
                    header = kind.header_class(endianness=order)
                    image = kind(a, affine, header, dtype=dtype)
                    image.to_filename(path)
                    name = f"nifti-{version}{suffix} {order}{dtype}"
                    found = reader.read(path)
                    same(found, a.astype(dtype).T[..., None], name)
                    matrix = nibabel.load(path).affine[:3].reshape(-1)
                    same(found, matrix, name + ": affine", "input.affine", "values")
                    near = np.allclose(found["input"][1], np.linalg.norm(affine[:3, :3], axis=0)[::-1])
                    result(name + ": spacing", unless(near, found["input"][1]))
    path = os.path.join(folder, "b.nii.gz")
    for shape, want in (((9,), (9, 1)), ((4, 9), (9, 4, 1)), ((4, 5, 6, 3), (6, 5, 4, 3)),
                        ((4, 5, 6, 1, 3), (6, 5, 4, 3)), ((4, 5, 1), (1, 5, 4, 1)), ((4, 5, 6, 1), (6, 5, 4, 1))):
        a = rng.integers(-99, 99, shape).astype("i2")
        nibabel.Nifti1Image(a, affine).to_filename(path)
        b = a.reshape(shape[:3] + (-1,)) if len(shape) > 3 else a[..., None]
        space = tuple(range(b.ndim - 2, -1, -1))
        b = b.transpose(space + (b.ndim - 1,))
        assert b.shape == want
        same(reader.read(path), b, f"nifti: axes {shape}")
    nibabel.Nifti1Image(rng.normal(0, 1, (4, 5, 6, 2, 3)), affine).to_filename(path)
    fails(reader.read(path), f"{path}: 2 time steps, 3 vector components and 1 colors per voxel; only one of them can "
         "become channels", "nifti: two kinds of channels")
    a = rng.normal(0, 1, (6, 7, 8))
    image = nibabel.Nifti1Image(a, affine)
    image.set_data_dtype("i2")
    image.to_filename(path)
    loaded = nibabel.load(path)
    result("nifti: nibabel did scale", unless(loaded.dataobj.slope != 1))
    want = (np.asarray(loaded.dataobj.get_unscaled()).astype("f8") * loaded.dataobj.slope +
            loaded.dataobj.inter).astype("f4")
    same(reader.read(path), want.T[..., None], "nifti: scaled values are f32")
    image = nibabel.Nifti1Image(a.astype("f4"), None)
    image.header.set_qform(affine, 1)
    image.header["sform_code"] = 0
    image.to_filename(path)
    found = reader.read(path)
    want = nibabel.load(path).header.get_qform()[:3].reshape(-1)
    result("nifti: qform where there is no sform",
           unless(not isinstance(found, str) and
                  np.allclose(found["input.affine"][2], want, rtol=1e-6, atol=1e-5), found))
    mask = rng.integers(0, 3, (6, 7, 8))
    nibabel.Nifti1Image(mask.astype("f8"), affine).to_filename(path)
    same(reader.read(path, "target", "mask"), mask.T[..., None].astype("i4"), "nifti: a mask of real numbers",
         "target", "mask")
    nibabel.Nifti1Image(mask.astype("u1"), affine).to_filename(path)
    same(reader.read(path, "target"), mask.T[..., None].astype("u1"), "nifti: integers as target are a mask",
         "target", "mask")
    rgb = np.zeros((3, 4, 5), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
    for name in "RGB":
        rgb[name] = rng.integers(0, 256, (3, 4, 5))
    nibabel.Nifti1Image(rgb, affine).to_filename(path)
    want = np.stack([rgb[n] for n in "RGB"], -1).transpose(2, 1, 0, 3)
    same(reader.read(path), want, "nifti: colours")
    nibabel.Nifti1Image(rng.normal(0, 1, (3, 4, 5)).astype("c8"), affine).to_filename(path)
    fails(reader.read(path), f"{path}: unsupported data type 32 (COMPLEX64)", "nifti: complex")
    image = nibabel.Nifti1Image(np.zeros((40, 50, 60), "i2"), affine)
    image.to_filename(path)
    whole = gzip.open(path).read()
    data = bytearray(whole)
    data[42:48] = struct.pack("<hhh", 3000, 3000, 3000)
    with gzip.open(path, "wb") as f:
        f.write(data)
    fails(reader.read(path), f"{path}: i16 3000x3000x3000x1 needs 50.3 GiB, which exceeds the limit of 1.0 GiB",
         "nifti: gzip, more than the limit")
    data[42:48] = struct.pack("<hhh", 700, 700, 700)
    with gzip.open(path, "wb") as f:
        f.write(data)
    size = os.path.getsize(path)
    fails(reader.read(path), f"{path}: truncated: the header declares {700 ** 3 * 2 + 352} bytes, which {size} "
         "bytes of gzip data cannot contain", "nifti: gzip file too small for its header")
    data[42:48] = struct.pack("<hhh", 40, 50, 61)
    with gzip.open(path, "wb") as f:
        f.write(data)
    fails(reader.read(path), f"{path}: truncated: {len(whole)} of {len(whole) + 4000} bytes",
         "nifti: truncated content in gzip")
    noise = rng.integers(0, 9999, (40, 50, 60)).astype("i2")
    nibabel.Nifti1Image(noise, affine).to_filename(path)
    data = open(path, "rb").read()
    open(path, "wb").write(data[:len(data) // 2])
    found = reader.read(path)
    result("nifti: truncated gzip file",
           unless(isinstance(found, str) and found.startswith(path + ": "), found))
    data = bytearray(data)
    data[-6] ^= 255
    open(path, "wb").write(data)
    found = reader.read(path)
    result("nifti: gzip with a wrong checksum",
           unless(isinstance(found, str) and found.startswith(path + ": "), found))
    nibabel.Nifti1Pair(a, affine).to_filename(os.path.join(folder, "pair.img"))
    path = os.path.join(folder, "pair.nii")
    os.rename(os.path.join(folder, "pair.hdr"), path)
    fails(reader.read(path), f"{path}: NIfTI pairs (.hdr and .img) are not supported; save it as one "
         ".nii file", "nifti: a pair")


with tempfile.TemporaryDirectory() as place:
    importers = Reader(place)
    for part in (png, jpeg, tiff, nifti):
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            part(importers, place)
    importers.process.stdin.close()
    result("the program succeeded", unless(importers.process.wait() == 0))
finish()
