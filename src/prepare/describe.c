/* describe.c - prints the contents of a dataset as tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/describe_impl.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "prepare/prepare.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- on disk ---- */

struct disk {
    int64_t files, bytes;
};

static int add_disk_usage(const char *path, int depth, struct disk *sum,
                          struct dnn_err *err)
{
    struct dirent *entry;
    struct stat st;

    if (lstat(path, &st) != 0)
        return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        sum->files++;
        sum->bytes += st.st_size;
        return 0;
    }
    DIR *dir = depth < 8 ? opendir(path) : NULL;
    if (dir == NULL)
        return dnn_fail(err, DNN_EIO, "%s: %s", path,
                        depth < 8 ? strerror(errno) : "nested too deeply");
    int rc = 0;
    while (rc == 0 && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *below = dnn_format("%s/%s", path, entry->d_name);
        rc = add_disk_usage(below, depth + 1, sum, err);
        dnn_free(below);
    }
    closedir(dir);
    return rc;
}

/* ---- columns ---- */

static int width_of(int width, const char *text)
{
    int n = (int)strlen(text);

    return n > width ? n : width;
}

static void range_text(char out[96], const struct dnn_stored *col)
{
    const struct dnn_stats *s = col->stats;
    double low = INFINITY, high = -INFINITY;

    for (int c = 0; s != NULL && c < s->nchannels && c < DNN_STATS_CHANNELS; c++) {
        if (s->min[c] < low) low = s->min[c];
        if (s->max[c] > high) high = s->max[c];
    }
    if (low <= high)
        snprintf(out, 96, "%.5g to %.5g", low, high);
    else if (col->column.classes > 0)
        snprintf(out, 96, "%" PRId64 " classes", col->column.classes);
    else
        snprintf(out, 96, "-");
}

/* Mean and standard deviation, if there is only one channel. */
static void moments_text(char mean[32], char std[32], const struct dnn_stored *col)
{
    const struct dnn_stats *s = col->stats;

    snprintf(mean, 32, "-");
    snprintf(std, 32, "-");
    if (s == NULL || s->nchannels != 1 || s->good[0] == 0) return;
    snprintf(mean, 32, "%.5g", s->mean[0]);
    snprintf(std, 32, "%.5g", dnn_stats_std(s, 0));
}

/* Scale and offset, if stored elements are not the values. */
static void scale_text(char out[96], const struct dnn_stored *col)
{
    if (col->nscale == 0)
        snprintf(out, 96, "%s", "");
    else if (col->nscale == 1 && col->offset[0] == 0)
        snprintf(out, 96, ", value = stored * %.6g", col->scale[0]);
    else if (col->nscale == 1)
        snprintf(out, 96, ", value = stored * %.6g %c %.6g", col->scale[0],
                 col->offset[0] < 0 ? '-' : '+', fabs(col->offset[0]));
    else
        snprintf(out, 96, ", scaled per channel (%d channels)", col->nscale);
}

static void print_columns(const struct dnn_split *split, FILE *where)
{
    int name = 6, shape = 5, range = 5;
    char text[DNN_SHAPE_TEXT], span[96], mean[32], std[32];

    for (int k = 0; k < split->ncols; k++) {
        const struct dnn_stored *col = &split->col[k];

        name = width_of(name, col->column.name);
        shape = width_of(shape, dnn_shape_text(text, sizeof(text), &col->column.shape));
        range_text(span, col);
        range = width_of(range, span);
    }
    fprintf(where, "  %-*s  %-6s  %-6s  %-6s  %-*s  %-*s  %9s  %9s\n", name, "column",
            "role", "kind", "stored", shape, "shape", range, "range", "mean", "std");
    for (int k = 0; k < split->ncols; k++) {
        const struct dnn_stored *col = &split->col[k];

        range_text(span, col);
        moments_text(mean, std, col);
        fprintf(where, "  %-*s  %-6s  %-6s  %-6s  %-*s  %-*s  %9s  %9s\n", name,
                col->column.name, dnn_choice_name(dnn_role_choices, col->column.role),
                dnn_choice_name(dnn_kind_choices, col->column.kind),
                dnn_dtype_name(col->column.type), shape,
                dnn_shape_text(text, sizeof(text), &col->column.shape), range, span,
                mean, std);
    }
}

/* What does not fit into the column's line of the table. */
static void print_details(const struct dnn_stored *col, FILE *where)
{
    /* For extra columns (such as a matrix) the range in the table is enough. */
    const struct dnn_stats *s = col->column.role == DNN_ROLE_EXTRA ? NULL : col->stats;
    char scale[96];

    scale_text(scale, col);
    bool spaced = col->spacing[0] > 0;
    if (s == NULL && scale[0] == '\0' && !spaced) return;
    fprintf(where, "\n  %s%s", col->column.name, scale);
    if (spaced) {
        fputs(", spacing", where);
        for (int i = 0; i < DNN_MAX_SPACE && col->spacing[i] > 0; i++)
            fprintf(where, " %s%.4g", i > 0 ? "x " : "", col->spacing[i]);
    }
    if (s != NULL && s->bad > 0)
        fprintf(where, ", %" PRId64 " non-finite values", s->bad);
    fputc('\n', where);
    if (s != NULL && s->nchannels > 1) dnn_describe_channels(s, where);
    if (s != NULL && s->nchannels > 0) dnn_describe_histogram(s, where);
    if (s != NULL && s->nchannels == 0) dnn_describe_classes(&col->column, s, where);
}

/* ---- the record ---- */

/* The names in a list of steps: each is an object with one key, or a string. */
static bool step_names(const struct dnn_jobj *list, struct dnn_buf *out)
{
    const char *text;

    for (struct dnn_jobj at = dnn_json_first(list); at.val != NULL;
         at = dnn_json_next(&at)) {
        struct dnn_jobj key = dnn_json_first(&at);

        if (dnn_json_type(&at) == DNN_J_OBJECT && dnn_json_count(&at) == 1)
            dnn_buf_add(out, "%s%s", out->len > 0 ? ", " : "", key.name);
        else if (dnn_json_type(&at) == DNN_J_TEXT &&
                 dnn_json_string(&at, &text, NULL) == 0)
            dnn_buf_add(out, "%s%s", out->len > 0 ? ", " : "", text);
        else
            return false;
    }
    return out->len > 0;
}

static void print_member(const struct dnn_jobj *at, FILE *where)
{
    char quote[DNN_JSON_QUOTE];
    struct dnn_buf list = {0};
    const char *text = NULL;

    switch (dnn_json_type(at)) {
    case DNN_J_LIST:
        if (dnn_json_count(at) == 0)
            fprintf(where, "  %-12s  none\n", at->name);
        else if (step_names(at, &list) && list.len <= 100)
            fprintf(where, "  %-12s  %s\n", at->name, list.text);
        else
            fprintf(where, "  %-12s  %zu entries\n", at->name, dnn_json_count(at));
        break;
    case DNN_J_OBJECT:
        fprintf(where, "  %-12s  %zu entries\n", at->name, dnn_json_count(at));
        break;
    case DNN_J_TEXT:
        if (dnn_json_string(at, &text, NULL) == 0)
            fprintf(where, "  %-12s  %.100s%s\n", at->name, text,
                    strlen(text) > 100 ? "..." : "");
        break;
    default:
        fprintf(where, "  %-12s  %s\n", at->name, dnn_json_quote(quote, at));
    }
    dnn_buf_free(&list);
}

static int print_provenance(const char *path, const char *text, FILE *where,
                            struct dnn_err *err)
{
    struct dnn_json *json = NULL;

    if (text == NULL || text[0] == '\0') return 0;
    char *name = dnn_format("%s: record", path);
    int rc = dnn_json_text(name, text, strlen(text), &json, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json);

        if (dnn_json_count(&top) > 0) fputs("\nhistory\n", where);
        for (struct dnn_jobj at = dnn_json_first(&top); at.val != NULL;
             at = dnn_json_next(&at))
            print_member(&at, where);
    } else if (err != NULL) {
        rc = err->code = DNN_EDATA;
    }
    dnn_json_free(json);
    dnn_free(name);
    return rc;
}

/* ---- everything ---- */

static void print_split(const struct dnn_split *split, FILE *where)
{
    fprintf(where, "\n%s: %" PRId64 " samples in chunks of %" PRId64, split->name,
            split->count, split->chunk);
    if (split->folds > 0) fprintf(where, ", %" PRId64 " folds", split->folds);
    fputc('\n', where);
    print_columns(split, where);
    for (int k = 0; k < split->ncols; k++)
        print_details(&split->col[k], where);
}

int dnn_prepare_describe(const char *path, FILE *where, struct dnn_err *err)
{
    struct dnn_dataset *dataset = NULL;
    struct disk disk = {0};
    char size[32];

    DNN_TRY(dnn_dataset_open(NULL, path, 1, &dataset, err));
    const struct dnn_dataset_info *info = dnn_dataset_info(dataset);
    int rc = add_disk_usage(path, 0, &disk, err);
    if (rc == 0) {
        fprintf(
            where, "%s\n  hash          %s\n  on disk       %s in %" PRId64 " file%s\n",
            path, info->hash, dnn_text_bytes(size, sizeof(size), (double)disk.bytes),
            disk.files, disk.files == 1 ? "" : "s");
        fputs("  splits        ", where);
        for (int i = 0; i < info->nsplits; i++)
            fprintf(where, "%s%s %" PRId64, i > 0 ? ", " : "", info->split[i].name,
                    info->split[i].count);
        fputc('\n', where);
        for (int i = 0; i < info->nsplits; i++)
            print_split(&info->split[i], where);
        rc = print_provenance(path, info->provenance, where, err);
    }
    dnn_dataset_close(dataset);
    return rc;
}
