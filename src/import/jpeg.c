/* jpeg.c - JPEG images, grayscale and color, decoded with the defaults of libjpeg.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/image_impl.h"

#if DNN_HAVE_JPEG
#include "base/mem.h"

#include <setjmp.h>
#include <jpeglib.h>
#include <jerror.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* A Huffman code needs at least one bit per block of 8 x 8 pixels, which covers up
     * to 16 blocks if a component is subsampled. */
    RATIO = 8 * 64 * 16 * 3,
    SCANS = 500 /* maximum scans of a progressive image                              */
};

struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr manager;
    struct jpeg_progress_mgr progress;
    jmp_buf on_failure;
    char message[JMSG_LENGTH_MAX]; /* message of libjpeg */
};

static void on_error(j_common_ptr common)
{
    struct decoder *d = common->client_data;

    common->err->format_message(common, d->message);
    longjmp(d->on_failure, 1);
}

/* Warnings about lost pixels are errors; other warnings are ignored. */
static void on_message(j_common_ptr common, int level)
{
    if (level >= 0) return;
    switch (common->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
        return;
    default:
        on_error(common);
    }
}

static void on_print(j_common_ptr common)
{
    (void)common;
}

static void on_progress(j_common_ptr common)
{
    struct decoder *d = common->client_data;

    if (d->jpeg.input_scan_number <= SCANS) return;
    snprintf(d->message, sizeof(d->message), "more than %d scans", SCANS);
    longjmp(d->on_failure, 1);
}

static int failed(const struct decoder *d, const struct dnn_image_in *in,
                  struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s: damaged JPEG: %s", in->what, d->message);
}

static int read_header(struct decoder *d, const struct dnn_image_in *in,
                       struct dnn_picture *out, struct dnn_err *err)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;

    if (setjmp(d->on_failure) != 0) return failed(d, in, err);
    jpeg_create_decompress(jpeg);
    jpeg->progress = &d->progress;
    jpeg_mem_src(jpeg, (unsigned char *)in->bytes, in->n);
    jpeg_read_header(jpeg, TRUE);
    switch (jpeg->jpeg_color_space) {
    case JCS_GRAYSCALE:
        jpeg->out_color_space = JCS_GRAYSCALE;
        break;
    case JCS_RGB:
    case JCS_YCbCr:
        jpeg->out_color_space = JCS_RGB;
        break;
    case JCS_CMYK:
    case JCS_YCCK:
        return dnn_fail(err, DNN_EDATA,
                        "%s: CMYK JPEG images are not supported; convert it to RGB",
                        in->what);
    default:
        return dnn_fail(err, DNN_EDATA,
                        "%s: JPEG with %d components of an unknown color space",
                        in->what, jpeg->num_components);
    }
    out->type = DNN_U8;
    out->shape = (struct dnn_shape){
        3,
        {jpeg->image_height, jpeg->image_width,
          jpeg->out_color_space == JCS_RGB ? 3 : 1}
    };
    out->classes = false; /* lossy: values are not exact */
    DNN_TRY(dnn_import_fits(in->how, in->what, DNN_U8, &out->shape, err));
    if (jpeg->arith_code) return 0; /* a uniform image needs almost no bytes */
    return dnn_image_check_size(in->what, out, in->n, RATIO, err);
}

static int read_rows(struct decoder *d, const struct dnn_image_in *in,
                     struct dnn_array *out, struct dnn_err *err)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;

    if (setjmp(d->on_failure) != 0) return failed(d, in, err);
    jpeg_start_decompress(jpeg);
    size_t pitch = (size_t)(out->shape.dim[1] * out->shape.dim[2]);
    if (jpeg->output_height != (JDIMENSION)out->shape.dim[0] ||
        (size_t)jpeg->output_width * (size_t)jpeg->output_components != pitch)
        return dnn_fail(err, DNN_EDATA,
                        "%s: damaged JPEG: row size differs from the header", in->what);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = (JSAMPROW)out->data + jpeg->output_scanline * pitch;

        jpeg_read_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_decompress(jpeg);
    return 0;
}

static int decode(const struct dnn_image_in *in, struct dnn_picture *about,
                  struct dnn_array *out, struct dnn_err *err)
{
    struct decoder *d = dnn_alloc(sizeof(*d));

    d->jpeg.err = jpeg_std_error(&d->manager);
    d->jpeg.client_data = d;
    d->manager.error_exit = on_error;
    d->manager.emit_message = on_message;
    d->manager.output_message = on_print;
    d->progress.progress_monitor = on_progress;
    int rc = read_header(d, in, about, err);
    if (rc == 0 && out != NULL) {
        rc = dnn_array_make(out, about->type, &about->shape, err);
        if (rc == 0) rc = read_rows(d, in, out, err);
    }
    jpeg_destroy_decompress(&d->jpeg);
    dnn_free(d);
    return rc;
}

static int inspect(const struct dnn_image_in *in, struct dnn_picture *out,
                   struct dnn_err *err)
{
    return decode(in, out, NULL, err);
}

static const struct dnn_image_kind kind = {"jpeg", true, false, inspect, decode, NULL};
const struct dnn_image_kind *const dnn_image_jpeg = &kind;

static int open_jpeg(const char *path, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_source **out,
                     struct dnn_err *err)
{
    return dnn_image_open(&kind, path, how, side, out, err);
}
#define OPEN open_jpeg
#else
const struct dnn_image_kind *const dnn_image_jpeg = NULL;
#define OPEN NULL
#endif

const struct dnn_importer dnn_importer_jpeg = {
    .name = "jpeg",
    .suffixes = ".jpg .jpeg",
    .help = "images, grayscale or color",
    .single = true,
    .sniff = dnn_image_is_jpeg,
    .open = OPEN,
    .lacks = "libjpeg",
};
