/* cifar.c - CIFAR-10 and CIFAR-100 in their binary form.
 *
 * A record is a label (CIFAR-100: a coarse and a fine one) and 3 planes of 32 x 32.
 * There is no header: the dataset is detected from the file name or the file length.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/import_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, IMAGE = 3 * PLANE, NAMES_LIMIT = 1 << 20 };

struct set {
    const char *name;
    int nlabels; /* bytes before the image */
    struct {
        const char *name;  /* as in side->name            */
        const char *names; /* file of its class names     */
        int classes;
    } label[2];
};

static const struct set cifar10 = {
    "CIFAR-10", 1, {{"fine", "batches.meta.txt", 10}, {NULL, NULL, 0}}
};
static const struct set cifar100 = {
    "CIFAR-100",
    2,
    {{"coarse", "coarse_label_names.txt", 20}, {"fine", "fine_label_names.txt", 100}}
};

struct cifar {
    struct dnn_source base;
    const struct set *set;
    struct dnn_bytes *bytes;
    struct dnn_arena *arena;
    const char *path, *file[3];
    int column[2]; /* of each label of the record; 0: none */
};

/* ---- detection ---- */

static const char *split_of(const char *path)
{
    const char *base = dnn_import_base(path);

    if (strncasecmp(base, "test", 4) == 0) return "test";
    if (strncasecmp(base, "train", 5) == 0 || strncasecmp(base, "data_batch", 10) == 0)
        return "train";
    return NULL;
}

static bool fits(const struct set *set, int64_t length)
{
    return length > 0 && length % (set->nlabels + IMAGE) == 0;
}

static const struct set *set_of(const char *path, int64_t length)
{
    const char *base = dnn_import_base(path);
    bool batch = strstr(base, "batch") != NULL;

    if (batch) return fits(&cifar10, length) ? &cifar10 : NULL;
    if (strncasecmp(base, "train.", 6) == 0 || strncasecmp(base, "test.", 5) == 0)
        return fits(&cifar100, length) ? &cifar100 : NULL;
    if (fits(&cifar10, length) != fits(&cifar100, length))
        return fits(&cifar10, length) ? &cifar10 : &cifar100;
    return NULL;
}

/* ---- class names ---- */

/* Read the class names, if there is such a file in the same directory. */
static int read_names(struct cifar *c, const char *file, int classes,
                      const char *const **out, struct dnn_err *err)
{
    char *path =
        dnn_format("%.*s%s", (int)(dnn_import_base(c->path) - c->path), c->path, file);
    char *text = NULL, *rest, *line;
    const char **names;
    int n = 0, rc = 0;

    if (access(path, F_OK) == 0) {
        rc = dnn_file_read_text(path, NAMES_LIMIT, &text, err);
        names = dnn_arena_alloc(c->arena, (size_t)classes * sizeof *names);
        for (rest = text; rc == 0 && (line = strsep(&rest, "\n")) != NULL;) {
            line[strcspn(line, "\r")] = '\0';
            if (line[0] == '\0') continue;
            if (n < classes) names[n] = dnn_arena_strdup(c->arena, line);
            n++;
        }
        if (rc == 0 && n != classes)
            rc = dnn_fail(err, DNN_EDATA, "%s: %d class names, but %s has %d classes",
                          path, n, c->set->name, classes);
        *out = names;
        c->file[c->base.nfiles++] = dnn_arena_strdup(c->arena, path);
    }
    dnn_free(text);
    dnn_free(path);
    return rc;
}

/* ---- the source ---- */

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    const struct cifar *c = (const struct cifar *)source;
    struct dnn_shape shape = {
        .ndim = 3, .dim = {3, SIDE, SIDE}
    };
    unsigned char record[2 + IMAGE];
    size_t n = (size_t)c->set->nlabels + IMAGE;

    DNN_TRY(dnn_bytes_read(c->bytes, i * (int64_t)n, record, n, err));
    DNN_TRY(dnn_array_make(&out->col[0], DNN_U8, &shape, err));
    memcpy(out->col[0].data, record + c->set->nlabels, IMAGE);
    DNN_TRY(dnn_array_channels_last(&out->col[0], err));
    out->ncols = c->base.ncols;
    for (int k = 0; k < c->set->nlabels; k++) {
        if (record[k] >= c->set->label[k].classes)
            return dnn_fail(err, DNN_EDATA,
                            "%s: sample %" PRId64
                            ": label %d is out of range; %s has %d %s classes, 0 to %d",
                            c->path, i, record[k], c->set->name,
                            c->set->label[k].classes, c->set->label[k].name,
                            c->set->label[k].classes - 1);
        if (c->column[k] == 0) continue;
        struct dnn_array *label = &out->col[c->column[k]];
        DNN_TRY(dnn_array_make(label, DNN_I32, &(struct dnn_shape){0}, err));
        *(int32_t *)label->data = record[k];
    }
    return 0;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct cifar *c = (const struct cifar *)source;

    snprintf(out, DNN_SAMPLE_NAME, "%.400s[%" PRId64 "]", dnn_import_base(c->path), i);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    const struct cifar *c = (const struct cifar *)source;
    int64_t at = i * (c->set->nlabels + IMAGE);
    unsigned char byte;

    /* The target is column 1. */
    for (int k = 0; k < c->set->nlabels; k++)
        if (c->column[k] == 1 &&
            dnn_bytes_read(c->bytes, at + k, &byte, 1, NULL) == 0 &&
            byte < c->set->label[k].classes)
            return byte;
    return -1;
}

static void close_source(struct dnn_source *source)
{
    struct cifar *c = (struct cifar *)source;

    dnn_bytes_close(c->bytes);
    dnn_arena_free(c->arena);
    dnn_free(c);
}

static const struct dnn_source_type cifar_type = {
    .name = "cifar",
    .read = read_sample,
    .label = label,
    .class_of = class_of,
    .close = close_source,
};

/* ---- opening ---- */

/* The selected label is the target; the other, if any, an extra column. */
static int add_label(struct cifar *c, int k, bool target, struct dnn_err *err)
{
    struct dnn_column *col = &c->base.col[c->base.ncols];

    *col = (struct dnn_column){.role = target ? DNN_ROLE_TARGET : DNN_ROLE_EXTRA,
                               .kind = DNN_KIND_LABEL,
                               .type = DNN_I32,
                               .classes = c->set->label[k].classes};
    snprintf(col->name, sizeof col->name, "%s",
             target ? "target" : c->set->label[k].name);
    c->column[k] = c->base.ncols++;
    return read_names(c, c->set->label[k].names, c->set->label[k].classes,
                      &col->class_name, err);
}

static int add_columns(struct cifar *c, const struct dnn_import *how,
                       const struct dnn_import_side *side, struct dnn_err *err)
{
    int want = c->set->nlabels - 1;

    c->base.col[c->base.ncols++] = (struct dnn_column){
        .name = "input",
        .role = DNN_ROLE_INPUT,
        .kind = DNN_KIND_IMAGE,
        .type = DNN_U8,
        .shape = {.ndim = 3, .dim = {SIDE, SIDE, 3}},
    };
    if (how->target.path != NULL) return 0;
    const char *name = how->target.name != NULL ? how->target.name : side->name;
    if (name != NULL) {
        for (want = c->set->nlabels - 1; want >= 0; want--)
            if (strcasecmp(name, c->set->label[want].name) == 0) break;
        if (want < 0)
            return dnn_fail(err, DNN_ECONFIG,
                            "%s: %s has no labels named \"%s\"; available: %s", c->path,
                            c->set->name, name,
                            c->set == &cifar10 ? "fine" : "coarse and fine");
    }
    DNN_TRY(add_label(c, want, true, err));
    return c->set->nlabels == 2 ? add_label(c, 1 - want, false, err) : 0;
}

static int fill(struct cifar *c, const struct dnn_import *how,
                const struct dnn_import_side *side, struct dnn_err *err)
{
    int64_t length;

    DNN_TRY(dnn_bytes_open(c->path, &c->bytes, err));
    DNN_TRY(dnn_bytes_length(c->bytes, &length, err));
    c->set = set_of(c->path, length);
    if (c->set == NULL)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %" PRId64
                        " bytes is not a multiple of the record size of CIFAR-10 (%d, "
                        "data_batch_1.bin) or CIFAR-100 (%d, train.bin)",
                        c->path, length, 1 + IMAGE, 2 + IMAGE);
    c->base.count = length / (c->set->nlabels + IMAGE);
    c->base.split = split_of(c->path);
    if (how->split != NULL && c->base.split != NULL &&
        strcmp(how->split, c->base.split) != 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: belongs to the split \"%s\", not to \"%s\"", c->path,
                        c->base.split, how->split);
    return add_columns(c, how, side, err);
}

static int open_file(const char *path, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_source **out,
                     struct dnn_err *err)
{
    struct cifar *c = dnn_alloc(sizeof *c);
    int rc;

    c->base.type = &cifar_type;
    c->arena = dnn_arena_make();
    c->path = dnn_arena_strdup(c->arena, path);
    c->base.file = c->file;
    c->file[c->base.nfiles++] = c->path;
    rc = fill(c, how, side, err);
    if (rc < 0)
        close_source(&c->base);
    else
        *out = &c->base;
    return rc;
}

/* ---- a directory ---- */

static const char *const file_names[] = {
    "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
    "data_batch_5.bin", "train.bin",        "test_batch.bin",   "test.bin"};
enum { NFILES = sizeof file_names / sizeof file_names[0] };

static int open_dir(const char *path, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_source **out,
                    struct dnn_err *err)
{
    struct dnn_source *part[NFILES];
    int n = 0, found = 0, rc = 0;

    for (int i = 0; i < NFILES && rc == 0; i++) {
        char *file = dnn_format("%s/%s", path, file_names[i]);

        if (access(file, F_OK) == 0) {
            found++;
            if (how->split == NULL || strcmp(how->split, split_of(file)) == 0)
                rc = open_file(file, how, side, &part[n], err);
            else
                part[n] = NULL;
            if (rc == 0 && part[n] != NULL) n++;
        }
        dnn_free(file);
    }
    if (rc == 0 && found > 0 && n == 0)
        rc = dnn_fail(err, DNN_EDATA, "%s: there is no split \"%s\"", path, how->split);
    if (rc == 0 && n > 0)
        return n == 1 ? (*out = part[0], 0) : dnn_import_series(part, n, out, err);
    for (int i = 0; i < n; i++)
        dnn_source_close(part[i]);
    return rc;
}

const struct dnn_importer dnn_importer_cifar = {
    .name = "cifar",
    .suffixes = ".bin",
    .help = "CIFAR-10 and CIFAR-100, binary version",
    .labels = true,
    .open = open_file,
    .open_dir = open_dir,
};
