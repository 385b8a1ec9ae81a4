/* open.c - open a path as a source: a file, a directory or a list of files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- limits ---- */

int64_t dnn_import_limit(const struct dnn_import *how)
{
    return how->limit > 0 ? how->limit : (int64_t)16 << 30;
}

int dnn_import_fits(const struct dnn_import *how, const char *what, enum dnn_dtype type,
                    const struct dnn_shape *shape, struct dnn_err *err)
{
    struct dnn_tensor tensor = {.name = what, .dtype = type, .shape = *shape};
    char text[DNN_SHAPE_TEXT], size[32], limit[32];
    size_t bytes;

    if (dnn_tensor_bytes(&tensor, &bytes, err) < 0) {
        if (err != NULL) err->code = DNN_EDATA;
        return DNN_EDATA;
    }
    if (bytes <= (size_t)dnn_import_limit(how)) return 0;
    return dnn_fail(err, DNN_EDATA, "%s: %s %s needs %s, which exceeds the limit of %s",
                    what, dnn_dtype_name(type),
                    dnn_shape_text(text, sizeof text, shape),
                    dnn_text_bytes(size, sizeof size, (double)bytes),
                    dnn_text_bytes(limit, sizeof limit, (double)dnn_import_limit(how)));
}

/* ---- many files ---- */

static bool is_image(const struct dnn_importer *importer)
{
    return importer == &dnn_importer_png || importer == &dnn_importer_jpeg ||
           importer == &dnn_importer_tiff;
}

/* Formats with one array per file: in a directory, each file is one sample. */
static bool is_array(const struct dnn_importer *importer)
{
    return importer == &dnn_importer_npy || importer == &dnn_importer_raw ||
           importer == &dnn_importer_nifti;
}

/* Whether files of both formats may be in one directory. */
static bool compatible(const struct dnn_importer *a, const struct dnn_importer *b)
{
    return a == b || (is_image(a) && is_image(b));
}

static int several_formats(const char *path, const struct dnn_import_file *a,
                           const struct dnn_import_file *b, struct dnn_err *err)
{
    return dnn_fail(
        err, DNN_EDATA,
        "%s: contains files of several formats, %s (%s) and %s (%s); set \"format\"",
        path, a->importer->name, a->name, b->importer->name, b->name);
}

/* The requested format, or NULL; a shape implies raw files. */
static int requested_format(const struct dnn_import_side *side,
                            const struct dnn_importer **out, struct dnn_err *err)
{
    const char *format = side->format;

    *out = NULL;
    if (format == NULL && side->shape.count > 0) format = dnn_importer_raw.name;
    return format == NULL ? 0 : dnn_importer_find(format, NULL, out, err);
}

/* Keep the files of a directory that can be read.  Skipped files are logged, unless a
 * format was requested. */
static int choose_files(const char *path, const struct dnn_importer *requested,
                        struct dnn_import_list *list, struct dnn_err *err)
{
    const char *unknown = NULL;
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        struct dnn_import_file file = list->file[i];

        file.importer = requested;
        if (requested == NULL)
            file.importer = dnn_importer_by_suffix(file.path);
        else if (requested != &dnn_importer_raw &&
                 !dnn_importer_owns(requested, file.path))
            file.importer = NULL;
        if (file.importer == NULL) {
            if (unknown == NULL) unknown = file.name;
            continue;
        }
        if (n > 0 && !compatible(list->file[0].importer, file.importer))
            return several_formats(path, &list->file[0], &file, err);
        if (file.importer->open == NULL) return dnn_importer_lacks(file.importer, err);
        list->file[n++] = file;
    }
    if (list->n == 0) return dnn_fail(err, DNN_EDATA, "%s: contains no files", path);
    if (n == 0 && requested != NULL)
        return dnn_fail(err, DNN_EDATA, "%s: no %s file (%s) among its %zu files", path,
                        requested->name, requested->suffixes, list->n);
    if (n == 0)
        return dnn_fail(err, DNN_EDATA, "%s: none of its %zu files has a known format",
                        path, list->n);
    if (n < list->n && requested == NULL)
        dnn_log_once(DNN_WARN, "import",
                     "%s: skipped %zu of %zu files of unknown format; the first is %s",
                     path, list->n - n, list->n, unknown);
    list->n = n;
    return 0;
}

/* All files of a list must be readable. */
static int find_formats(const char *path, const struct dnn_importer *requested,
                        struct dnn_import_list *list, struct dnn_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        struct dnn_import_file *file = &list->file[i];

        file->importer = requested;
        if (requested == NULL &&
            dnn_importer_find(NULL, file->path, &file->importer, err) < 0)
            return dnn_prefix(err, "%s: ", path);
        if (!compatible(list->file[0].importer, file->importer))
            return several_formats(path, &list->file[0], file, err);
    }
    return 0;
}

/* Number the classes as in `classes`, which must have all of them. */
static int number_classes(const struct dnn_import *how,
                          struct dnn_import_series_how *as,
                          struct dnn_import_list *list, struct dnn_err *err)
{
    const struct dnn_list *names = &how->classes;
    int64_t *number = dnn_alloc((size_t)(as->nclasses + 1) * sizeof *number);
    int rc = 0;

    for (int64_t i = 0; i < as->nclasses && rc == 0; i++) {
        while (number[i] < names->count &&
               strcmp(names->texts[number[i]], as->class_name[i]) != 0)
            number[i]++;
        if (number[i] == names->count)
            rc = dnn_fail(err, DNN_EDATA,
                          "%s: the directory \"%s\" is not one of the %" PRId64
                          " classes",
                          how->input.path, as->class_name[i], names->count);
    }
    for (size_t i = 0; i < list->n && rc == 0; i++)
        list->file[i].class_of = number[list->file[i].class_of];
    as->nclasses = names->count;
    as->class_name = names->texts;
    dnn_free(number);
    return rc;
}

static int open_list(const struct dnn_import *how, const struct dnn_import_side *side,
                     struct dnn_import_list *list, struct dnn_source **out,
                     struct dnn_err *err)
{
    const struct dnn_importer *importer = list->file[0].importer;
    struct dnn_import each = *how;
    struct dnn_import_series_how as = {.how = &each, .target = side == &how->target};

    each.whole = how->whole || is_array(importer);
    as.one_each = importer->single || each.whole;
    if (!as.target && how->target.path == NULL && is_image(importer) &&
        side->kind != DNN_KIND_MASK && !how->no_classes)
        as.nclasses = dnn_import_classes(list, how->split, &as.class_name);
    if (as.nclasses > 0 && how->classes.count > 0)
        DNN_TRY(number_classes(how, &as, list, err));
    return dnn_import_files(list, &as, out, err);
}

/* ---- a directory ---- */

/* A BP5 file is a directory; without the suffix it is recognised by its file md.idx. */
static bool is_bp(const char *path)
{
    char *table = dnn_format("%s/md.idx", path);
    bool found = dnn_importer_owns(&dnn_importer_bp, path) || access(table, F_OK) == 0;

    dnn_free(table);
    return found;
}

/* Open a directory that is one dataset: BP, or recognised by a format. */
static int open_dataset_dir(const struct dnn_import *how,
                            const struct dnn_import_side *side,
                            const struct dnn_importer *requested,
                            struct dnn_source **out, struct dnn_err *err)
{
    size_t len = strlen(side->path);

    while (len > 1 && side->path[len - 1] == '/')
        len--;
    char *path = dnn_strndup(side->path, len);
    int rc = 0;

    if ((requested == NULL || requested == &dnn_importer_bp) && is_bp(path)) {
        rc = dnn_importer_bp.open == NULL
                 ? dnn_importer_lacks(&dnn_importer_bp, err)
                 : dnn_importer_bp.open(path, how, side, out, err);
    }
    for (int i = 0; rc == 0 && *out == NULL && dnn_importers[i] != NULL; i++)
        if (dnn_importers[i]->open_dir != NULL &&
            (requested == NULL || requested == dnn_importers[i]))
            rc = dnn_importers[i]->open_dir(path, how, side, out, err);
    dnn_free(path);
    return rc;
}

static int open_dir(const struct dnn_import *how, const struct dnn_import_side *side,
                    struct dnn_source **out, struct dnn_err *err)
{
    const struct dnn_importer *requested;
    struct dnn_import_list list = {0};
    int rc;

    DNN_TRY(requested_format(side, &requested, err));
    DNN_TRY(open_dataset_dir(how, side, requested, out, err));
    if (*out != NULL) return 0;
    rc = dnn_import_tree(side->path, ".bp", &list, err);
    if (rc == 0) rc = choose_files(side->path, requested, &list, err);
    if (rc == 0 && how->split != NULL)
        rc = dnn_import_tagged(&list, side->path, how->split, err);
    if (rc == 0) rc = open_list(how, side, &list, out, err);
    if (rc == 0 && how->split != NULL) (*out)->split = how->split;
    dnn_import_list_free(&list);
    return rc;
}

/* ---- a file ---- */

static bool is_list(const struct dnn_import_side *side)
{
    const char *dot = strrchr(dnn_import_base(side->path), '.');

    if (dot == NULL) return false;
    if (strcasecmp(dot, ".list") == 0) return true;
    return strcasecmp(dot, ".txt") == 0 &&
           (side->format == NULL ||
            strcasecmp(side->format, dnn_importer_csv.name) != 0);
}

/* For formats without splits, only the path can specify the split.  Other formats check
 * the split themselves. */
static int check_split(const struct dnn_import *how, const struct dnn_import_side *side,
                       const struct dnn_importer *importer, struct dnn_err *err)
{
    if (!is_image(importer) && importer != &dnn_importer_nifti &&
        importer != &dnn_importer_raw && importer != &dnn_importer_csv)
        return 0;
    if (dnn_import_of_split(side->path, how->split)) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: not part of the split \"%s\": neither a directory nor the "
                    "file name says so",
                    side->path, how->split);
}

static int open_file(const struct dnn_import *how, const struct dnn_import_side *side,
                     struct dnn_source **out, struct dnn_err *err)
{
    const struct dnn_importer *importer;

    DNN_TRY(requested_format(side, &importer, err));
    if (is_list(side)) {
        struct dnn_import_list list = {0};
        int rc = dnn_import_lines(side->path, &list, err);

        if (rc == 0 && how->split != NULL)
            rc = dnn_import_tagged(&list, side->path, how->split, err);
        if (rc == 0) rc = find_formats(side->path, importer, &list, err);
        if (rc == 0) rc = open_list(how, side, &list, out, err);
        dnn_import_list_free(&list);
        return rc;
    }
    if (importer == NULL) DNN_TRY(dnn_importer_find(NULL, side->path, &importer, err));
    DNN_TRY(check_split(how, side, importer, err));
    return importer->open(side->path, how, side, out, err);
}

static int open_side(const struct dnn_import *how, const struct dnn_import_side *side,
                     struct dnn_source **out, struct dnn_err *err)
{
    struct stat st;

    *out = NULL;
    if (stat(side->path, &st) != 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", side->path,
                        strerror(errno));
    return S_ISDIR(st.st_mode) ? open_dir(how, side, out, err)
                               : open_file(how, side, out, err);
}

/* ---- both sides ---- */

/* The source returned to the caller: owns the description, which the inner sources use,
 * and adds groups. */
struct opened {
    struct dnn_source base;
    struct dnn_source_type type;
    struct dnn_import how;
    struct dnn_source *from;
};

static const struct dnn_source *from_of(const struct dnn_source *source)
{
    return ((const struct opened *)source)->from;
}

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    return dnn_source_read(from_of(source), i, out, err);
}

static int shape_of(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_shape *out, struct dnn_err *err)
{
    return dnn_source_try_shape(from_of(source), i, c, out, err);
}

static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    return dnn_source_try_box(from_of(source), i, c, start, extent, out, err);
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    dnn_source_label(from_of(source), i, out);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    return from_of(source)->type->class_of(from_of(source), i);
}

static void group(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct dnn_source *from = from_of(source);
    const char *by = ((const struct opened *)source)->how.group;
    char *base, *end;

    if (from->type->group != NULL) {
        from->type->group(from, i, out);
        return;
    }
    dnn_source_label(from, i, out);
    base = out + (dnn_import_base(out) - out);
    if (strcmp(by, "directory") == 0) {
        if (base == out)
            strcpy(out, ".");
        else
            base[-1] = '\0';
    } else if ((end = strstr(base, by)) != NULL) {
        *end = '\0';
    }
}

static void close_opened(struct dnn_source *source)
{
    dnn_source_close(((struct opened *)source)->from);
    dnn_free(source);
}

int dnn_import_open(const struct dnn_import *how, struct dnn_source **out,
                    struct dnn_err *err)
{
    struct opened *o = dnn_alloc(sizeof *o);
    struct dnn_source *target;
    int rc;

    *out = NULL;
    o->how = *how;
    how = &o->how;
    if (how->input.path == NULL)
        rc = dnn_fail(err, DNN_ECONFIG, "the path of the inputs is missing");
    else
        rc = open_side(how, &how->input, &o->from, err);
    if (rc == 0 && how->target.path != NULL) {
        rc = open_side(how, &how->target, &target, err);
        if (rc == 0) {
            struct dnn_source *input = o->from;

            o->from = NULL;
            rc = dnn_import_pair(input, target, how->pairing, &o->from, err);
            if (rc < 0) dnn_prefix(err, "%s, %s: ", how->input.path, how->target.path);
        }
    }
    if (rc == 0 && o->from->count == 0)
        rc = dnn_fail(err, DNN_EDATA, "%s: contains no samples", how->input.path);
    if (rc < 0) {
        close_opened(&o->base);
        return rc;
    }
    o->base = dnn_source_like(o->from, &o->type);
    o->type = (struct dnn_source_type){.name = o->from->type->name,
                                       .read = read_sample,
                                       .label = label,
                                       .close = close_opened,
                                       .shape = shape_of,
                                       .read_box = read_box};
    if (o->from->type->class_of != NULL) o->type.class_of = class_of;
    if (o->from->type->group != NULL || how->group != NULL) o->type.group = group;
    *out = &o->base;
    return 0;
}
