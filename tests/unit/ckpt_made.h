/* ckpt_made.h - arrays whose content depends on the step, and a directory for
 * checkpoints.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_UNIT_CKPT_MADE_H
#define DNN_TESTS_UNIT_CKPT_MADE_H

#include "base/file.h"
#include "base/mem.h"
#include "bp/bp.h"
#include "ckpt/ckpt_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names with slashes, colons, blanks; every type; a scalar; an empty array. */
static const struct {
    const char *name;
    enum dnn_dtype type;
    struct dnn_shape shape;
} made_kinds[] = {
    {"conv_1/kernel",       DNN_F32,  {4, {3, 3, 2, 8}}  },
    {"conv_1/kernel:m",     DNN_F32,  {4, {3, 3, 2, 8}}  },
    {"a/b/c/d//e/",         DNN_F64,  {1, {17}}          },
    {"half",                DNN_F16,  {2, {5, 3}}        },
    {"brain half",          DNN_BF16, {2, {5, 3}}        },
    {"i8",                  DNN_I8,   {1, {3}}           },
    {"u8",                  DNN_U8,   {3, {2, 2, 2}}     },
    {"i16",                 DNN_I16,  {1, {7}}           },
    {"u16",                 DNN_U16,  {1, {7}}           },
    {"i32",                 DNN_I32,  {1, {7}}           },
    {"u32",                 DNN_U32,  {1, {7}}           },
    {"i64",                 DNN_I64,  {1, {7}}           },
    {"u64",                 DNN_U64,  {1, {7}}           },
    {"bool",                DNN_BOOL, {1, {9}}           },
    {"a number alone",      DNN_F64,  {0, {0}}           },
    {"none",                DNN_F32,  {2, {0, 4}}        },
    {"ckpt/table",          DNN_F32,  {1, {2}}           },
    {"h\xc3\xa4lfte \"x\"", DNN_F32,  {2, {1, 30000}}    },
    {"large",               DNN_F32,  {3, {100, 20, 100}}},
};
enum { MADE = sizeof made_kinds / sizeof made_kinds[0] };

static inline size_t made_bytes(const struct dnn_ckpt_array *a)
{
    struct dnn_tensor t = {.dtype = a->type, .shape = a->shape};
    size_t bytes = 0;

    dnn_tensor_bytes(&t, &bytes, NULL);
    return bytes;
}

/* n arrays with their own memory; after those above, small ones. */
static inline struct dnn_ckpt_array *made_arrays(int n)
{
    struct dnn_ckpt_array *a = dnn_alloc((size_t)(n + 1) * sizeof *a);

    for (int i = 0; i < n; i++) {
        if (i < MADE) {
            a[i].name = dnn_strdup(made_kinds[i].name);
            a[i].type = made_kinds[i].type;
            a[i].shape = made_kinds[i].shape;
        } else {
            a[i].name = dnn_format("layer_%d/weights", i);
            a[i].shape = (struct dnn_shape){
                .ndim = 2, .dim = {1 + i % 3, 1 + i % 7}
            };
        }
        a[i].data = dnn_alloc(made_bytes(&a[i]) + 1);
    }
    return a;
}

static inline void made_free(int n, struct dnn_ckpt_array *a)
{
    for (int i = 0; i < n; i++) {
        dnn_free((char *)a[i].name);
        dnn_free(a[i].data);
    }
    dnn_free(a);
}

static inline unsigned char made_byte(int64_t step, int i, size_t k)
{
    uint64_t x = ((uint64_t)step * 1000003u + (uint64_t)i) * 7919u + k;

    return (unsigned char)((x * 0x9E3779B97F4A7C15u) >> 56);
}

static inline void made_fill(int n, struct dnn_ckpt_array *a, int64_t step)
{
    for (int i = 0; i < n; i++)
        for (size_t k = 0, all = made_bytes(&a[i]); k < all; k++)
            ((unsigned char *)a[i].data)[k] = made_byte(step, i, k);
}

static inline bool made_is(int n, const struct dnn_ckpt_array *a, int64_t step)
{
    for (int i = 0; i < n; i++)
        for (size_t k = 0, all = made_bytes(&a[i]); k < all; k++)
            if (((unsigned char *)a[i].data)[k] != made_byte(step, i, k)) return false;
    return true;
}

/* Write a complete checkpoint of another format. */
static inline int made_format(const char *path, int format, struct dnn_err *err)
{
    char *table = dnn_format("dnn-checkpoint %d\nmore to come\n", format), sum[17];
    const struct dnn_shape one = {.ndim = 1, .dim = {1}};
    struct dnn_bp *bp = NULL;
    int var;

    snprintf(sum, sizeof sum, "%016llx",
             (unsigned long long)dnn_ckpt_table_sum(table, ""));
    DNN_TRY(dnn_bp_create(NULL, path, NULL, &bp, err));
    DNN_TRY(dnn_bp_define(bp, "x", DNN_U8, &one, true, &var, err));
    DNN_TRY(dnn_bp_put(bp, var, 0, 1, "x", err));
    DNN_TRY(dnn_bp_attr_text(bp, "ckpt/table", table, err));
    DNN_TRY(dnn_bp_attr_text(bp, "ckpt/sum", sum, err));
    dnn_free(table);
    return dnn_bp_finish(bp, err);
}

#endif
