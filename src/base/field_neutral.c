/* field_neutral.c - keys that are accepted only with their default value.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/field_impl.h"

#include <string.h>

/* Whether two values are equal: 1 and 1.0 are, and the order of keys does not matter
 * (there are no duplicate keys). */
static bool same(const struct dnn_jobj *a, const struct dnn_jobj *b)
{
    enum dnn_jtype type = dnn_json_type(a);
    const char *x, *y;
    double p, q;
    bool yes, no;

    if (type != dnn_json_type(b) || dnn_json_count(a) != dnn_json_count(b))
        return false;
    if (type == DNN_J_TEXT)
        return dnn_json_string(a, &x, NULL) == 0 && dnn_json_string(b, &y, NULL) == 0 &&
               strcmp(x, y) == 0;
    if (type == DNN_J_NUMBER)
        return dnn_json_real(a, &p, NULL) == 0 && dnn_json_real(b, &q, NULL) == 0 &&
               p == q;
    if (type == DNN_J_BOOL)
        return dnn_json_bool(a, &yes, NULL) == 0 && dnn_json_bool(b, &no, NULL) == 0 &&
               yes == no;
    struct dnn_jobj i = dnn_json_first(a), j = dnn_json_first(b);
    for (; i.val != NULL; i = dnn_json_next(&i), j = dnn_json_next(&j)) {
        struct dnn_jobj other = type == DNN_J_OBJECT ? dnn_json_sub(b, i.name) : j;

        if (other.val == NULL || !same(&i, &other)) return false;
    }
    return true;
}

int dnn_field_neutral(const struct dnn_field *f, const struct dnn_jobj *at,
                      struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];
    struct dnn_json *def = NULL;
    const char *word = NULL;

    if (dnn_json_type(at) == DNN_J_NULL) return 0;
    dnn_json_quote(quote, at);
    if (f->def == NULL || dnn_field_is(f->def, "null"))
        return dnn_json_fail(at, err, "not supported: must be null, not %s", quote);
    /* The default is JSON, but a string has no quotes. */
    bool json = dnn_json_text("default", f->def, strlen(f->def), &def, NULL) == 0;
    bool equal;
    if (json) {
        struct dnn_jobj expected = dnn_json_top(def);

        equal = same(at, &expected);
    } else
        equal = dnn_json_string(at, &word, NULL) == 0 && strcmp(word, f->def) == 0;
    dnn_json_free(def);
    if (equal) return 0;
    return dnn_json_fail(at, err, "not supported: must be %s%s%s or null, not %s",
                         json ? "" : "\"", f->def, json ? "" : "\"", quote);
}
