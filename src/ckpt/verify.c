/* verify.c - print and check a checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "ckpt/ckpt_impl.h"

#include <inttypes.h>
#include <string.h>

static void print_head(const struct dnn_ckpt_file *file, FILE *where)
{
    size_t all = 0, bytes;
    char text[32];
    int n = dnn_ckpt_file_count(file);

    for (int i = 0; i < n; i++)
        if (dnn_ckpt_bytes(dnn_ckpt_file_array(file, i), &bytes, NULL) == 0)
            all += bytes;
    fprintf(where, "%s: step %" PRId64 ", %d array%s, %s, %zu bytes of state\n",
            dnn_ckpt_file_path(file), dnn_ckpt_file_step(file), n, n == 1 ? "" : "s",
            dnn_text_bytes(text, sizeof text, (double)all),
            strlen(dnn_ckpt_file_state(file)));
}

static int name_width(const struct dnn_ckpt_file *file)
{
    size_t max = strlen("name");

    for (int i = 0; i < dnn_ckpt_file_count(file); i++) {
        size_t len = strlen(dnn_ckpt_file_array(file, i)->name);
        if (len > max) max = len;
    }
    return max > 60 ? 60 : (int)max;
}

/* Print a row per array; returns the number of damaged arrays, and the error of the
 * first one. */
static int print_arrays(struct dnn_ckpt_file *file, FILE *where, struct dnn_err *err)
{
    int width = name_width(file), bad = 0;
    char shape[DNN_SHAPE_TEXT];

    fprintf(where, "%-*s  %-4s  %-16s  checksum\n", width, "name", "type", "shape");
    for (int i = 0; i < dnn_ckpt_file_count(file); i++) {
        const struct dnn_ckpt_array *a = dnn_ckpt_file_array(file, i);
        struct dnn_err why = {0};
        int rc = dnn_ckpt_file_check(file, i, &why);

        fprintf(where, "%-*s  %-4s  %-16s  %016" PRIx64 " %s\n", width, a->name,
                dnn_dtype_name(a->type), dnn_shape_text(shape, sizeof shape, &a->shape),
                dnn_ckpt_file_sum(file, i),
                rc == 0           ? "ok"
                : rc == DNN_EDATA ? "WRONG"
                                  : "not read");
        if (rc < 0 && bad++ == 0) *err = why;
    }
    return bad;
}

int dnn_ckpt_verify(const char *path, FILE *where, struct dnn_err *err)
{
    struct dnn_ckpt_file *file;

    DNN_TRY(dnn_ckpt_file_open(path, &file, err));
    print_head(file, where);
    int n = dnn_ckpt_file_count(file);
    int bad = n > 0 ? print_arrays(file, where, err) : 0;
    if (bad == 0)
        fprintf(where, "complete: all checksums are correct\n");
    else
        fprintf(where, "damaged: %d of %d arrays\n", bad, n);
    dnn_ckpt_file_close(file);
    if (ferror(where)) return dnn_fail(err, DNN_EIO, "%s: printing failed", path);
    return bad == 0 ? 0 : err->code;
}
