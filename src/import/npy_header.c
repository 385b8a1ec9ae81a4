/* npy_header.c - the header of a NumPy array: the text of a small Python dictionary.
 *
 * {'descr': '<f4', 'fortran_order': False, 'shape': (100, 28, 28), }
 *
 * It must contain exactly these three keys, in any order, and only whitespace may
 * follow.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum {
    MAGIC = 6,            /* bytes; two bytes of version follow                */
    MAX_HEADER = 1 << 20, /* maximum bytes of a header                         */
    MAX_TEXT = 32         /* maximum bytes of a string in the header           */
};

static const char magic[] = "\x93NUMPY";

int dnn_npy_length(const char *what, const unsigned char *head, size_t n, size_t *out,
                   struct dnn_err *err)
{
    if (n < MAGIC + 2 || memcmp(head, magic, MAGIC) != 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: not a NumPy file: the magic bytes are missing", what);
    int version = head[MAGIC];
    if (version < 1 || version > 3 || head[MAGIC + 1] != 0)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: NumPy format version %d.%d is not supported; 1.0, 2.0 and 3.0 are",
            what, version, head[MAGIC + 1]);
    size_t start = version == 1 ? MAGIC + 4 : MAGIC + 6;
    if (n < start) return dnn_fail(err, DNN_EDATA, "%s: truncated in the header", what);
    *out = start + head[8] + ((size_t)head[9] << 8);
    if (version > 1) *out += ((size_t)head[10] << 16) + ((size_t)head[11] << 24);
    if (*out > MAX_HEADER)
        return dnn_fail(err, DNN_EDATA, "%s: the header length %zu is too large", what,
                        *out);
    return 0;
}

/* ---- the dictionary ---- */

struct scan {
    const char *what, *at, *end;
    struct dnn_err *err;
};

static int damaged(struct scan *s, const char *expected)
{
    char found[MAX_TEXT];
    size_t n = 0;

    for (const char *c = s->at; c < s->end && n < MAX_TEXT / 2; c++)
        found[n++] = isprint((unsigned char)*c) ? *c : '?';
    found[n] = '\0';
    return dnn_fail(s->err, DNN_EDATA, "%s: invalid header: expected %s at \"%s\"",
                    s->what, expected, found);
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t'))
        s->at++;
}

/* Skip the next character if it is c; returns whether it was. */
static bool next_is(struct scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static int read_text(struct scan *s, char out[MAX_TEXT])
{
    size_t n = 0;
    char quote = '\'';

    if (!next_is(s, quote)) {
        quote = '"';
        if (!next_is(s, quote)) return damaged(s, "a quoted string");
    }
    while (s->at < s->end && *s->at != quote && n + 1 < MAX_TEXT)
        out[n++] = *s->at++;
    out[n] = '\0';
    return next_is(s, quote) ? 0 : damaged(s, "a closing quote");
}

static int read_shape(struct scan *s, struct dnn_shape *out)
{
    *out = (struct dnn_shape){0};
    if (!next_is(s, '(')) return damaged(s, "a shape in parentheses");
    while (!next_is(s, ')')) {
        int64_t value = 0;

        skip_space(s);
        if (s->at < s->end && *s->at == '-')
            return damaged(s, "a dimension of 0 or more");
        if (s->at == s->end || !isdigit((unsigned char)*s->at))
            return damaged(s, "a dimension");
        for (; s->at < s->end && isdigit((unsigned char)*s->at); s->at++)
            if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, *s->at - '0', &value))
                return damaged(s, "a dimension below 2^63");
        if (s->at < s->end && *s->at == 'L') s->at++; /* written by Python 2 */
        if (out->ndim == DNN_MAX_DIMS)
            return dnn_fail(s->err, DNN_EDATA, "%s: has more than %d axes", s->what,
                            DNN_MAX_DIMS);
        out->dim[out->ndim++] = value;
        if (next_is(s, ',')) continue;
        if (next_is(s, ')') && out->ndim > 1) return 0;
        return damaged(s, "a comma after a dimension");
    }
    return 0;
}

static int read_bool(struct scan *s, bool *out)
{
    skip_space(s);
    size_t left = (size_t)(s->end - s->at);
    *out = left >= 4 && memcmp(s->at, "True", 4) == 0;
    if (!*out && (left < 5 || memcmp(s->at, "False", 5) != 0))
        return damaged(s, "True or False");
    s->at += *out ? 4 : 5;
    return 0;
}

/* ---- the type ---- */

/* The description of an unsupported type by its letter, or NULL. */
static const char *unsupported(char c)
{
    static const struct {
        char letter;
        const char *is;
    } known[] = {
        {'O', "Python objects" },
        {'S', "texts"          },
        {'a', "texts"          },
        {'U', "texts"          },
        {'V', "records"        },
        {'M', "dates"          },
        {'m', "times"          },
        {'c', "complex numbers"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].letter == c) return known[i].is;
    return NULL;
}

static int set_type(struct scan *s, const char *text, struct dnn_npy *out)
{
    static const struct {
        const char *name;
        enum dnn_dtype type;
    } known[] = {
        {"b1", DNN_BOOL},
        {"i1", DNN_I8  },
        {"u1", DNN_U8  },
        {"i2", DNN_I16 },
        {"u2", DNN_U16 },
        {"i4", DNN_I32 },
        {"u4", DNN_U32 },
        {"i8", DNN_I64 },
        {"u8", DNN_U64 },
        {"f2", DNN_F16 },
        {"f4", DNN_F32 },
        {"f8", DNN_F64 },
    };
    char order = text[0] != '\0' && strchr("<>|=", text[0]) != NULL ? text[0] : '=';
    const char *name = text + (order == text[0] ? 1 : 0);

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0) continue;
        if (order == '|' && name[1] != '1') break;
        out->type = known[i].type;
        out->swap = order == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
        return 0;
    }
    if (unsupported(name[0]) != NULL)
        return dnn_fail(s->err, DNN_EDATA, "%s: contains %s (\"%s\"), not numbers",
                        s->what, unsupported(name[0]), text);
    return dnn_fail(
        s->err, DNN_EDATA,
        "%s: dtype \"%s\" is not supported; use b1, i1 to i8, u1 to u8, f2, f4 or f8",
        s->what, text);
}

static int read_type(struct scan *s, struct dnn_npy *out)
{
    char text[MAX_TEXT];

    skip_space(s);
    if (s->at < s->end && *s->at == '[')
        return dnn_fail(
            s->err, DNN_EDATA,
            "%s: structured dtypes are not supported; save each field as an array",
            s->what);
    DNN_TRY(read_text(s, text));
    for (char *c = text; *c != '\0'; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
    return set_type(s, text, out);
}

/* ---- the header ---- */

static int read_member(struct scan *s, struct dnn_npy *out, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[MAX_TEXT];
    const char *start = s->at;
    unsigned k = 0;

    DNN_TRY(read_text(s, key));
    while (k < 3 && strcmp(keys[k], key) != 0)
        k++;
    if (k == 3 || (*seen & 1u << k) != 0) {
        s->at = start;
        return damaged(s, "the keys descr, fortran_order and shape, once each,");
    }
    *seen |= 1u << k;
    if (!next_is(s, ':')) return damaged(s, "a colon");
    return k == 0   ? read_type(s, out)
           : k == 1 ? read_bool(s, &out->fortran)
                    : read_shape(s, &out->shape);
}

static int read_all(struct scan *s, struct dnn_npy *out)
{
    unsigned seen = 0;

    if (!next_is(s, '{')) return damaged(s, "a dictionary");
    while (!next_is(s, '}')) {
        DNN_TRY(read_member(s, out, &seen));
        if (next_is(s, ',')) continue;
        if (next_is(s, '}')) break;
        return damaged(s, "a comma or the end of the dictionary");
    }
    if (seen != 7)
        return dnn_fail(s->err, DNN_EDATA, "%s: invalid header: %s is missing", s->what,
                        (seen & 1) == 0   ? "descr"
                        : (seen & 2) == 0 ? "fortran_order"
                                          : "shape");
    skip_space(s);
    return s->at == s->end ? 0 : damaged(s, "only whitespace");
}

int dnn_npy_parse(const char *what, const unsigned char *head, size_t n,
                  struct dnn_npy *out, struct dnn_err *err)
{
    size_t start = head[MAGIC] == 1 ? MAGIC + 4 : MAGIC + 6;
    struct scan s = {what, (const char *)head + start, (const char *)head + n, err};

    *out = (struct dnn_npy){.start = (int64_t)n};
    DNN_TRY(read_all(&s, out));
    struct dnn_tensor is = {.dtype = out->type, .shape = out->shape};
    char text[DNN_SHAPE_TEXT];
    if (dnn_tensor_bytes(&is, &out->bytes, NULL) < 0 || out->bytes > INT64_MAX - n)
        return dnn_fail(err, DNN_EDATA, "%s: %s of %s is too large", what,
                        dnn_shape_text(text, sizeof text, &out->shape),
                        dnn_dtype_name(out->type));
    return 0;
}

/* ---- values ---- */

void dnn_npy_swap(const struct dnn_npy *npy, void *values, size_t n)
{
    unsigned char *at = values;
    size_t size = dnn_dtype_size(npy->type);

    if (!npy->swap || size == 1) return;
    for (size_t i = 0; i < n; i++, at += size)
        for (size_t k = 0; k < size / 2; k++) {
            unsigned char byte = at[k];

            at[k] = at[size - 1 - k];
            at[size - 1 - k] = byte;
        }
}

void dnn_npy_strides(const struct dnn_npy *npy, int64_t stride[DNN_MAX_DIMS])
{
    size_t size = dnn_dtype_size(npy->type);
    int64_t step = (int64_t)size;

    if (!npy->fortran) {
        dnn_box_strides(npy->shape.ndim, npy->shape.dim, size, stride);
        return;
    }
    for (int d = 0; d < npy->shape.ndim; d++) {
        stride[d] = step;
        step *= npy->shape.dim[d];
    }
}

void dnn_npy_copy(const struct dnn_npy *npy, const unsigned char *values, int64_t row,
                  void *to)
{
    size_t size = dnn_dtype_size(npy->type), bytes = npy->bytes;
    int64_t from[DNN_MAX_DIMS], dense[DNN_MAX_DIMS];
    int ndim = npy->shape.ndim, first = row < 0 ? 0 : 1;

    if (bytes == 0) return;
    dnn_npy_strides(npy, from);
    if (row >= 0) {
        values += row * from[0];
        bytes /= (size_t)npy->shape.dim[0];
    }
    dnn_box_strides(ndim - first, npy->shape.dim + first, size, dense);
    dnn_box_copy(ndim - first, npy->shape.dim + first, size, values, from + first, to,
                 dense);
    dnn_npy_swap(npy, to, bytes / size);
}
