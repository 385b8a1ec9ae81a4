/* sample_cache.c - samples that stay in memory once they have been read.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "sample/source.h"

#include <string.h>

static struct dnn_err err;
static int reads, closed;

/* Sample i has i + 1 numbers i. */
static int read_one(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                    struct dnn_err *why)
{
    const struct dnn_shape shape = {.ndim = 1, .dim = {i + 1}};

    (void)source;
    reads++;
    if (i == 5) return dnn_fail(why, DNN_EDATA, "5 is damaged");
    out->ncols = 1;
    DNN_TRY(dnn_array_make(&out->col[0], DNN_U8, &shape, why));
    memset(out->col[0].data, (int)i, (size_t)i + 1);
    return 0;
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    (void)source;
    return i % 2;
}

static void close_one(struct dnn_source *source)
{
    closed++;
    dnn_free(source);
}

static const struct dnn_source_type type = {
    .name = "made", .read = read_one, .class_of = class_of, .close = close_one};

static struct dnn_source *make(int64_t limit)
{
    struct dnn_source *from = dnn_alloc(sizeof *from);

    from->type = &type;
    from->count = 6;
    from->ncols = 1;
    from->col[0].shape = (struct dnn_shape){1, {DNN_UNKNOWN}};
    strcpy(from->col[0].name, "x");
    reads = closed = 0;
    return dnn_source_cache(from, limit);
}

/* All but the damaged one, and whether they are what they should be. */
static bool read_all(struct dnn_source *source, struct dnn_sample *into)
{
    bool good = true;

    for (int64_t i = 0; i < 5; i++) {
        good = good && dnn_source_read(source, i, into, &err) == 0 &&
               into->ncols == 1 && into->col[0].shape.dim[0] == i + 1 &&
               ((unsigned char *)into->col[0].data)[i] == i;
        /* The caller may change its sample. */
        if (good) memset(into->col[0].data, 99, (size_t)i + 1);
    }
    return good;
}

/* Whether elements 1 and 2 of sample i are its number. */
static bool has_box(struct dnn_source *source, int64_t i)
{
    static const int64_t start = 1, extent = 2;
    struct dnn_array box = {0};
    bool good = dnn_source_read_box(source, i, 0, &start, &extent, &box, &err) == 0 &&
                dnn_array_count(&box) == 2 && ((unsigned char *)box.data)[1] == i;

    dnn_array_free(&box);
    return good;
}

static void boxes(void)
{
    struct dnn_source *source = make(1000);
    struct dnn_shape shape;

    ok(has_box(source, 3) && has_box(source, 4) && has_box(source, 3), "boxes of them");
    is_int(reads, 2, "each sample is read once");
    is_int(dnn_source_shape(source, 4, 0, &shape, &err), 0, "a shape");
    ok(shape.ndim == 1 && shape.dim[0] == 5 && reads == 2, "of a cached sample");
    ok(!has_box(source, 1), "a box that is too large");
    is_text(err.text,
            "1: x: a box of 2 points from 1 along axis 0 is not within the shape 2",
            "its message");
    ok(!has_box(source, 5), "a damaged sample");
    is_text(err.text, "5 is damaged", "its message");
    dnn_source_close(source);
    source = make(0);
    ok(has_box(source, 3) && has_box(source, 3) && has_box(source, 4),
       "without a cache");
    is_int(reads, 2, "the last sample is kept");
    dnn_source_close(source);
}

int main(void)
{
    struct dnn_sample sample = {0};
    char name[DNN_SAMPLE_NAME];
    struct dnn_source *source = make(1000);

    ok(read_all(source, &sample) && read_all(source, &sample), "read twice, the same");
    is_int(reads, 5, "read once");
    ok(dnn_source_read(source, 5, &sample, &err) < 0, "a failure");
    is_text(err.text, "5 is damaged", "its message");
    ok(dnn_source_read(source, 5, &sample, &err) < 0, "each time");
    is_int(reads, 7, "it is read again");
    dnn_source_label(source, 3, name);
    is_text(name, "3", "names are those of the source");
    is_int(source->type->class_of(source, 3), 1, "and classes");
    ok(source->type->group == NULL, "and no groups");
    dnn_source_close(source);
    is_int(closed, 1, "the source is closed");

    source = make(4);
    ok(read_all(source, &sample) && read_all(source, &sample), "with little memory");
    is_int(reads, 5 + 3, "some are read again");
    dnn_source_close(source);
    dnn_sample_free(&sample);
    boxes();
    return done();
}
