/* prepare_preview.c - the preview image, decoded again and checked pixel by pixel.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#include "base/file.h"
#include "import/image_impl.h"
#include "prepare/prepare.h"
#include "prepare/preview_impl.h"
#include "prepare_made.h"

#include <math.h>
#include <unistd.h>

static void is_colour(uint32_t got, uint32_t want, const char *what)
{
    if (!ok(got == want, "%s", what)) printf("# %06X instead of %06X\n", got, want);
}

/* ---- a sheet ---- */

#if DNN_HAVE_PNG
static int decode(const char *path, struct dnn_array *out, struct dnn_err *err)
{
    struct dnn_import how = {.input.kind = -1};
    char *bytes = NULL;
    size_t n = 0;

    DNN_TRY(dnn_file_read(path, 1 << 24, &bytes, &n, err));
    int rc = dnn_image_decode(bytes, n, path, &how, false, out, err);
    dnn_free(bytes);
    return rc;
}

static uint32_t at(const struct dnn_array *a, int64_t x, int64_t y)
{
    const unsigned char *p =
        (const unsigned char *)a->data + (y * a->shape.dim[1] + x) * 3;

    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/* The center of pixel p of the image in a cell, which is 32 pixels wide. */
static uint32_t point(const struct dnn_array *a, int col, int row, int p)
{
    return at(a, 12 + col * 268 + p % 8 * 32 + 16, 68 + row * 312 + p / 8 * 32 + 16);
}

static void sheet(void)
{
    struct dnn_err err = {0};
    struct dnn_array a = {0};
    char text[DNN_SHAPE_TEXT];
    int bad = 0;

    if (dnn_prepare_preview("a.bp", "train", 9, "a.png", &err) < 0 ||
        decode("a.png", &a, &err) < 0) {
        ok(false, "%s", err.text);
        return;
    }
    is_text(dnn_shape_text(text, sizeof(text), &a.shape), "1004x816x3",
            "nine samples are three by three");
    for (int p = 0; p < MADE_POINTS; p++) {
        uint32_t shade = (uint32_t)lround(255.0 * p / 63);
        uint32_t over = dnn_canvas_class(made_mask(p)), want = 0;

        for (int k = 16; k >= 0; k -= 8)
            want = want << 8 |
                   (made_mask(p) == 0 ? shade
                                      : (shade * 6 + (over >> k & 255) * 4 + 5) / 10);
        bad += point(&a, 0, 0, p) != want || point(&a, 2, 2, p) != want;
    }
    is_int(bad, 0, "pixels from black to white, masks over them at 40 %");
    is_colour(at(&a, 5, 500), 0x20252B, "between them the background");
    is_colour(at(&a, 15, 36), dnn_canvas_class(1),
              "the colour of the first class is in the legend");
    is_colour(at(&a, 20, 328), 0xF0F0F0, "the d of dog");
    is_colour(at(&a, 12, 328), 0x20252B, "next to it");
    is_colour(at(&a, 282, 332), 0xF0F0F0, "the c of cat");
    dnn_array_free(&a);
}
#endif

static void refused(void)
{
    struct dnn_err err = {0};

    is_int(dnn_prepare_preview("a.bp", NULL, 0, "b.png", &err), DNN_EUSAGE, "none");
    is_text(err.text, "the number of samples of a preview must be 1 to 400, not 0",
            "is refused");
    is_int(dnn_prepare_preview("a.bp", "trian", 4, "b.png", &err), DNN_EUSAGE,
           "an unknown split");
    is_text(err.text, "a.bp: there is no split \"trian\"; did you mean \"train\"?",
            "is refused");
#if DNN_HAVE_PNG
    is_int(dnn_prepare_preview("a.bp", "test", 4, "none/b.png", &err), DNN_EIO,
           "a path that cannot be written");
    is_int(dnn_prepare_preview("a.bp", "test", 50, "b.png", &err), 0,
           "more samples than in the split: all");
#else
    is_int(dnn_prepare_preview("a.bp", "test", 4, "b.png", &err), DNN_ECONFIG,
           "without libpng");
    is_text(err.text,
            "b.png: previews need libpng, and this program was built without it",
            "its message");
#endif
}

/* ---- parts ---- */

/* 2 x 3 x 4 voxels that count up: front, side and top. */
static void volume(void)
{
    struct dnn_stored col = {0};
    struct dnn_plane p;
    struct dnn_err err = {0};
    int16_t data[24];
    int bad = 0;

    made_column(&col, "v", DNN_ROLE_INPUT, DNN_KIND_IMAGE, DNN_I16, "2x3x4x1");
    for (int i = 0; i < 24; i++)
        data[i] = (int16_t)i;
    is_int(dnn_plane_make(&col, data, NULL, NULL, true, &p, &err), 0, "a volume");
    is_int(p.height * 100 + p.width, 607, "three planes and gaps");
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 4; x++)
            bad += p.value[y * 7 + x] != 12 + y * 4 + x;
    is_int(bad, 0, "the middle of axis 0");
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 2; x++)
            bad += p.value[y * 7 + 5 + x] != x * 12 + y * 4 + 2;
    is_int(bad, 0, "next to it that of axis 2");
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 4; x++)
            bad += p.value[(4 + y) * 7 + x] != y * 12 + 4 + x;
    is_int(bad, 0, "below it that of axis 1");
    is_int(p.mask[5 * 7 + 6], -1, "and nothing in the corner");
    dnn_plane_free(&p);
    is_int(dnn_plane_make(&col, data, NULL, NULL, false, &p, &err), 0,
           "only one plane");
    is_int(p.height * 100 + p.width, 304, "only the middle of axis 0");
    dnn_plane_free(&p);
}

/* Scaled values, NaN, and images larger than their cell. */
static void values(void)
{
    struct dnn_stored col = {
        .nscale = 3, .scale = {1, 2,  3 },
             .offset = {0, 10, 20}
    };
    struct dnn_canvas canvas;
    struct dnn_plane p;
    struct dnn_err err = {0};
    static float wide[2 * 600 * 3];
    unsigned char rgb[3] = {5, 6, 7};

    made_column(&col, "v", DNN_ROLE_INPUT, DNN_KIND_IMAGE, DNN_U8, "1x1x3");
    is_int(dnn_plane_make(&col, rgb, NULL, NULL, true, &p, &err), 0, "colours");
    ok(p.value[0] == 5 && p.value[1] == 22 && p.value[2] == 41, "scaled by channel");
    dnn_plane_free(&p);
    made_column(&col, "v", DNN_ROLE_INPUT, DNN_KIND_IMAGE, DNN_F32, "2x600x1");
    col.nscale = 0;
    for (int i = 0; i < 1200; i++)
        wide[i] = (float)(i % 600 / 300);
    wide[0] = NAN;
    is_int(dnn_plane_make(&col, wide, NULL, NULL, true, &p, &err), 0, "a wide one");
    is_int(dnn_canvas_make(&canvas, 150, 150, 0x123456, &err), 0, "a canvas");
    dnn_plane_draw(&p, &canvas, 0, 0, 150);
    is_colour(dnn_canvas_at(&canvas, 0, 74), 0xFF00FF, "NaN has its own colour");
    is_colour(dnn_canvas_at(&canvas, 70, 74), 0x000000, "the left half");
    is_colour(dnn_canvas_at(&canvas, 140, 74), 0xFFFFFF, "the right half");
    is_colour(dnn_canvas_at(&canvas, 70, 60), 0x123456, "nothing above it");
    dnn_plane_bars((double[]){-1, 1}, 2, &canvas, 0, 0, 100);
    is_colour(dnn_canvas_at(&canvas, 10, 90), 0xF58230, "a bar below 0");
    is_colour(dnn_canvas_at(&canvas, 10, 10), 0x101418, "nothing above 0");
    is_colour(dnn_canvas_at(&canvas, 80, 10), 0x4C7DFF, "a bar above 0");
    dnn_canvas_fill(&canvas, 0, 0, 150, 150, 0);
    is_int(dnn_canvas_text(&canvas, 0, 0, 36, 1, "abcdefgh", 0xFFFFFF), 36,
           "a text too long for its cell");
    is_colour(dnn_canvas_at(&canvas, 1, 5), 0xFFFFFF, "begins with dots");
    dnn_plane_free(&p);
    dnn_canvas_free(&canvas);
}

int main(void)
{
    char dir[] = "/tmp/dnn-preview-XXXXXX";
    struct dnn_err err = {0};

    if (mkdtemp(dir) == NULL || chdir(dir) != 0) return 1;
    if (!ok(made_dataset("a.bp", &err) == 0, "a dataset")) printf("# %s\n", err.text);
#if DNN_HAVE_PNG
    sheet();
#else
    skip("a sheet", "built without libpng");
#endif
    refused();
    volume();
    values();
    if (chdir("/") == 0) dnn_file_remove_tree(dir, NULL);
    return done();
}
