/* header.c - the bytes around the values in NPY, NIfTI and TIFF files.
 *
 * All numbers have native byte order, as the values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "import/nifti_write.h"
#include "import/npy_write.h"

#include <string.h>

/* ---- NIfTI-1 ---- */

static int nifti_header(const struct dnn_output *out, int64_t sample,
                        const struct output_layout *l, struct dnn_buf *to,
                        struct dnn_err *err)
{
    struct dnn_output_sample *about = dnn_alloc(sizeof *about);
    unsigned char head[DNN_NIFTI_HEAD];
    char text[DNN_OUTPUT_NAME];
    struct dnn_shape shape = {.ndim = l->nspace + 1};
    bool first = l->shape.ndim > l->nspace;

    /* Again, because the path of the input is not kept. */
    int rc = out->o.describe(out->o.arg, sample, about, err);
    memcpy(shape.dim, l->shape.dim + first, (size_t)l->nspace * sizeof shape.dim[0]);
    shape.dim[l->nspace] = l->channels;
    const struct dnn_nifti_make make = {.type = l->type,
                                        .shape = &shape,
                                        .position = &about->position,
                                        .like = about->input};
    dnn_output_text(out, sample, text, sizeof text);
    if (rc == 0) rc = dnn_nifti_make(text, &make, head, err);
    if (rc == 0) dnn_buf_bytes(to, head, sizeof head);
    dnn_free(about);
    return rc;
}

/* ---- TIFF ---- */

/* A page is one uncompressed strip.  The pages are contiguous, then follow lists of
 * numbers that all pages share, then a directory for each page.  BigTIFF has numbers of
 * 8 bytes where TIFF has 4. */
struct tiff {
    const struct output_layout *l;
    bool big;
    uint64_t pages, page_bytes, lists; /* lists: their offset                        */
    int entries, extra;                /* of a directory; channels besides colours   */
    struct dnn_buf *to;
    uint64_t at; /* offset of the end of to                                          */
};

enum { TIFF_HEAD = 16, TIFF_SHORT = 3, TIFF_LONG = 4, TIFF_LONG8 = 16 };

static void put(struct tiff *t, uint64_t value, size_t bytes)
{
    dnn_buf_bytes(t->to, &value, bytes);
    t->at += bytes;
}

static void put_offset(struct tiff *t, uint64_t value)
{
    put(t, value, t->big ? 8 : 4);
}

static void put_entry(struct tiff *t, int tag, int type, uint64_t value)
{
    put(t, (uint64_t)tag, 2);
    put(t, (uint64_t)type, 2);
    put_offset(t, 1);
    put_offset(t, value);
}

/* A list of n equal short numbers, of which those that do not fit into the entry are
 * list number `list`. */
static void put_list(struct tiff *t, int tag, int n, unsigned value, int list)
{
    int fits = t->big ? 4 : 2;
    uint64_t inside = 0;

    for (int i = 0; i < n && n <= fits; i++)
        inside |= (uint64_t)value << 16 * i;
    put(t, (uint64_t)tag, 2);
    put(t, TIFF_SHORT, 2);
    put_offset(t, (uint64_t)n);
    put_offset(t, n <= fits ? inside
                            : t->lists + (uint64_t)list * 2 * (uint64_t)t->l->channels);
}

static unsigned sample_format(enum dnn_dtype type)
{
    return type == DNN_F32 ? 3 : type == DNN_I32 ? 2 : 1;
}

static void put_directory(struct tiff *t, uint64_t page)
{
    const struct output_layout *l = t->l;
    int c = (int)l->channels, big = t->big ? TIFF_LONG8 : TIFF_LONG;
    uint64_t width = (uint64_t)l->shape.dim[l->nspace - 1],
             height = (uint64_t)l->shape.dim[l->nspace - 2];
    uint64_t size =
        (t->big ? 8 : 2) + (t->big ? 20 : 12) * (uint64_t)t->entries + (t->big ? 8 : 4);
    uint64_t next = t->at + (size + 7) / 8 * 8;

    put(t, (uint64_t)t->entries, t->big ? 8 : 2);
    put_entry(t, 256, TIFF_LONG, width);
    put_entry(t, 257, TIFF_LONG, height);
    put_list(t, 258, c, 8 * (unsigned)dnn_dtype_size(l->type), 0);
    put_entry(t, 259, TIFF_SHORT, 1);              /* no compression */
    put_entry(t, 262, TIFF_SHORT, c == 3 ? 2 : 1); /* RGB, or black is zero */
    put_entry(t, 273, big, TIFF_HEAD + page * t->page_bytes);
    put_entry(t, 277, TIFF_SHORT, (uint64_t)c);
    put_entry(t, 278, TIFF_LONG, height);
    put_entry(t, 279, big, t->page_bytes);
    put_entry(t, 284, TIFF_SHORT, 1); /* channels of a pixel are contiguous */
    if (t->extra > 0) put_list(t, 338, t->extra, 0, 2);
    put_list(t, 339, c, sample_format(l->type), 1);
    put_offset(t, page + 1 < t->pages ? next : 0);
    while (t->at < next)
        put(t, 0, 1);
}

static void tiff_header(const struct output_layout *l, struct output_header *header)
{
    struct tiff t = {.l = l, .to = &header->head};
    uint64_t end;

    t.pages = l->nspace == 3 ? (uint64_t)l->shape.dim[0] : 1;
    t.page_bytes = (uint64_t)l->bytes / t.pages;
    t.extra = l->channels == 3 ? 0 : (int)l->channels - 1;
    t.entries = 11 + (t.extra > 0);
    t.lists = (TIFF_HEAD + (uint64_t)l->bytes + 7) / 8 * 8;
    end = t.lists + 6 * (uint64_t)l->channels + 300 * t.pages;
    t.big = end > UINT32_MAX;
    uint64_t first = (t.lists + 6 * (uint64_t)l->channels + 7) / 8 * 8;

    dnn_buf_bytes(t.to, "II", 2);
    put(&t, t.big ? 43 : 42, 2);
    if (t.big) put(&t, 8, 4);
    put_offset(&t, first);
    while (t.to->len < TIFF_HEAD)
        put(&t, 0, 1);
    t.to = &header->tail;
    for (t.at = TIFF_HEAD + (uint64_t)l->bytes; t.at < t.lists;)
        put(&t, 0, 1);
    for (int64_t i = 0; i < l->channels; i++)
        put(&t, 8 * dnn_dtype_size(l->type), 2);
    for (int64_t i = 0; i < l->channels; i++)
        put(&t, sample_format(l->type), 2);
    while (t.at < first) /* the third list is zero */
        put(&t, 0, 1);
    for (uint64_t i = 0; i < t.pages; i++)
        put_directory(&t, i);
}

int dnn_output_header(const struct dnn_output *out, int part, int64_t sample,
                      const struct output_layout *layout, struct output_header *header,
                      struct dnn_err *err)
{
    *header = (struct output_header){0};
    switch (out->part[part].format) {
    case DNN_OUTPUT_NPY:
        dnn_npy_make(layout->type, &layout->shape, &header->head);
        return 0;
    case DNN_OUTPUT_TIFF:
        tiff_header(layout, header);
        return 0;
    default:
        return nifti_header(out, sample, layout, &header->head, err);
    }
}
