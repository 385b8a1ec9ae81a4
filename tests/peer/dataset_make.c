/* dataset_make.c - writes the small dataset of the tests: dataset_make PATH [OPERATOR].
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "dataset_made.h"

int main(int argc, char **argv)
{
    struct dnn_bp_how how = {.compress = argc > 2 ? argv[2] : NULL};
    struct dnn_err err = {0};
    char hash[33];

    if (argc < 2) return 2;
    if (made_write(NULL, argv[1], &how, hash, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return dnn_exit_status(err.code);
    }
    printf("%s\n", hash);
    return 0;
}
