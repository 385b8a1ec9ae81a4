/* import_made.h - files written by a test and opened by one importer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_IMPORT_MADE_H
#define DNN_TESTS_IMPORT_MADE_H

#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "import/import_impl.h"

#include <stdlib.h>
#include <unistd.h>

static char made_dir[] = "/tmp/import_made.XXXXXX";
static char *made_path; /* the file under test */

/* A directory, and the path of the one file in it. */
static inline void made_start(const char *name)
{
    if (mkdtemp(made_dir) == NULL) exit(99);
    made_path = dnn_format("%s/%s", made_dir, name);
}

static inline int made_end(void)
{
    dnn_file_remove_tree(made_dir, NULL);
    dnn_free(made_path);
    return done();
}

/* Without fsync, unlike dnn_file_write(): tests of damage write many files. */
static inline void made_file(const void *bytes, size_t n)
{
    FILE *file = fopen(made_path, "wb");

    if (file == NULL || fwrite(bytes, 1, n, file) != n || fclose(file) != 0) {
        printf("Bail out! %s cannot be written\n", made_path);
        exit(99);
    }
}

static inline struct dnn_import made_how(void)
{
    return (struct dnn_import){.input.kind = -1, .target.kind = -1};
}

/* The file as the input or the target of how. */
static inline struct dnn_source *made_open(const struct dnn_importer *importer,
                                           const struct dnn_import *how, bool target,
                                           struct dnn_err *err)
{
    struct dnn_source *source = NULL;
    int rc = importer->open(made_path, how, target ? &how->target : &how->input,
                            &source, err);

    if (rc < 0 && source != NULL) {
        ok(false, "a failure gives no source");
        return NULL;
    }
    return source;
}

/* Opening, or reading all samples, fails with this message after the path. */
static inline void made_refused(const struct dnn_importer *importer,
                                const struct dnn_import *how, bool target, int code,
                                const char *want, const char *what)
{
    struct dnn_err err = {0};
    struct dnn_sample sample = {0};
    size_t len = strlen(made_path);
    struct dnn_source *source = made_open(importer, how, target, &err);

    for (int64_t i = 0; source != NULL && i < source->count && err.code == 0; i++)
        dnn_source_read(source, i, &sample, &err);
    dnn_sample_free(&sample);
    dnn_source_close(source);
    is_int(err.code, code, what);
    is_text(strncmp(err.text, made_path, len) == 0 ? err.text + len : err.text, want,
            "and why");
}

/* "input image u8 2x2x1, target label i64 scalar": the columns of a source. */
static inline void made_columns(const struct dnn_source *source, const char *want,
                                const char *what)
{
    struct dnn_buf buf = {0};
    char shape[DNN_SHAPE_TEXT];

    for (int c = 0; source != NULL && c < source->ncols; c++)
        dnn_buf_add(&buf, "%s%s %s %s %s", c > 0 ? ", " : "", source->col[c].name,
                    dnn_choice_name(dnn_kind_choices, (int)source->col[c].kind),
                    dnn_dtype_name(source->col[c].type),
                    dnn_shape_text(shape, sizeof shape, &source->col[c].shape));
    is_text(buf.text, want, what);
    dnn_buf_free(&buf);
}

/* "2x2x1: 1 2 3 4 | scalar: 7": sample i, all numbers of all columns. */
static inline void made_sample(const struct dnn_source *source, int64_t i,
                               const char *want, const char *what)
{
    struct dnn_sample sample = {0};
    struct dnn_buf buf = {0};
    struct dnn_err err = {0};
    char shape[DNN_SHAPE_TEXT];

    if (source == NULL || dnn_source_read(source, i, &sample, &err) < 0)
        dnn_buf_add(&buf, "%s", err.text);
    for (int c = 0; err.code == 0 && c < sample.ncols; c++) {
        struct dnn_array *a = &sample.col[c];
        int64_t n = dnn_array_count(a);

        dnn_buf_add(&buf, "%s%s:", c > 0 ? " | " : "",
                    dnn_shape_text(shape, sizeof shape, &a->shape));
        if (a->type != source->col[c].type) dnn_buf_add(&buf, " (another type)");
        for (int64_t k = 0; k < n; k++) {
            double value = 0;

            dnn_convert((char *)a->data + (size_t)k * dnn_dtype_size(a->type), a->type,
                        &value, DNN_F64, 1, false, NULL);
            dnn_buf_add(&buf, " %g", value);
        }
    }
    is_text(buf.text, want, what);
    dnn_buf_free(&buf);
    dnn_sample_free(&sample);
}

#endif
