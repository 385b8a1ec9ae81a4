/* import_cifar.c - CIFAR-10 and CIFAR-100 files, valid and damaged.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import_tools.h"

enum { IMAGE = 3 * 32 * 32 };

/* Records with these labels; the planes of an image are all r, all g, all b. */
static void cifar(const char *path, int nlabels, int n, const char *labels)
{
    unsigned char bytes[4 * (2 + IMAGE)];
    size_t at = 0;

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < nlabels; k++)
            bytes[at++] = (unsigned char)labels[i * nlabels + k];
        for (int c = 0; c < 3; c++) {
            memset(bytes + at, 10 * i + c, IMAGE / 3);
            at += IMAGE / 3;
        }
    }
    put(path, bytes, at);
}

static void ten(void)
{
    cifar("c10/data_batch_1.bin", 1, 2, "\3\0");
    cifar("c10/data_batch_2.bin", 1, 1, "\1");
    cifar("c10/test_batch.bin", 1, 1, "\2");
    is_source("{\"input_path\": \"c10/data_batch_1.bin\"}",
              "2: input image u8 32x32x3, target label i32 scalar 10\n"
              "data_batch_1.bin[0] 3: 0 1 2 0 1 2 0 1 2 0 1 2 | 3\n"
              "data_batch_1.bin[1] 0: 10 11 12 10 11 12 10 11 12 10 11 12 | 0\n");
    put_text("c10/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
    is_source(
        "{\"input_path\": \"c10\"}",
        "4: input image u8 32x32x3, target label i32 scalar 10 (a b c d e f g h i "
        "j)\n"
        "data_batch_1.bin[0] 3: 0 1 2 0 1 2 0 1 2 0 1 2 | 3\n"
        "data_batch_1.bin[1] 0: 10 11 12 10 11 12 10 11 12 10 11 12 | 0\n"
        "data_batch_2.bin[0] 1: 0 1 2 0 1 2 0 1 2 0 1 2 | 1\n"
        "test_batch.bin[0] 2: 0 1 2 0 1 2 0 1 2 0 1 2 | 2\n");
    is_source(
        "{\"input_path\": \"c10/\", \"split\": \"test\"}",
        "1: input image u8 32x32x3, target label i32 scalar 10 (a b c d e f g h i "
        "j)\n"
        "test_batch.bin[0] 2: 0 1 2 0 1 2 0 1 2 0 1 2 | 2\n");
    refused("{\"input_path\": \"c10\", \"split\": \"val\"}", DNN_EDATA,
            "c10: there is no split \"val\"");
    put_text("c10/batches.meta.txt", "a\nb\n");
    refused("{\"input_path\": \"c10\"}", DNN_EDATA,
            "c10/batches.meta.txt: 2 class names, but CIFAR-10 has 10 classes");
}

static void hundred(void)
{
    cifar("c100/train.bin", 2, 2, "\4\143\0\7");
    is_source("{\"input_path\": \"c100\"}",
              "2: input image u8 32x32x3, target label i32 scalar 100, coarse extra "
              "label i32 scalar 20\n"
              "train.bin[0] 99: 0 1 2 0 1 2 0 1 2 0 1 2 | 99 | 4\n"
              "train.bin[1] 7: 10 11 12 10 11 12 10 11 12 10 11 12 | 7 | 0\n");
    is_source("{\"input_path\": \"c100\", \"target_name\": \"coarse\"}",
              "2: input image u8 32x32x3, target label i32 scalar 20, fine extra label "
              "i32 scalar 100\n"
              "train.bin[0] 4: 0 1 2 0 1 2 0 1 2 0 1 2 | 4 | 99\n"
              "train.bin[1] 0: 10 11 12 10 11 12 10 11 12 10 11 12 | 0 | 7\n");
    refused("{\"input_path\": \"c100\", \"target_name\": \"rough\"}", DNN_ECONFIG,
            "c100/train.bin: CIFAR-100 has no labels named \"rough\"; available: "
            "coarse and fine");
}

static void damaged(void)
{
    cifar("some.bin", 2, 1, "\24\0");
    unreadable("{\"input_path\": \"some.bin\"}", 0,
               "some.bin: sample 0: label 20 is out of range; CIFAR-100 has 20 coarse "
               "classes, 0 to 19");
    cifar("data_batch_1.bin", 1, 1, "\12");
    unreadable("{\"input_path\": \"data_batch_1.bin\"}", 0,
               "data_batch_1.bin: sample 0: label 10 is out of range; CIFAR-10 has 10 "
               "fine classes, 0 to 9");
    put("cut.bin", "123", 3);
    refused("{\"input_path\": \"cut.bin\"}", DNN_EDATA,
            "cut.bin: 3 bytes is not a multiple of the record size of CIFAR-10 (3073, "
            "data_batch_1.bin) or CIFAR-100 (3074, train.bin)");
    put("empty.bin", "", 0);
    refused("{\"input_path\": \"empty.bin\"}", DNN_EDATA,
            "empty.bin: 0 bytes is not a multiple of the record size of CIFAR-10 "
            "(3073, data_batch_1.bin) or CIFAR-100 (3074, train.bin)");
}

int main(void)
{
    tools_start();
    ten();
    hundred();
    damaged();
    return tools_end();
}
