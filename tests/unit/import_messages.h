/* import_messages.h - files made byte by byte, and messages of an importer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_IMPORT_MESSAGES_H
#define DNN_TESTS_IMPORT_MESSAGES_H

#include "tap.h"

#include "base/file.h"
#include "base/text.h"
#include "import/import_impl.h"

static inline void word(struct dnn_buf *to, uint32_t x, int bytes, bool big)
{
    for (int i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)(x >> 8 * (big ? bytes - 1 - i : i));

        dnn_buf_bytes(to, &c, 1);
    }
}

static inline void save(const char *path, const struct dnn_buf *buf, size_t len)
{
    struct dnn_err err = {0};

    if (dnn_file_write(path, buf->text, len, &err) < 0) printf("# %s\n", err.text);
}

/* The error message, or kind, type, shape and first numbers. */
static inline const char *read_as(const struct dnn_importer *importer, const char *path,
                                  struct dnn_import *how, bool target)
{
    static char out[1200];
    struct dnn_err err = {0};
    struct dnn_sample sample = {0};
    struct dnn_source *source = NULL;
    const struct dnn_import_side *side = target ? &how->target : &how->input;
    char shape[DNN_SHAPE_TEXT];

    int rc = importer->open(path, how, side, &source, &err);
    if (rc == 0) rc = dnn_source_read(source, 0, &sample, &err);
    snprintf(out, sizeof(out), "%s", err.text);
    if (rc == 0) {
        const struct dnn_array *a = &sample.col[0];
        size_t len = (size_t)snprintf(
            out, sizeof(out), "%s %s %s %s:", source->col[0].name,
            dnn_choice_name(dnn_kind_choices, source->col[0].kind),
            dnn_dtype_name(a->type), dnn_shape_text(shape, sizeof(shape), &a->shape));

        for (size_t i = 0; i < dnn_array_bytes(a) && i < 12; i++)
            len += (size_t)snprintf(out + len, sizeof(out) - len, " %d",
                                    ((unsigned char *)a->data)[i]);
    }
    dnn_sample_free(&sample);
    dnn_source_close(source);
    return out;
}

static inline struct dnn_import usual(void)
{
    return (struct dnn_import){.input.kind = -1, .target.kind = -1};
}

static inline void message_is(const struct dnn_importer *importer, const char *path,
                              const char *want, const char *what)
{
    struct dnn_import how = usual();

    is_text(read_as(importer, path, &how, false), want, what);
}

#endif
