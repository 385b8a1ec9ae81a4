/* import_raw.c - raw files, with right and wrong descriptions.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import_tools.h"

static void described(void)
{
    put("a.raw", "\0\1\2\3\4\5\6\7\10\11\12\13", 12);
    is_source("{\"input_path\": \"a.raw\", \"input_shape\": [2, 3]}",
              "2: input image u8 2x3x1\na.raw[0]: 0 1 2 3 4 5\na.raw[1]: 6 7 8 9 10 "
              "11\n");
    is_source("{\"input_path\": \"a.raw\", \"input_shape\": [2, 2, 3]}",
              "1: input image u8 2x2x3\na.raw: 0 1 2 3 4 5 6 7 8 9 10 11\n");
    is_source("{\"input_path\": \"a.raw\", \"input_shape\": [3, 2, 2], "
              "\"input_layout\": \"first\"}",
              "1: input image u8 2x2x3\na.raw: 0 4 8 1 5 9 2 6 10 3 7 11\n");
    is_source("{\"input_path\": \"a.raw\", \"input_shape\": [3, 2, 2], "
              "\"input_layout\": \"none\"}",
              "1: input image u8 3x2x2x1\na.raw: 0 1 2 3 4 5 6 7 8 9 10 11\n");
    is_source("{\"input_path\": \"a.raw\", \"input_shape\": 4}",
              "3: input values u8 4\na.raw[0]: 0 1 2 3\na.raw[1]: 4 5 6 7\na.raw[2]: 8 "
              "9 10 11\n");
    is_source(
        "{\"input_path\": \"a.raw\", \"input_shape\": [2], \"input_dtype\": "
        "\"u16\"}",
        "3: input values u16 2\na.raw[0]: 256 770\na.raw[1]: 1284 1798\na.raw[2]: "
        "2312 2826\n");
    is_source("{\"input_path\": \"a.raw\", \"input_shape\": [2], \"input_dtype\": "
              "\"u16\", \"input_big_endian\": true, \"input_offset\": 8}",
              "1: input values u16 2\na.raw: 2057 2571\n");
    put("x.bin", "\1\2", 2);
    is_source("{\"input_path\": \"x.bin\", \"input_shape\": [1, 2]}",
              "1: input image u8 1x2x1\nx.bin: 1 2\n");
    put("gz.raw", "\x1f\x8b\7\0", 4); /* only nearly compressed */
    is_source("{\"input_path\": \"gz.raw\", \"input_shape\": [2, 2]}",
              "1: input image u8 2x2x1\ngz.raw: 31 139 7 0\n");
    put("b.raw", "\1\0", 2);
    is_source("{\"input_path\": \"b.raw\", \"input_shape\": [2], \"input_dtype\": "
              "\"bool\"}",
              "1: input values bool 2\nb.raw: 1 0\n");
}

static void wrong(void)
{
    refused("{\"input_path\": \"a.raw\"}", DNN_ECONFIG,
            "a.raw: raw file: set \"shape\" to the shape of a sample");
    refused("{\"input_path\": \"a.raw\", \"input_shape\": [5]}", DNN_EDATA,
            "a.raw: 12 bytes after an offset of 0 is not a multiple of the sample "
            "size: u8 5 (5 bytes each)");
    refused("{\"input_path\": \"a.raw\", \"input_shape\": [2], \"input_offset\": 12}",
            DNN_EDATA,
            "a.raw: 0 bytes after an offset of 12 is not a multiple of the sample "
            "size: u8 2 (2 bytes each)");
    refused("{\"input_path\": \"a.raw\", \"input_shape\": [2], \"input_offset\": 99}",
            DNN_EDATA,
            "a.raw: 0 bytes after an offset of 99 is not a multiple of the sample "
            "size: u8 2 (2 bytes each)");
    refused("{\"input_path\": \"a.raw\", \"input_shape\": [2], \"input_dtype\": "
            "\"float\"}",
            DNN_ECONFIG,
            "a.raw: dtype must be one of f32, f64, f16, bf16, i8, u8, i16, u16, i32, "
            "u32, i64, u64, bool, not \"float\"");
    refused("{\"input_path\": \"a.raw\", \"input_shape\": [2, 2, 3], \"whole\": true, "
            "\"input_dtype\": \"u8\", \"limit\": 11}",
            DNN_EDATA, "a.raw: u8 2x2x3 needs 12 B, which exceeds the limit of 11 B");
    refused("{\"input_path\": \"a.raw\", \"input_shape\": [6], \"whole\": true}",
            DNN_EDATA,
            "a.raw: contains 2 samples of u8 6, but each file must be one sample");
    refused("{\"input_path\": \"a.raw\", \"input_shape\": [1000000000000000, "
            "1000000000000000]}",
            DNN_ECONFIG,
            "a.raw: shape 1000000000000000x1000000000000000: the number of elements "
            "overflows");
    unreadable("{\"input_path\": \"a.raw\", \"input_shape\": [4], \"input_dtype\": "
               "\"bool\"}",
               0, "a.raw: element 2 is 2; a bool must be 0 or 1");
}

int main(void)
{
    tools_start();
    described();
    wrong();
    return tools_end();
}
