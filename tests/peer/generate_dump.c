/* generate_dump.c - write samples of a generator as raw numbers, for generate.py.
 *
 *   generate_dump JSON FIRST COUNT PREFIX   column c of sample i -> PREFIX.i.c
 *   generate_dump sobol DIMS FIRST COUNT    points as text, one per line
 *   generate_dump roots ETA COUNT           roots of the expansion as text
 *
 * It prints file, type and shape of each column.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json.h"
#include "base/text.h"
#include "generate/generate.h"
#include "generate/generate_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int dump(const struct dnn_sample *sample, int64_t i, const char *prefix)
{
    for (int c = 0; c < sample->ncols; c++) {
        const struct dnn_array *a = &sample->col[c];
        char path[1024], shape[DNN_SHAPE_TEXT];

        snprintf(path, sizeof path, "%s.%" PRId64 ".%d", prefix, i, c);
        FILE *f = fopen(path, "wb");
        if (f == NULL) return -1;
        size_t n = fwrite(a->data, 1, dnn_array_bytes(a), f);
        if (fclose(f) != 0 || n != dnn_array_bytes(a)) return -1;
        printf("%s %s %s\n", path, dnn_dtype_name(a->type),
               dnn_shape_text(shape, sizeof shape, &a->shape));
    }
    return 0;
}

static int samples(const char *json, int64_t first, int64_t count, const char *prefix)
{
    struct dnn_err err = {0};
    struct dnn_json *file = NULL;
    struct dnn_source *source = NULL;
    struct dnn_sample sample = {0};
    int rc = dnn_json_text("train.json", json, strlen(json), &file, &err);

    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_generate_open(&top, &source, &err);
    }
    for (int64_t i = first; rc == 0 && i < first + count; i++) {
        rc = dnn_source_read(source, i, &sample, &err);
        if (rc == 0 && dump(&sample, i, prefix) < 0)
            rc = dnn_fail(&err, DNN_EIO, "%s: cannot be written", prefix);
    }
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    dnn_sample_free(&sample);
    dnn_source_close(source);
    dnn_json_free(file);
    return rc < 0;
}

static int numbers(int argc, char **argv)
{
    long long dims, first, count;
    double eta;

    if (argc == 5 && strcmp(argv[1], "sobol") == 0 && dnn_text_int(argv[2], &dims) &&
        dnn_text_int(argv[3], &first) && dnn_text_int(argv[4], &count)) {
        for (long long i = first; i < first + count; i++)
            for (int d = 0; d < dims && d < DNN_SOBOL_DIMS; d++)
                printf("%.17g%c", dnn_sobol(d, (uint32_t)i), d + 1 < dims ? ' ' : '\n');
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "roots") == 0 && dnn_text_real(argv[2], &eta) &&
        dnn_text_int(argv[3], &count)) {
        for (long long i = 1; i <= count; i++)
            printf("%.17g\n", dnn_diffusivity_root(eta, i));
        return 0;
    }
    fputs("usage: generate_dump JSON FIRST COUNT PREFIX | sobol DIMS FIRST COUNT | "
          "roots ETA COUNT\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    long long first, count;

    if (argc == 5 && argv[1][0] == '{' && dnn_text_int(argv[2], &first) &&
        dnn_text_int(argv[3], &count))
        return samples(argv[1], first, count, argv[4]);
    return numbers(argc, argv);
}
