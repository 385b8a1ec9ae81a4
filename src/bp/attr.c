/* attr.c - attributes: strings, numbers, and lists of them.
 *
 * ADIOS2's C functions copy a string without reporting its length first, so the buffer
 * for reading is as large as the metadata of the file.  Therefore a list of strings is
 * stored as one string, a JSON list.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "bp/bp_impl.h"

#include <string.h>

static int end_define(struct dnn_bp *bp, struct bp_capture *capture, const char *name,
                      const adios2_attribute *attr, struct dnn_err *err)
{
    return dnn_bp_capture_end(capture, attr != NULL, bp->path, name, err);
}

int dnn_bp_attr_text(struct dnn_bp *bp, const char *name, const char *text,
                     struct dnn_err *err)
{
    struct bp_capture capture;

    dnn_bp_capture_start(&capture);
    adios2_attribute *attr =
        adios2_define_attribute(bp->io, name, adios2_type_string, text);
    return end_define(bp, &capture, name, attr, err);
}

int dnn_bp_attr_texts(struct dnn_bp *bp, const char *name, const char *const *text,
                      int64_t n, struct dnn_err *err)
{
    struct dnn_buf list = {0};

    dnn_buf_add(&list, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) dnn_buf_add(&list, ", ");
        dnn_json_quoted(&list, text[i]);
    }
    dnn_buf_add(&list, "]");
    int rc = dnn_bp_attr_text(bp, name, list.text, err);
    dnn_buf_free(&list);
    return rc;
}

static int attr_numbers(struct dnn_bp *bp, const char *name, adios2_type type,
                        const void *value, int64_t n, struct dnn_err *err)
{
    struct bp_capture capture;

    if (n < 1)
        return dnn_fail(err, DNN_EDATA, "%s: %s: empty attribute", bp->path, name);
    dnn_bp_capture_start(&capture);
    adios2_attribute *attr =
        n == 1 ? adios2_define_attribute(bp->io, name, type, value)
               : adios2_define_attribute_array(bp->io, name, type, value, (size_t)n);
    return end_define(bp, &capture, name, attr, err);
}

int dnn_bp_attr_reals(struct dnn_bp *bp, const char *name, const double *value,
                      int64_t n, struct dnn_err *err)
{
    return attr_numbers(bp, name, adios2_type_double, value, n, err);
}

int dnn_bp_attr_ints(struct dnn_bp *bp, const char *name, const int64_t *value,
                     int64_t n, struct dnn_err *err)
{
    return attr_numbers(bp, name, adios2_type_int64_t, value, n, err);
}

/* ---- reading ---- */

/* The attribute of this type, and its number of values; NULL if there is none. */
static adios2_attribute *find(struct dnn_bp *bp, const char *name, adios2_type type,
                              size_t *n)
{
    adios2_attribute *attr = adios2_inquire_attribute(bp->io, name);
    adios2_type actual;

    if (attr == NULL || adios2_attribute_type(&actual, attr) != 0 || actual != type ||
        adios2_attribute_size(n, attr) != 0)
        return NULL;
    return attr;
}

char *dnn_bp_text(struct dnn_bp *bp, const char *name)
{
    struct bp_capture capture;
    size_t n = 0;
    adios2_bool single = adios2_false;
    char *text = NULL;

    dnn_bp_capture_start(&capture);
    adios2_attribute *attr = find(bp, name, adios2_type_string, &n);
    if (attr != NULL && adios2_attribute_is_value(&single, attr) == 0 && single) {
        char *buffer = dnn_alloc(bp->md_bytes + 1);

        if (adios2_attribute_data(buffer, &n, attr) == 0) text = dnn_strdup(buffer);
        dnn_free(buffer);
    }
    dnn_bp_capture_end(&capture, true, bp->path, name, NULL);
    return text;
}

/* The strings of a JSON list, in one allocation: pointers, then the strings. */
static char **unpack(const struct dnn_jobj *top, int64_t *n)
{
    size_t count = dnn_json_count(top), bytes = 0, k = 0;
    const char *text;

    for (struct dnn_jobj it = dnn_json_first(top); it.val != NULL;
         it = dnn_json_next(&it)) {
        if (dnn_json_string(&it, &text, NULL) < 0) return NULL;
        bytes += strlen(text) + 1;
    }
    char **out = dnn_alloc((count + 1) * sizeof *out + bytes);
    char *to = (char *)(out + count + 1);
    for (struct dnn_jobj it = dnn_json_first(top); it.val != NULL;
         it = dnn_json_next(&it)) {
        dnn_json_string(&it, &text, NULL);
        out[k++] = to;
        to = stpcpy(to, text) + 1;
    }
    *n = (int64_t)count;
    return out;
}

char **dnn_bp_texts(struct dnn_bp *bp, const char *name, int64_t *n)
{
    char *text = dnn_bp_text(bp, name), **out = NULL;
    struct dnn_json *json = NULL;

    *n = 0;
    if (text != NULL && dnn_json_text(name, text, strlen(text), &json, NULL) == 0) {
        struct dnn_jobj top = dnn_json_top(json);

        if (dnn_json_type(&top) == DNN_J_LIST) out = unpack(&top, n);
        dnn_json_free(json);
    }
    dnn_free(text);
    return out;
}

static void *numbers(struct dnn_bp *bp, const char *name, adios2_type type, int64_t *n)
{
    struct bp_capture capture;
    size_t count = 0;
    void *out = NULL;

    *n = 0;
    dnn_bp_capture_start(&capture);
    adios2_attribute *attr = find(bp, name, type, &count);
    if (attr != NULL && count <= bp->md_bytes / 8) {
        out = dnn_alloc(count * 8);
        if (adios2_attribute_data(out, &count, attr) != 0) {
            dnn_free(out);
            out = NULL;
        }
    }
    dnn_bp_capture_end(&capture, true, bp->path, name, NULL);
    if (out != NULL) *n = (int64_t)count;
    return out;
}

double *dnn_bp_reals(struct dnn_bp *bp, const char *name, int64_t *n)
{
    return numbers(bp, name, adios2_type_double, n);
}

int64_t *dnn_bp_ints(struct dnn_bp *bp, const char *name, int64_t *n)
{
    return numbers(bp, name, adios2_type_int64_t, n);
}
