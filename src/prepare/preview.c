/* preview.c - draws some samples of a split into one image (a contact sheet).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/preview_impl.h"

#include "base/mem.h"
#include "picture/png.h"
#include "base/text.h"
#include "prepare/prepare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHEET = 1600, /* width of the sheet in points, about                             */
    SMALL = 128,
    LARGE = 256, /* side of a panel                                                 */
    GAP = 12,    /* between cells                                                   */
    INSIDE = 4,  /* between panels of a cell                                        */
    MOST = 400,  /* samples at most                                                 */
    LINES = 3,   /* of text below a cell, at most                                   */
    LEGEND = 12  /* classes in the legend                                           */
};
#define BACK 0x20252B
#define CELL 0x0C0E11
#define BRIGHT 0xF0F0F0
#define DIM 0x98A2AE

struct sheet {
    struct dnn_dataset *dataset;
    const struct dnn_split *split;
    int number; /* of the split                                     */
    int npanels, panel[DNN_MAX_COLUMNS]; /* columns drawn as images                  */
    int mask;                    /* mask over the first panel, or -1                 */
    int nlines, line[LINES];     /* columns printed as text                          */
    void *data[DNN_MAX_COLUMNS]; /* owned: the sample                                */
    int64_t n, cols, rows;
    int side, scale, head; /* of a panel; of the font; height of the header          */
    struct dnn_canvas canvas;
};

/* ---- what is shown ---- */

static bool drawn(const struct dnn_column *c)
{
    return c->role != DNN_ROLE_EXTRA && c->kind != DNN_KIND_LABEL;
}

static bool same_space(const struct dnn_column *a, const struct dnn_column *b)
{
    if (a->shape.ndim != b->shape.ndim) return false;
    for (int i = 0; i + 1 < a->shape.ndim; i++)
        if (a->shape.dim[i] != b->shape.dim[i]) return false;
    return true;
}

static void choose_columns(struct sheet *s)
{
    const struct dnn_stored *col = s->split->col;

    s->mask = -1;
    for (int k = 0; k < s->split->ncols; k++)
        if (drawn(&col[k].column) && col[k].column.kind != DNN_KIND_MASK)
            s->panel[s->npanels++] = k;
    for (int k = 0; k < s->split->ncols; k++) {
        if (!drawn(&col[k].column) || col[k].column.kind != DNN_KIND_MASK) continue;
        if (s->mask < 0 && s->npanels > 0 &&
            col[s->panel[0]].column.kind == DNN_KIND_IMAGE &&
            same_space(&col[s->panel[0]].column, &col[k].column))
            s->mask = k;
        else
            s->panel[s->npanels++] = k;
    }
    for (int k = 0; k < s->split->ncols && s->nlines < LINES - 1; k++) {
        const struct dnn_column *c = &col[k].column;

        if (c->kind == DNN_KIND_LABEL || (drawn(c) && c->kind == DNN_KIND_VALUES))
            s->line[s->nlines++] = k;
    }
}

static void lay_out(struct sheet *s)
{
    int64_t panels = s->npanels > 0 ? s->npanels : 1;

    s->cols = (int64_t)ceil(sqrt((double)s->n / (double)panels));
    if (s->cols < 1) s->cols = 1;
    s->rows = (s->n + s->cols - 1) / s->cols;
    int64_t side = SHEET / (s->cols * panels);
    s->side = (int)(side < SMALL ? SMALL : side > LARGE ? LARGE : side);
    s->scale = s->side >= 192 ? 2 : 1;
    s->head = 2 * GAP + (s->mask >= 0 ? 2 : 1) * (2 * DNN_FONT_HEIGHT + 8);
}

static int cell_width(const struct sheet *s)
{
    int panels = s->npanels > 0 ? s->npanels : 1;

    return panels * s->side + (panels - 1) * INSIDE;
}

static int line_height(const struct sheet *s)
{
    return (DNN_FONT_HEIGHT + 3) * s->scale;
}

static int cell_height(const struct sheet *s)
{
    return (s->npanels > 0 ? s->side + INSIDE : 0) + (1 + s->nlines) * line_height(s);
}

/* ---- drawing ---- */

static int draw_panel(struct sheet *s, int k, int x, int y, struct dnn_err *err)
{
    const struct dnn_stored *col = &s->split->col[k];
    const struct dnn_column *c = &col->column;
    int64_t count = 0;

    dnn_canvas_fill(&s->canvas, x, y, s->side, s->side, CELL);
    if (c->kind != DNN_KIND_VALUES && c->shape.ndim > 2) {
        struct dnn_plane plane;
        bool over = s->mask >= 0 && k == s->panel[0], alone = c->kind == DNN_KIND_MASK;
        int m = over ? s->mask : alone ? k : -1;

        DNN_TRY(dnn_plane_make(col, s->data[k], m < 0 ? NULL : &s->split->col[m],
                               m < 0 ? NULL : s->data[m], s->side >= 192, &plane, err));
        plane.solid = alone;
        dnn_plane_draw(&plane, &s->canvas, x, y, s->side);
        dnn_plane_free(&plane);
        return 0;
    }
    DNN_TRY(dnn_shape_count(&c->shape, &count, err));
    int64_t step =
        c->kind == DNN_KIND_VALUES || c->shape.ndim < 2 ? 1 : c->shape.dim[1];
    int64_t n = count / (step > 0 ? step : 1);
    double *value = dnn_alloc((size_t)(n + 1) * sizeof(*value));
    for (int64_t i = 0; i < n; i++)
        value[i] = dnn_plane_value(col, s->data[k], i * step);
    if (n > 0) dnn_plane_bars(value, n, &s->canvas, x, y, s->side);
    dnn_free(value);
    return 0;
}

/* "cat", "class 3", "0.25 1.5 ..." */
static void column_text(const struct sheet *s, int k, struct dnn_buf *out)
{
    const struct dnn_stored *col = &s->split->col[k];
    const struct dnn_column *c = &col->column;
    int64_t n = c->shape.ndim == 0 ? 1 : c->shape.dim[0];

    if (s->nlines > 1) dnn_buf_add(out, "%s ", c->name);
    if (c->kind != DNN_KIND_LABEL) {
        for (int64_t i = 0; i < n && i < 4; i++)
            dnn_buf_add(out, "%s%.3g", i > 0 ? " " : "",
                        dnn_plane_value(col, s->data[k], i));
        if (n > 4) dnn_buf_add(out, " ...");
        return;
    }
    int64_t class = (int64_t)dnn_plane_value(col, s->data[k], 0);
    if (c->class_name != NULL && class >= 0 && class < c->classes)
        dnn_buf_add(out, "%s", c->class_name[class]);
    else
        dnn_buf_add(out, "class %" PRId64, class);
}

static int draw_cell(struct sheet *s, int64_t cell, const char *name,
                     struct dnn_err *err)
{
    int x = GAP + (int)(cell % s->cols) * (cell_width(s) + GAP);
    int y = s->head + (int)(cell / s->cols) * (cell_height(s) + GAP);

    for (int i = 0; i < s->npanels; i++)
        DNN_TRY(draw_panel(s, s->panel[i], x + i * (s->side + INSIDE), y, err));
    if (s->npanels > 0) y += s->side + INSIDE;
    for (int i = 0; i < s->nlines; i++, y += line_height(s)) {
        struct dnn_buf text = {0};

        column_text(s, s->line[i], &text);
        dnn_canvas_text(&s->canvas, x, y, cell_width(s), s->scale, text.text, BRIGHT);
        dnn_buf_free(&text);
    }
    dnn_canvas_text(&s->canvas, x, y, cell_width(s), s->scale, name, DIM);
    return 0;
}

static void draw_head(struct sheet *s, const char *path)
{
    const char *base = strrchr(path, '/');
    char *title = dnn_format("%s, %s: %" PRId64 " of %" PRId64 " samples",
                             base == NULL || base[1] == '\0' ? path : base + 1,
                             s->split->name, s->n, s->split->count);
    int x = GAP, y = GAP, wide = s->canvas.width - 2 * GAP;

    dnn_canvas_text(&s->canvas, x, y, wide, 2, title, BRIGHT);
    dnn_free(title);
    if (s->mask < 0) return;
    const struct dnn_column *c = &s->split->col[s->mask].column;
    y += 2 * DNN_FONT_HEIGHT + 8;
    for (int64_t i = 1; i < c->classes && i <= LEGEND; i++) {
        char number[32];
        const char *text = number;

        snprintf(number, sizeof(number), "%" PRId64, i);
        if (c->class_name != NULL) text = c->class_name[i];
        if (x + 20 + (int)strlen(text) * 2 * DNN_FONT_WIDTH > wide) break;
        dnn_canvas_fill(&s->canvas, x, y, 14, 14, dnn_canvas_class(i));
        x += 20;
        x += dnn_canvas_text(&s->canvas, x, y, wide, 2, text, DIM) + 16;
    }
}

/* ---- reading ---- */

static int alloc_sample(struct sheet *s, struct dnn_err *err)
{
    for (int k = 0; k < s->split->ncols; k++) {
        const struct dnn_column *c = &s->split->col[k].column;
        const struct dnn_tensor t = {c->name, c->type, c->shape};
        size_t bytes;

        DNN_TRY(dnn_tensor_bytes(&t, &bytes, err));
        s->data[k] = malloc(bytes + 1);
        if (s->data[k] == NULL)
            return dnn_fail(err, DNN_ENOMEM,
                            "not enough memory for %zu bytes of column \"%s\"", bytes,
                            c->name);
    }
    return 0;
}

static int draw_samples(struct sheet *s, struct dnn_err *err)
{
    for (int64_t i = 0; i < s->n; i++) {
        int64_t sample = i * s->split->count / s->n;
        char **name = NULL;

        for (int k = 0; k < s->split->ncols; k++)
            DNN_TRY(dnn_dataset_request(s->dataset, s->number, k, sample, 1, s->data[k],
                                        err));
        DNN_TRY(dnn_dataset_fetch(s->dataset, err));
        DNN_TRY(dnn_dataset_metadata(s->dataset, s->number, sample, 1, &name, NULL,
                                     NULL, err));
        int rc = draw_cell(s, i, name[0], err);
        dnn_free(name);
        DNN_TRY(rc);
    }
    return 0;
}

static int find_split(struct sheet *s, const char *path, const char *split,
                      struct dnn_err *err)
{
    const struct dnn_dataset_info *info = dnn_dataset_info(s->dataset);
    const char *names[DNN_MAX_SPLITS + 1] = {NULL};
    char hint[64];

    for (int i = 0; i < info->nsplits; i++)
        names[i] = info->split[i].name;
    s->number = split == NULL ? 0 : dnn_dataset_find(s->dataset, split);
    if (info->nsplits == 0)
        return dnn_fail(err, DNN_EDATA, "%s: contains no samples", path);
    if (s->number < 0)
        return dnn_fail(err, DNN_EUSAGE, "%s: there is no split \"%s\"%s", path, split,
                        dnn_text_hint(hint, sizeof(hint), split, names));
    s->split = &info->split[s->number];
    if (s->split->count == 0)
        return dnn_fail(err, DNN_EDATA, "%s: split \"%s\" is empty", path,
                        s->split->name);
    return 0;
}

static int draw_sheet(struct sheet *s, const char *path, const char *split,
                      const char *png, struct dnn_err *err)
{
    DNN_TRY(find_split(s, path, split, err));
    if (s->n > s->split->count) s->n = s->split->count;
    choose_columns(s);
    lay_out(s);
    DNN_TRY(alloc_sample(s, err));
    int width = 2 * GAP + (int)s->cols * (cell_width(s) + GAP) - GAP;
    int height = s->head + (int)s->rows * (cell_height(s) + GAP);
    DNN_TRY(dnn_canvas_make(&s->canvas, width, height, BACK, err));
    draw_head(s, path);
    DNN_TRY(draw_samples(s, err));
    return dnn_png_save(png, DNN_PNG_RGB, s->canvas.width, s->canvas.height,
                        s->canvas.rgb, err);
}

int dnn_prepare_preview(const char *path, const char *split, int64_t n, const char *png,
                        struct dnn_err *err)
{
    struct sheet s = {.n = n};

    if (n < 1 || n > MOST)
        return dnn_fail(
            err, DNN_EUSAGE,
            "the number of samples of a preview must be 1 to %d, not %" PRId64, MOST,
            n);
    DNN_TRY(dnn_dataset_open(NULL, path, 1, &s.dataset, err));
    int rc = draw_sheet(&s, path, split, png, err);
    for (int k = 0; k < DNN_MAX_COLUMNS; k++)
        free(s.data[k]);
    dnn_canvas_free(&s.canvas);
    dnn_dataset_close(s.dataset);
    return rc;
}
