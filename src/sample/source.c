/* source.c - sources of samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "sample/source_impl.h"

#include <inttypes.h>
#include <stdio.h>

int dnn_source_read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                    struct dnn_err *err)
{
    if (i < 0 || i >= source->count)
        return dnn_fail(err, DNN_EDATA,
                        "%s: sample %" PRId64
                        " requested, but there are only 0 to %" PRId64,
                        source->type->name, i, source->count - 1);
    return source->type->read(source, i, out, err);
}

void dnn_source_label(const struct dnn_source *source, int64_t i,
                      char out[DNN_SAMPLE_NAME])
{
    if (source->type->label != NULL)
        source->type->label(source, i, out);
    else
        snprintf(out, DNN_SAMPLE_NAME, "%" PRId64, i);
}

void dnn_source_close(struct dnn_source *source)
{
    if (source == NULL) return;
    dnn_source_last_free(source->last);
    source->type->close(source);
}

const char *dnn_source_file(const struct dnn_source *source, int64_t i)
{
    int64_t n = source->ninputs > 0 ? source->ninputs : source->nfiles;

    return n == source->count ? source->file[i] : NULL;
}

struct dnn_source dnn_source_like(const struct dnn_source *from,
                                  const struct dnn_source_type *type)
{
    struct dnn_source source = *from;

    source.type = type;
    source.last = NULL;
    return source;
}
