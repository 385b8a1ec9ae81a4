/* idx.c - IDX files, the format of MNIST and similar datasets: images and labels in
 * separate files.
 *
 * The labels of "train-images-idx3-ubyte" are in "train-labels-idx1-ubyte"; each file
 * may be compressed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One file. */
struct idx {
    char *path;
    struct dnn_bytes *bytes;
    enum dnn_dtype type;
    struct dnn_shape shape; /* as in the file, samples first */
    int64_t start;          /* of the values                 */
    int64_t sample_bytes;   /* bytes of a sample             */
};

struct idx_source {
    struct dnn_source base;
    struct idx file;
    struct dnn_axes axes;
    int64_t limit;
    int32_t *label;       /* labels of all samples, or NULL */
    const char *files[2]; /* paths of the files */
};

static bool sniff(const unsigned char *head, size_t n)
{
    return n >= 8 && head[0] == 0 && head[1] == 0 && head[2] >= 0x08 &&
           head[2] <= 0x0e && head[2] != 0x0a && head[3] >= 1 && head[3] <= 4;
}

/* ---- one file ---- */

static bool type_of(int code, enum dnn_dtype *out)
{
    switch (code) {
    case 0x08:
        *out = DNN_U8;
        return true;
    case 0x09:
        *out = DNN_I8;
        return true;
    case 0x0b:
        *out = DNN_I16;
        return true;
    case 0x0c:
        *out = DNN_I32;
        return true;
    case 0x0d:
        *out = DNN_F32;
        return true;
    case 0x0e:
        *out = DNN_F64;
        return true;
    default:
        return false;
    }
}

static int read_header(struct idx *f, struct dnn_err *err)
{
    unsigned char head[4], dims[4 * DNN_MAX_DIMS];

    DNN_TRY(dnn_bytes_read(f->bytes, 0, head, sizeof head, err));
    if (head[0] != 0 || head[1] != 0 || !type_of(head[2], &f->type))
        return dnn_fail(err, DNN_EDATA,
                        "%s: not an IDX file: it begins with %02x %02x %02x, expected "
                        "00 00 and a type (08, 09, 0b to 0e)",
                        f->path, head[0], head[1], head[2]);
    if (head[3] < 1 || head[3] > DNN_MAX_DIMS)
        return dnn_fail(err, DNN_EDATA,
                        "%s: the header declares %d axes; 1 to %d are supported",
                        f->path, head[3], DNN_MAX_DIMS);
    f->shape.ndim = head[3];
    DNN_TRY(dnn_bytes_read(f->bytes, 4, dims, 4 * (size_t)head[3], err));
    for (int i = 0; i < f->shape.ndim; i++)
        f->shape.dim[i] = (int64_t)dims[4 * i] << 24 | dims[4 * i + 1] << 16 |
                          dims[4 * i + 2] << 8 | dims[4 * i + 3];
    f->start = 4 + 4 * (int64_t)head[3];
    return 0;
}

/* The file size must match the header. */
static int check_length(struct idx *f, struct dnn_err *err)
{
    struct dnn_tensor all = {.name = f->path, .dtype = f->type, .shape = f->shape};
    char text[DNN_SHAPE_TEXT];
    int64_t length;
    size_t bytes;

    DNN_TRY(dnn_bytes_length(f->bytes, &length, err));
    if (dnn_tensor_bytes(&all, &bytes, err) < 0 || (int64_t)bytes != length - f->start)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: the header declares %s %s, but %" PRId64 " bytes follow it", f->path,
            dnn_dtype_name(f->type), dnn_shape_text(text, sizeof text, &f->shape),
            length - f->start);
    f->sample_bytes = f->shape.dim[0] == 0 ? 0 : (int64_t)bytes / f->shape.dim[0];
    return 0;
}

static int open_idx(const char *path, struct idx *f, struct dnn_err *err)
{
    f->path = dnn_strdup(path);
    DNN_TRY(dnn_bytes_open(path, &f->bytes, err));
    DNN_TRY(read_header(f, err));
    return check_length(f, err);
}

static void close_idx(struct idx *f)
{
    dnn_bytes_close(f->bytes);
    dnn_free(f->path);
}

/* Read values starting at sample first, in native byte order. */
static int read_values(const struct idx *f, int64_t first, void *to, size_t bytes,
                       struct dnn_err *err)
{
    struct dnn_npy order = {.type = f->type,
                            .swap = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__};

    DNN_TRY(
        dnn_bytes_read(f->bytes, f->start + first * f->sample_bytes, to, bytes, err));
    dnn_npy_swap(&order, to, bytes / dnn_dtype_size(f->type));
    return 0;
}

/* ---- labels ---- */

static int check_labels(const struct idx_source *s, const struct idx *f,
                        struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];

    if (f->shape.ndim != 1 || f->type == DNN_F32 || f->type == DNN_F64)
        return dnn_fail(err, DNN_EDATA,
                        "%s: labels must be a 1-D integer array, not %s %s", f->path,
                        dnn_dtype_name(f->type),
                        dnn_shape_text(text, sizeof text, &f->shape));
    if (f->shape.dim[0] != s->base.count)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %" PRId64 " labels, but %s has %" PRId64 " samples",
                        f->path, f->shape.dim[0], s->file.path, s->base.count);
    return 0;
}

/* Read all labels and count the classes. */
static int read_labels(struct idx_source *s, const struct idx *f,
                       struct dnn_column *col, struct dnn_err *err)
{
    struct dnn_array all = {0};
    int rc = dnn_array_make(&all, f->type, &f->shape, err);

    if (rc == 0) rc = read_values(f, 0, all.data, dnn_array_bytes(&all), err);
    if (rc == 0) rc = dnn_array_convert(&all, DNN_I32, true, err);
    for (int64_t i = 0; rc == 0 && i < f->shape.dim[0]; i++) {
        int32_t label = ((const int32_t *)all.data)[i];

        if (label < 0)
            rc = dnn_fail(err, DNN_EDATA,
                          "%s: label %" PRId64 " is %d; labels must be 0 or more",
                          f->path, i, label);
        if (label >= col->classes) col->classes = (int64_t)label + 1;
    }
    s->label = all.data; /* owned from here on; freed with free(), like arrays */
    return rc;
}

/* "train-images-idx3-ubyte.gz" -> "train-labels-idx1-ubyte", with .gz or without. */
static char *partner_of(const char *path)
{
    const char *base = dnn_import_base(path), *at = strstr(base, "images");
    char *name, *three;
    size_t len;

    if (at == NULL) return NULL;
    name = dnn_format("%.*slabels%s", (int)(at - path), path, at + strlen("images"));
    three = strstr(name + (at - path), "idx3");
    if (three != NULL) three[3] = '1';
    len = strlen(name);
    if (access(name, F_OK) == 0) return name;
    char *other = len > 3 && strcmp(name + len - 3, ".gz") == 0
                      ? dnn_strndup(name, len - 3)
                      : dnn_format("%s.gz", name);
    dnn_free(name);
    if (access(other, F_OK) == 0) return other;
    dnn_free(other);
    return NULL;
}

static int add_labels(struct idx_source *s, struct dnn_err *err)
{
    char *path = partner_of(s->file.path);
    struct dnn_column *col = &s->base.col[s->base.ncols];
    struct idx f = {0};
    int rc;

    if (path == NULL) return 0;
    s->base.ncols++;
    *col = (struct dnn_column){.name = "target",
                               .role = DNN_ROLE_TARGET,
                               .kind = DNN_KIND_LABEL,
                               .type = DNN_I32};
    rc = open_idx(path, &f, err);
    if (rc == 0) rc = check_labels(s, &f, err);
    if (rc == 0) rc = read_labels(s, &f, col, err);
    s->files[s->base.nfiles++] = path;
    dnn_bytes_close(f.bytes);
    dnn_free(f.path);
    return rc;
}

/* ---- the source ---- */

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    const struct idx_source *s = (const struct idx_source *)source;
    struct dnn_shape shape = {.ndim = s->file.shape.ndim - 1};
    struct dnn_array *array = &out->col[0];

    memcpy(shape.dim, s->file.shape.dim + 1, (size_t)shape.ndim * sizeof shape.dim[0]);
    DNN_TRY(dnn_array_make(array, s->file.type, &shape, err));
    DNN_TRY(read_values(&s->file, i, array->data, (size_t)s->file.sample_bytes, err));
    DNN_TRY(dnn_axes_apply(&s->axes, s->file.path, array, err));
    out->ncols = s->base.ncols;
    if (s->base.ncols == 1) return 0;
    DNN_TRY(dnn_array_make(&out->col[1], DNN_I32, &(struct dnn_shape){0}, err));
    *(int32_t *)out->col[1].data = s->label[i];
    return 0;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct idx_source *s = (const struct idx_source *)source;

    snprintf(out, DNN_SAMPLE_NAME, "%.400s[%" PRId64 "]", dnn_import_base(s->file.path),
             i);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    const struct idx_source *s = (const struct idx_source *)source;

    return s->label == NULL ? -1 : s->label[i];
}

static void close_source(struct dnn_source *source)
{
    struct idx_source *s = (struct idx_source *)source;

    close_idx(&s->file);
    free(s->label);
    dnn_free((char *)s->files[1]);
    dnn_free(s);
}

static const struct dnn_source_type idx_type = {
    .name = "idx",
    .read = read_sample,
    .label = label,
    .class_of = class_of,
    .close = close_source,
};

static const char *split_of(const char *path)
{
    const char *base = dnn_import_base(path);

    if (strstr(base, "train") != NULL) return "train";
    if (strstr(base, "t10k") != NULL || strstr(base, "test") != NULL) return "test";
    return NULL;
}

static int fill(struct idx_source *s, const struct dnn_import *how,
                const struct dnn_import_side *side, struct dnn_err *err)
{
    const struct idx *f = &s->file;
    struct dnn_shape sample = {.ndim = f->shape.ndim - 1};
    bool target = side == &how->target;

    memcpy(sample.dim, f->shape.dim + 1, (size_t)sample.ndim * sizeof sample.dim[0]);
    s->base.count = f->shape.dim[0];
    s->base.split = split_of(f->path);
    if (how->split != NULL && s->base.split != NULL &&
        strcmp(how->split, s->base.split) != 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: belongs to the split \"%s\", not to \"%s\"", f->path,
                        s->base.split, how->split);
    DNN_TRY(dnn_import_fits(how, f->path, f->type, &sample, err));
    DNN_TRY(dnn_axes_find(f->path, side, target, f->type, &sample, &s->axes, err));
    dnn_axes_column(&s->axes, target, &s->base.col[s->base.ncols++]);
    if (f->shape.ndim == 1 && s->axes.kind == DNN_KIND_LABEL && f->type == s->axes.type)
        return read_labels(s, f, &s->base.col[0], err);
    if (target || how->target.path != NULL || f->shape.ndim < 2) return 0;
    return add_labels(s, err);
}

static int open_file(const char *path, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_source **out,
                     struct dnn_err *err)
{
    struct idx_source *s = dnn_alloc(sizeof *s);
    int rc;

    s->base.type = &idx_type;
    rc = open_idx(path, &s->file, err);
    s->files[s->base.nfiles++] = s->file.path;
    s->base.file = s->files;
    if (rc == 0) rc = fill(s, how, side, err);
    if (rc < 0)
        close_source(&s->base);
    else
        *out = &s->base;
    return rc;
}

/* ---- a directory ---- */

static bool is_images(const char *name)
{
    return strstr(name, "images") != NULL && strstr(name, "ubyte") != NULL;
}

/* Whether the same file without .gz precedes it in the sorted list. */
static bool is_gz_duplicate(const struct dnn_import_list *list, size_t i)
{
    size_t len;

    if (i == 0) return false;
    len = strlen(list->file[i - 1].name);
    return strncmp(list->file[i - 1].name, list->file[i].name, len) == 0 &&
           strcmp(list->file[i].name + len, ".gz") == 0;
}

/* Training files come before test files, as usual. */
static int add_split(const struct dnn_import_list *list, const char *split,
                     const struct dnn_import *how, const struct dnn_import_side *side,
                     struct dnn_source **part, int64_t *n, struct dnn_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *of = split_of(list->file[i].name);

        if (!is_images(list->file[i].name) || is_gz_duplicate(list, i)) continue;
        if (split == NULL ? of != NULL : of == NULL || strcmp(of, split) != 0) continue;
        if (how->split != NULL && (of == NULL || strcmp(of, how->split) != 0)) continue;
        DNN_TRY(open_file(list->file[i].path, how, side, &part[*n], err));
        ++*n;
    }
    return 0;
}

static int open_dir(const char *path, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_source **out,
                    struct dnn_err *err)
{
    static const char *const splits[] = {"train", "test", NULL};
    struct dnn_import_list list = {0};
    struct dnn_source **part = NULL;
    int64_t n = 0, images = 0;
    int rc = dnn_import_dir(path, &list, err);

    if (rc == 0) part = dnn_alloc((list.n + 1) * sizeof(struct dnn_source *));
    for (size_t i = 0; i < list.n; i++)
        images += is_images(list.file[i].name);
    for (int i = 0; i < 3 && rc == 0 && images > 0; i++)
        rc = add_split(&list, splits[i], how, side, part, &n, err);
    if (rc == 0 && images > 0 && n == 0)
        rc = dnn_fail(err, DNN_EDATA, "%s: there is no split \"%s\"; use train or test",
                      path, how->split);
    if (rc == 0 && n > 0)
        rc = n == 1 ? (*out = part[0], 0) : dnn_import_series(part, n, out, err);
    else
        for (int64_t i = 0; i < n; i++)
            dnn_source_close(part[i]);
    dnn_free(part);
    dnn_import_list_free(&list);
    return rc;
}

const struct dnn_importer dnn_importer_idx = {
    .name = "idx",
    .suffixes = ".idx .idx.gz -ubyte -ubyte.gz",
    .help = "MNIST and similar: images, with labels from the matching file",
    .labels = true,
    .sniff = sniff,
    .open = open_file,
    .open_dir = open_dir,
};
