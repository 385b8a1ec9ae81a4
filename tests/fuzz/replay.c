/* replay.c - runs a fuzz target on files that a fuzzer has found: the corpus as a test,
 * without the fuzzer.
 *
 *   fuzz_importers FILE...
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int main(int argc, char **argv)
{
    struct dnn_err err = {0};

    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        char *text;
        size_t len;

        if (dnn_file_read(argv[i], 64 << 20, &text, &len, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        /* Print the name first, so that it is known after a crash. */
        fprintf(stderr, "%s\n", argv[i]);
        LLVMFuzzerTestOneInput((const uint8_t *)text, len);
        dnn_free(text);
    }
    printf("%d files\n", argc - 1);
    return 0;
}
