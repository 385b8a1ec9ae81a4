/* augment_dump.c - apply transforms to raw numbers, for augment.py.
 *
 *   augment_dump LIST image|mask TYPE SHAPE IN COUNT OUT
 *
 * reads one array from IN and applies the JSON list COUNT times, as to the samples 0,
 * 1, 2 ... of epoch 0; mixup mixes with zeros.  The results are concatenated in OUT;
 * their types and shapes are printed on stdout.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json.h"
#include "base/text.h"
#include "transform/augment.h"

#include <stdio.h>
#include <string.h>

struct job {
    struct dnn_augment *augment;
    struct dnn_column col;
    struct dnn_array in;
    long long count;
};

static int read_array(char **argv, struct job *job, struct dnn_err *err)
{
    enum dnn_dtype type;
    struct dnn_shape shape;

    DNN_TRY(dnn_dtype_find(argv[3], &type, err));
    DNN_TRY(dnn_shape_parse(argv[4], &shape, err));
    DNN_TRY(dnn_array_make(&job->in, type, &shape, err));
    FILE *f = fopen(argv[5], "rb");
    if (f == NULL) return dnn_fail(err, DNN_EIO, "%s: cannot be read", argv[5]);
    size_t n = fread(job->in.data, 1, dnn_array_bytes(&job->in), f);
    fclose(f);
    if (n != dnn_array_bytes(&job->in))
        return dnn_fail(err, DNN_EDATA, "%s: is too short", argv[5]);
    job->col = (struct dnn_column){
        .name = "input",
        .kind = strcmp(argv[2], "mask") == 0 ? DNN_KIND_MASK : DNN_KIND_IMAGE,
        .type = type,
        .shape = shape,
    };
    return 0;
}

static int read_job(char **argv, struct job *job, struct dnn_err *err)
{
    struct dnn_json *file;

    if (!dnn_text_int(argv[6], &job->count))
        return dnn_fail(err, DNN_EUSAGE, "\"%s\" is not a number", argv[6]);
    DNN_TRY(dnn_json_text("list", argv[1], strlen(argv[1]), &file, err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_augment_read(&top, NULL, NULL, &job->augment, err);
    dnn_json_free(file);
    return rc < 0 ? rc : read_array(argv, job, err);
}

static int run(const struct job *job, FILE *out, struct dnn_err *err)
{
    struct dnn_augment_scratch *scratch = dnn_augment_scratch_make();
    struct dnn_sample a = {.ncols = 1}, b = {.ncols = 1};
    int rc = 0;

    for (long long i = 0; rc == 0 && i < job->count; i++) {
        char text[DNN_SHAPE_TEXT];

        rc = dnn_array_copy(&job->in, &a.col[0], err);
        if (rc == 0) rc = dnn_array_copy(&job->in, &b.col[0], err);
        if (rc < 0) break;
        memset(b.col[0].data, 0, dnn_array_bytes(&b.col[0]));
        rc = dnn_augment_apply(job->augment, 1, &job->col, 5, 0, i, &a, &b, scratch,
                               err);
        if (rc < 0) break;
        fwrite(a.col[0].data, 1, dnn_array_bytes(&a.col[0]), out);
        printf("%s %s\n", dnn_dtype_name(a.col[0].type),
               dnn_shape_text(text, sizeof text, &a.col[0].shape));
    }
    dnn_sample_free(&a);
    dnn_sample_free(&b);
    dnn_augment_scratch_free(scratch);
    return rc;
}

int main(int argc, char **argv)
{
    struct dnn_err err = {0};
    struct job job = {0};
    int rc;

    if (argc != 8) {
        fputs("usage: augment_dump LIST image|mask TYPE SHAPE IN COUNT OUT\n", stderr);
        return 2;
    }
    rc = read_job(argv, &job, &err);
    if (rc == 0) {
        FILE *out = fopen(argv[7], "wb");

        rc = out == NULL ? dnn_fail(&err, DNN_EIO, "%s: cannot be made", argv[7])
                         : run(&job, out, &err);
        if (out != NULL && fclose(out) != 0 && rc == 0)
            rc = dnn_fail(&err, DNN_EIO, "%s: cannot be written", argv[7]);
    }
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    dnn_array_free(&job.in);
    dnn_augment_free(job.augment);
    return rc < 0;
}
