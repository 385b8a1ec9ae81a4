/* import_idx.c - IDX files, valid and damaged.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import_tools.h"

/* A file from its magic number, extents and bytes. */
static void idx(const char *path, int type, int ndim, const int *dim, const void *bytes,
                size_t n)
{
    unsigned char file[256] = {0, 0, (unsigned char)type, (unsigned char)ndim};
    size_t at = 4;

    for (int i = 0; i < ndim; i++) {
        file[at++] = (unsigned char)(dim[i] >> 24);
        file[at++] = (unsigned char)(dim[i] >> 16);
        file[at++] = (unsigned char)(dim[i] >> 8);
        file[at++] = (unsigned char)dim[i];
    }
    memcpy(file + at, bytes, n);
    put(path, file, at + n);
}

#define DIMS(...)                                                                      \
    (const int[])                                                                      \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }

static void whole(void)
{
    idx("m/train-images-idx3-ubyte", 8, 3, DIMS(2, 1, 2), "\1\2\3\4", 4);
    idx("m/train-labels-idx1-ubyte", 8, 1, DIMS(2), "\0\3", 2);
    is_source("{\"input_path\": \"m/train-images-idx3-ubyte\"}",
              "2: input image u8 1x2x1, target label i32 scalar 4\n"
              "train-images-idx3-ubyte[0] 0: 1 2 | 0\n"
              "train-images-idx3-ubyte[1] 3: 3 4 | 3\n");
    idx("m/t10k-images-idx3-ubyte", 8, 3, DIMS(1, 1, 2), "\5\6", 2);
    idx("m/t10k-labels-idx1-ubyte", 8, 1, DIMS(1), "\1", 1);
    is_source("{\"input_path\": \"m\"}",
              "3: input image u8 1x2x1, target label i32 scalar 4\n"
              "train-images-idx3-ubyte[0] 0: 1 2 | 0\n"
              "train-images-idx3-ubyte[1] 3: 3 4 | 3\n"
              "t10k-images-idx3-ubyte[0] 1: 5 6 | 1\n");
    is_source("{\"input_path\": \"m\", \"split\": \"test\"}",
              "1: input image u8 1x2x1, target label i32 scalar 2\n"
              "t10k-images-idx3-ubyte[0] 1: 5 6 | 1\n");
    refused("{\"input_path\": \"m\", \"split\": \"dev\"}", DNN_EDATA,
            "m: there is no split \"dev\"; use train or test");
    refused(
        "{\"input_path\": \"m/t10k-images-idx3-ubyte\", \"split\": \"train\"}",
        DNN_EDATA,
        "m/t10k-images-idx3-ubyte: belongs to the split \"test\", not to \"train\"");
    is_source("{\"input_path\": \"m/train-images-idx3-ubyte\", \"target_path\": "
              "\"m/train-labels-idx1-ubyte\"}",
              "2: input image u8 1x2x1, target label u8 scalar 4\n"
              "train-images-idx3-ubyte[0] 0: 1 2 | 0\n"
              "train-images-idx3-ubyte[1] 3: 3 4 | 3\n");
    idx("reals.idx", 0x0d, 2, DIMS(2, 1), "\x3f\x80\0\0\xc0\0\0\0", 8);
    is_source("{\"input_path\": \"reals.idx\"}",
              "2: input values f32 1\nreals.idx[0] -1: 1\nreals.idx[1] -1: -2\n");
    idx("shorts", 0x0b, 2, DIMS(1, 2), "\1\0\xff\xff", 4);
    is_source("{\"input_path\": \"shorts\"}",
              "1: input values i16 2\nshorts[0] -1: 256 -1\n");
}

static void damaged(void)
{
    idx("m/train-labels-idx1-ubyte", 8, 1, DIMS(3), "\0\3\1", 3);
    refused("{\"input_path\": \"m\"}", DNN_EDATA,
            "m/train-labels-idx1-ubyte: 3 labels, but m/train-images-idx3-ubyte has 2 "
            "samples");
    idx("m/train-labels-idx1-ubyte", 0x0d, 1, DIMS(2), "\0\0\0\0\0\0\0\0", 8);
    refused("{\"input_path\": \"m\"}", DNN_EDATA,
            "m/train-labels-idx1-ubyte: labels must be a 1-D integer array, not f32 2");
    idx("m/train-labels-idx1-ubyte", 9, 1, DIMS(2), "\0\xff", 2);
    refused("{\"input_path\": \"m\"}", DNN_EDATA,
            "m/train-labels-idx1-ubyte: label 1 is -1; labels must be 0 or more");
    put("m/train-labels-idx1-ubyte", "\0\0", 2);
    refused("{\"input_path\": \"m\"}", DNN_EDATA,
            "m/train-labels-idx1-ubyte: truncated: 2 of 4 bytes");
    idx("cut.idx", 8, 3, DIMS(2, 2, 2), "\1\2\3\4", 4);
    refused("{\"input_path\": \"cut.idx\"}", DNN_EDATA,
            "cut.idx: the header declares u8 2x2x2, but 4 bytes follow it");
    idx("more.idx", 8, 3, DIMS(1, 2, 2), "\1\2\3\4\5", 5);
    refused("{\"input_path\": \"more.idx\"}", DNN_EDATA,
            "more.idx: the header declares u8 1x2x2, but 5 bytes follow it");
    idx("lie.idx", 0x0e, 4, DIMS(-1, -1, -1, -1), "\1", 1);
    refused("{\"input_path\": \"lie.idx\"}", DNN_EDATA,
            "lie.idx: the header declares f64 "
            "4294967295x4294967295x4294967295x4294967295, but 1 bytes follow it");
    put("no.idx", "PNG?xxxxxxxx", 12);
    refused("{\"input_path\": \"no.idx\"}", DNN_EDATA,
            "no.idx: not an IDX file: it begins with 50 4e 47, expected 00 00 and a "
            "type (08, 09, 0b to 0e)");
    idx("axes.idx", 8, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1), "\1", 1);
    refused("{\"input_path\": \"axes.idx\"}", DNN_EDATA,
            "axes.idx: the header declares 9 axes; 1 to 8 are supported");
    idx("zero.idx", 8, 2, DIMS(0, 4), "", 0);
    refused("{\"input_path\": \"zero.idx\"}", DNN_EDATA,
            "zero.idx: contains no samples");
}

int main(void)
{
    tools_start();
    whole();
    damaged();
    return tools_end();
}
