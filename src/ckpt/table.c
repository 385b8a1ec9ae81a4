/* table.c - the list of arrays in a checkpoint, as text:
 *
 *   dnn-checkpoint 2
 *   step 1234
 *   state 57                                   (bytes)
 *   arrays 2
 *   f32 3x3x1x8 0123456789abcdef conv/kernel   (type, shape, checksum, name)
 *   f32 scalar fedcba9876543210 scale
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "ckpt/ckpt_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void dnn_ckpt_table_print(const struct ckpt_table *table, struct dnn_buf *out)
{
    char shape[DNN_SHAPE_TEXT];

    dnn_buf_add(out, "dnn-checkpoint %d\nstep %" PRId64 "\nstate %zu\narrays %d\n",
                DNN_CKPT_FORMAT, table->step, table->state_bytes, table->n);
    for (int i = 0; i < table->n; i++) {
        const struct dnn_ckpt_array *a = &table->array[i];

        dnn_buf_add(out, "%s %s %016" PRIx64 " %s\n", dnn_dtype_name(a->type),
                    dnn_shape_text(shape, sizeof shape, &a->shape), table->sum[i],
                    a->name);
    }
}

uint64_t dnn_ckpt_table_sum(const char *table, const char *state)
{
    XXH64_hash_t first = XXH3_64bits(table, strlen(table) + 1);

    return XXH3_64bits_withSeed(state, strlen(state), first);
}

/* ---- read ---- */

/* The next field, up to the character end; NULL: none.  Replaces this character by
 * NUL. */
static char *next_field(char **at, char end)
{
    char *field = *at, *stop = strchr(field, end);

    if (stop == NULL || stop == field) return NULL;
    *stop = '\0';
    *at = stop + 1;
    return field;
}

/* "key number\n" */
static bool read_number(char **at, const char *key, int64_t *out)
{
    long long x;
    char *field = next_field(at, ' '),
         *number = field == NULL ? NULL : next_field(at, '\n');

    if (number == NULL || strcmp(field, key) != 0 || !dnn_text_int(number, &x) || x < 0)
        return false;
    *out = x;
    return true;
}

static bool read_array(char **at, struct dnn_ckpt_array *array, uint64_t *sum)
{
    char *type = next_field(at, ' '),
         *shape = type == NULL ? NULL : next_field(at, ' ');
    char *hex = shape == NULL ? NULL : next_field(at, ' '), *end;
    char *name = hex == NULL ? NULL : next_field(at, '\n');

    if (name == NULL || dnn_dtype_find(type, &array->type, NULL) < 0 ||
        dnn_shape_parse(shape, &array->shape, NULL) < 0 || strlen(hex) != 16)
        return false;
    *sum = strtoull(hex, &end, 16);
    array->name = dnn_strdup(name);
    return *end == '\0';
}

static int read_head(const char *path, char **at, struct ckpt_table *out, int64_t *n,
                     struct dnn_err *err)
{
    int64_t format, bytes;

    if (!read_number(at, "dnn-checkpoint", &format))
        return dnn_fail(err, DNN_EDATA, "%s: is not a checkpoint", path);
    if (format != DNN_CKPT_FORMAT)
        return dnn_fail(err, DNN_ECONFIG,
                        "%s: has checkpoint format %" PRId64
                        "; this program reads format %d: use the version that wrote "
                        "it, or start a new run in another directory",
                        path, format, DNN_CKPT_FORMAT);
    if (!read_number(at, "step", &out->step) || !read_number(at, "state", &bytes) ||
        !read_number(at, "arrays", n))
        return dnn_fail(err, DNN_EDATA, "%s: is damaged: its table has no header",
                        path);
    out->state_bytes = (size_t)bytes;
    return 0;
}

int dnn_ckpt_table_read(const char *path, const char *text, struct ckpt_table *out,
                        struct dnn_err *err)
{
    char *copy = dnn_strdup(text), *at = copy;
    size_t cap = 0, sums = 0;
    int64_t n = 0;

    memset(out, 0, sizeof *out);
    int rc = read_head(path, &at, out, &n, err);
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        size_t want = (size_t)i + 1, bytes;

        out->array = dnn_grow(out->array, &cap, want, sizeof *out->array);
        out->sum = dnn_grow(out->sum, &sums, want, sizeof *out->sum);
        bool good = i < INT32_MAX && read_array(&at, &out->array[i], &out->sum[i]);
        if (out->array[i].name != NULL) out->n = (int)want;
        if (!good || dnn_ckpt_bytes(&out->array[i], &bytes, NULL) < 0)
            rc = dnn_fail(err, DNN_EDATA, "%s: is damaged: line %zu of its table", path,
                          want + 4);
    }
    if (rc == 0 && *at != '\0')
        rc = dnn_fail(err, DNN_EDATA, "%s: is damaged: its table has extra text", path);
    dnn_free(copy);
    return rc;
}

void dnn_ckpt_table_free(struct ckpt_table *table)
{
    for (int i = 0; i < table->n; i++)
        dnn_free((char *)table->array[i].name);
    dnn_free(table->array);
    dnn_free(table->sum);
    memset(table, 0, sizeof *table);
}

/* ---- check ---- */

int dnn_ckpt_bytes(const struct dnn_ckpt_array *array, size_t *out, struct dnn_err *err)
{
    struct dnn_tensor t = {.dtype = array->type, .shape = array->shape};

    if ((int)array->type < 0 || array->type >= DNN_NDTYPES ||
        !dnn_shape_known(&array->shape))
        return dnn_fail(err, DNN_EDATA, "its size is unknown");
    return dnn_tensor_bytes(&t, out, err);
}

static int by_name(const void *a, const void *b)
{
    const struct dnn_ckpt_array *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static const struct dnn_ckpt_array **sort_by_name(int n,
                                                  const struct dnn_ckpt_array *array)
{
    const struct dnn_ckpt_array **out = dnn_alloc(((size_t)n + 1) * sizeof *out);

    for (int i = 0; i < n; i++)
        out[i] = &array[i];
    qsort(out, (size_t)n, sizeof *out, by_name);
    return out;
}

static int check_one(const char *dir, int i, const struct dnn_ckpt_array *array,
                     struct dnn_err *err)
{
    size_t bytes;

    if (array->name == NULL || array->name[0] == '\0')
        return dnn_fail(err, DNN_EDATA, "%s: array %d to save has no name", dir, i);
    for (const char *c = array->name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20)
            return dnn_fail(err, DNN_EDATA,
                            "%s: array %d to save has a control character in its name",
                            dir, i);
    if (dnn_ckpt_bytes(array, &bytes, err) < 0)
        return dnn_prefix(err, "%s: %s: cannot be saved: ", dir, array->name);
    return 0;
}

int dnn_ckpt_check(const char *dir, int n, const struct dnn_ckpt_array *array,
                   struct dnn_err *err)
{
    int rc = 0;

    for (int i = 0; i < n; i++)
        DNN_TRY(check_one(dir, i, &array[i], err));
    const struct dnn_ckpt_array **sorted = sort_by_name(n, array);
    for (int i = 1; rc == 0 && i < n; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            rc = dnn_fail(err, DNN_EDATA, "%s: two arrays to save have the name %s",
                          dir, sorted[i]->name);
    dnn_free(sorted);
    return rc;
}

enum { MAX_LISTED = 4 }; /* maximum differences in a message */

static void add_difference(struct dnn_buf *out, const struct dnn_ckpt_array *has,
                           const struct dnn_ckpt_array *want)
{
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

    if (out->len > 0) dnn_buf_add(out, "; ");
    if (has == NULL)
        dnn_buf_add(out, "%.80s is missing", want->name);
    else if (want == NULL)
        dnn_buf_add(out, "%.80s is not expected", has->name);
    else
        dnn_buf_add(out, "%.80s is %s %s, expected %s %s", has->name,
                    dnn_dtype_name(has->type), dnn_shape_text(a, sizeof a, &has->shape),
                    dnn_dtype_name(want->type),
                    dnn_shape_text(b, sizeof b, &want->shape));
}

int dnn_ckpt_compare(const char *path, int nhas, const struct dnn_ckpt_array *has,
                     int n, const struct dnn_ckpt_array *want, struct dnn_err *err)
{
    const struct dnn_ckpt_array **h = sort_by_name(nhas, has);
    const struct dnn_ckpt_array **w = sort_by_name(n, want);
    struct dnn_buf list = {0};
    int bad = 0, rc = 0;

    for (int i = 0, k = 0; i < nhas || k < n;) {
        const struct dnn_ckpt_array *x = i < nhas ? h[i] : NULL;
        const struct dnn_ckpt_array *y = k < n ? w[k] : NULL;
        int order = x == NULL ? 1 : y == NULL ? -1 : strcmp(x->name, y->name);

        i += order <= 0;
        k += order >= 0;
        if (order == 0 && x->type == y->type && dnn_shape_equal(&x->shape, &y->shape))
            continue;
        if (bad++ < MAX_LISTED)
            add_difference(&list, order > 0 ? NULL : x, order < 0 ? NULL : y);
    }
    if (bad > MAX_LISTED) dnn_buf_add(&list, "; and %d more", bad - MAX_LISTED);
    if (bad > 0)
        rc = dnn_fail(err, DNN_EDATA, "%s: does not match this run: %s", path,
                      list.text);
    dnn_buf_free(&list);
    dnn_free(h);
    dnn_free(w);
    return rc;
}
