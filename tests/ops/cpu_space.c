/* cpu_space.c - the cpu backend's pooling, upsampling and copies against the ref
 * backend: odd shapes, rows with a pitch, one to three threads, the same bits in two
 * runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_kernel.h"
#include "ops/cpu_rows.h"

/* x with few different numbers, some of them equal, and one NaN. */
static void ties(const struct dnn_tensor *t, float *x)
{
    for (int64_t i = 0; i < count_of(t); i++)
        x[i] = (float)((i * 31 + i / 7) % 11) - 5;
}

/* ---- pooling ---- */

struct window {
    const char *what;
    int nspatial;
    int64_t in[3], kernel[3], stride[3], before[3], after[3];
};

static const struct window windows[] = {
    {"2^3",              3, {4, 6, 8}, {2, 2, 2}, {2, 2, 2}, {0},       {0}      },
    {"2^3, odd",         3, {5, 7, 9}, {2, 2, 2}, {2, 2, 2}, {0},       {0}      },
    {"2^2",              2, {6, 10},   {2, 2},    {2, 2},    {0},       {0}      },
    {"3^2 by 2, padded", 2, {9, 12},   {3, 3},    {2, 2},    {1, 1},    {1, 1}   },
    {"3^2 by 1, padded", 2, {5, 7},    {3, 3},    {1, 1},    {1, 1},    {1, 1}   },
    {"2 by 3",           1, {17},      {2},       {3},       {0},       {0}      },
    {"5 by 2, one side", 1, {11},      {5},       {2},       {0},       {4}      },
    {"3x1x4 by 1x2x3",   3, {4, 5, 9}, {3, 1, 4}, {1, 2, 3}, {2, 0, 3}, {1, 0, 0}},
    {"300 taps",         1, {600},     {300},     {150},     {0},       {0}      },
    {"17^2",             2, {20, 18},  {17, 17},  {3, 1},    {0, 0},    {0, 0}   },
};

static void pool(const struct window *w, enum dnn_pool fn, int64_t n, int64_t c,
                 bool index, bool equal)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_POOL, .attr.pool = {.fn = fn, .index = index}, .nin = 1}
    };
    struct dnn_op_window *win = &k.op.attr.pool.win;
    int64_t dim[5] = {n};
    char what[100];

    win->nspatial = w->nspatial;
    win->groups = 1;
    for (int i = 0; i < w->nspatial; i++) {
        dim[i + 1] = w->in[i];
        win->kernel[i] = w->kernel[i];
        win->stride[i] = w->stride[i];
        win->dilation[i] = 1;
        win->before[i] = w->before[i];
        win->after[i] = w->after[i];
    }
    dim[w->nspatial + 1] = c;
    k.in[0] = tensor(DNN_F32, w->nspatial + 2, dim);
    const struct dnn_tensor *x = &k.in[0];
    k.op.nout = dnn_op_info(DNN_OP_POOL)->shape(&k.op.attr, 1, &x, k.out);
    k.in_mem[0] = filled(x, -3, -1, 1);
    if (equal) ties(x, k.in_mem[0]);
    if (equal) ((float *)k.in_mem[0])[count_of(x) / 2] = INFINITY;
    rows_ref(&k);

    struct rows_case b = {.op = k.op};
    b.op.pass = DNN_BWD_DATA;
    b.op.nin = k.op.nout;
    b.op.nout = 1;
    b.in[0] = k.out[0];
    b.out[0] = k.in[0];
    b.in_mem[0] = filled(&b.in[0], -1, 2, 4);
    if (k.op.nout > 1) {
        b.in[1] = k.out[1];
        b.in_mem[1] = filled(&b.in[1], 0, 0, 0);
        memcpy(b.in_mem[1], k.out_mem[1],
               (size_t)count_of(&b.in[1]) * dnn_dtype_size(b.in[1].dtype));
    }
    if (fn == DNN_POOL_AVERAGE || index) rows_ref(&b);
    snprintf(what, sizeof what, "%s pool %s, %d channels%s%s",
             fn == DNN_POOL_MAX ? "max" : "average", w->what, (int)c,
             index ? ", index" : "", equal ? ", equals" : "");
    if (equal && fn == DNN_POOL_AVERAGE) abort();
    if (equal) {
        /* infinite values have no difference */
        float *want = k.out_mem[0], *mem = k.in_mem[0];
        for (int64_t i = 0; i < count_of(&k.out[0]); i++)
            if (isinf(want[i])) want[i] = 1e6f;
        mem[count_of(x) / 2] = 1e6f;
    }
    rows_check(&k, &dnn_cpu_pool, 1e-6, what);
    if (fn == DNN_POOL_MAX && !index) {
        rows_free(&b);
        return;
    }
    char back[130];
    snprintf(back, sizeof back, "%s, backward", what);
    rows_check(&b, &dnn_cpu_pool_data, 1e-6, back);
}

static void pools(void)
{
    static const int64_t c[] = {1, 3, 8, 16, 17};

    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        for (size_t j = 0; j < sizeof c / sizeof c[0]; j++) {
            pool(&windows[i], DNN_POOL_MAX, 2, c[j], true, j % 2 == 0);
            pool(&windows[i], DNN_POOL_MAX, 1, c[j], false, false);
            pool(&windows[i], DNN_POOL_AVERAGE, 2, c[j], false, false);
        }
    pool(
        &(struct window){
            "2^3, large", 3, {16, 16, 16},
              {2, 2, 2},
              {2, 2, 2},
              {0},
              {0}
    },
        DNN_POOL_MAX, 1, 24, true, false);
}

/* NaN is larger than all numbers, and the first NaN is taken. */
static void pool_nan(void)
{
    struct cpu_array in[1] = {
        {.dtype = DNN_F32,
         .count = 4,
         .rows = 4,
         .row = 1,
         .pitch = 1,
         .shape = {.ndim = 3, .dim = {1, 4, 1}}}
    };
    float x[4] = {1, NAN, 2, NAN}, y = 0;
    char work[1024] __attribute__((aligned(64)));
    uint8_t index = 9;
    struct dnn_op op = {
        .kind = DNN_OP_POOL,
        .nin = 1,
        .nout = 2,
        .attr.pool = {.win = {1, {4}, {4}, {1}, {0}, {0}, 1}, .index = true}
    };
    struct cpu_call call = {.op = &op, .in = in, .work = work, .threads = 1};

    in[0].mem = x;
    call.out[0] = (struct cpu_array){
        .mem = &y,
        .dtype = DNN_F32,
        .count = 1,
        .rows = 1,
        .row = 1,
        .pitch = 1,
        .shape = {.ndim = 3, .dim = {1, 1, 1}}
    };
    call.out[1] = call.out[0];
    call.out[1].mem = &index;
    call.out[1].dtype = DNN_U8;
    dnn_cpu_pool.fn(&call);
    ok(isnan(y) && index == 1, "max pool: the first NaN is the maximum");
}

/* ---- upsampling ---- */

static void upsample(enum dnn_upsample fn, int nspatial, const int64_t *in,
                     const int64_t *factor, int64_t c)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_UPSAMPLE,
               .attr.upsample = {.nspatial = nspatial, .fn = fn},
               .nin = 1,
               .nout = 1}
    };
    int64_t dim[5] = {2};
    char what[100];

    for (int i = 0; i < nspatial; i++) {
        dim[i + 1] = in[i];
        k.op.attr.upsample.factor[i] = factor[i];
    }
    dim[nspatial + 1] = c;
    k.in[0] = tensor(DNN_F32, nspatial + 2, dim);
    const struct dnn_tensor *x = &k.in[0];
    dnn_op_info(DNN_OP_UPSAMPLE)->shape(&k.op.attr, 1, &x, k.out);
    k.in_mem[0] = filled(x, -1, 2, 1);
    rows_ref(&k);
    struct rows_case b = {.op = k.op};
    b.op.pass = DNN_BWD_DATA;
    b.in[0] = k.out[0];
    b.out[0] = k.in[0];
    b.in_mem[0] = filled(&b.in[0], -1, 2, 3);
    rows_ref(&b);
    snprintf(what, sizeof what, "upsample %s, %d axes by %d, %d channels",
             fn == DNN_UP_LINEAR ? "linear" : "nearest", nspatial, (int)factor[0],
             (int)c);
    rows_check(&k, &dnn_cpu_upsample, 1e-6, what);
    char back[130];
    snprintf(back, sizeof back, "%s, backward", what);
    rows_check(&b, &dnn_cpu_upsample_data, 1e-6, back);
}

static void upsamples(void)
{
    static const int64_t c[] = {1, 3, 8, 17};

    for (int fn = DNN_UP_NEAREST; fn <= DNN_UP_LINEAR; fn++)
        for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
            enum dnn_upsample f = (enum dnn_upsample)fn;

            upsample(f, 3, (int64_t[]){2, 3, 5}, (int64_t[]){2, 2, 2}, c[i]);
            upsample(f, 3, (int64_t[]){3, 1, 4}, (int64_t[]){3, 1, 2}, c[i]);
            upsample(f, 2, (int64_t[]){4, 5}, (int64_t[]){2, 4}, c[i]);
            upsample(f, 1, (int64_t[]){7}, (int64_t[]){5}, c[i]);
        }
}

/* ---- copies ---- */

static void concat(int axis, int terms, int64_t c)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_CONCAT,
               .attr.concat = {.axis = axis},
               .nin = terms,
               .nout = 1}
    };
    const struct dnn_tensor *in[MAX_IN];
    char what[100];

    for (int i = 0; i < terms; i++) {
        int64_t dim[4] = {2, 3, 5, c};
        dim[axis] += i;
        in[i] = &k.in[i];
        k.in[i] = tensor(DNN_F32, 4, dim);
        k.in_mem[i] = filled(&k.in[i], -1, 2, 1 + (uint64_t)i);
    }
    dnn_op_info(DNN_OP_CONCAT)->shape(&k.op.attr, terms, in, k.out);
    rows_ref(&k);
    struct dnn_tensor whole = k.out[0], part = k.in[terms - 1];
    int64_t end = whole.shape.dim[axis] - part.shape.dim[axis];
    snprintf(what, sizeof what, "concat of %d along %d, %d channels", terms, axis,
             (int)c);
    rows_check(&k, &dnn_cpu_concat, 0, what);
    struct rows_case b = {
        .op = {.kind = DNN_OP_CONCAT,
               .pass = DNN_BWD_DATA,
               .attr.concat = {.axis = axis, .start = end},
               .nin = 1,
               .nout = 1},
        .in = {whole},
        .out = {part}
    };
    b.in_mem[0] = filled(&whole, -1, 2, 9);
    rows_ref(&b);
    snprintf(what, sizeof what, "concat of %d along %d, %d channels, backward", terms,
             axis, (int)c);
    rows_check(&b, &dnn_cpu_concat_data, 0, what);
}

static void pad(const int64_t *before, const int64_t *after, int64_t c)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_PAD, .nin = 1, .nout = 1}
    };
    char what[100];

    for (int i = 0; i < 4; i++) {
        k.op.attr.pad.before[i] = before[i];
        k.op.attr.pad.after[i] = after[i];
    }
    k.in[0] = TENSOR(DNN_F32, 2, 4, 5, c);
    const struct dnn_tensor *x = &k.in[0];
    dnn_op_info(DNN_OP_PAD)->shape(&k.op.attr, 1, &x, k.out);
    k.in_mem[0] = filled(x, -1, 2, 1);
    rows_ref(&k);
    struct rows_case b = {.op = k.op, .in = {k.out[0]}, .out = {k.in[0]}};
    b.op.pass = DNN_BWD_DATA;
    b.in_mem[0] = filled(&b.in[0], -1, 2, 3);
    rows_ref(&b);
    snprintf(what, sizeof what, "pad %d %d %d, %d channels", (int)before[1],
             (int)before[2], (int)before[3], (int)c);
    rows_check(&k, &dnn_cpu_pad, 0, what);
    snprintf(what, sizeof what, "pad %d %d %d, %d channels, backward", (int)before[1],
             (int)before[2], (int)before[3], (int)c);
    rows_check(&b, &dnn_cpu_pad_data, 0, what);
}

static void reorder(bool transpose, const int *perm)
{
    struct rows_case k = {
        .op = {.kind = transpose ? DNN_OP_TRANSPOSE : DNN_OP_RESHAPE,
               .nin = 1,
               .nout = 1}
    };
    char what[100];

    k.in[0] = TENSOR(DNN_F32, 3, 7, 5, 17);
    const struct dnn_tensor *x = &k.in[0];
    for (int i = 0; transpose && i < 4; i++)
        k.op.attr.transpose.perm[i] = perm[i];
    if (!transpose) k.op.attr.reshape.shape = TENSOR(DNN_F32, 3, 35, 17).shape;
    dnn_op_info(k.op.kind)->shape(&k.op.attr, 1, &x, k.out);
    k.in_mem[0] = filled(x, -1, 2, 1);
    rows_ref(&k);
    snprintf(what, sizeof what, "transpose %d %d %d %d", perm[0], perm[1], perm[2],
             perm[3]);
    rows_check(&k, transpose ? &dnn_cpu_transpose : &dnn_cpu_reshape, 0,
               transpose ? what : "reshape");
}

/* ---- non-temporal stores give the same result ---- */

enum { ROWS = 6, WIDE = 48 };

static void streams(void)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    struct dnn_tensor t = TENSOR(DNN_F32, ROWS, WIDE);
    float *x = filled(&t, -1, 1, 1), *coef = filled(&t, -1, 1, 2);
    size_t bytes = 2 * ROWS * WIDE * sizeof(float);
    float *y[2] = {aligned_alloc(64, bytes), aligned_alloc(64, bytes)};
    uint8_t index[ROWS * WIDE];
    int64_t at = 0;
    int32_t number = 1;

    for (int i = 0; i < ROWS * WIDE; i++)
        index[i] = (uint8_t)(i % 3);
    for (int past = 0; past < 2; past++)
        isa->repeat(x, WIDE, ROWS, WIDE, 2, y[past], WIDE, past);
    ok(memcmp(y[0], y[1], bytes) == 0, "%s: repeated rows with non-temporal stores",
       isa->name);
    for (int past = 0; past < 2; past++) {
        struct rows_window w = {.count = ROWS,
                                .n = WIDE,
                                .taps = 1,
                                .x = x,
                                .at = &at,
                                .number = &number,
                                .x_step = WIDE,
                                .y = y[past],
                                .y_step = 2 * WIDE,
                                .index = index,
                                .index_size = 1,
                                .index_step = WIDE,
                                .index_at = &at,
                                .stream = past};
        isa->window_max_data(&w);
    }
    ok(memcmp(y[0], y[1], bytes) == 0, "%s: gradients with non-temporal stores",
       isa->name);
    for (int past = 0; past < 2; past++) {
        struct rows_norm b = {.rows = ROWS,
                              .n = WIDE,
                              .x = x,
                              .y = y[past],
                              .x_pitch = WIDE,
                              .y_pitch = WIDE,
                              .mean = coef,
                              .scale = coef + WIDE,
                              .shift = coef + 2 * WIDE,
                              .relu = {.on = true},
                              .stream = past};
        isa->norm_apply(&b);
    }
    ok(memcmp(y[0], y[1], bytes) == 0, "%s: batch norm with non-temporal stores",
       isa->name);
    free(y[0]);
    free(y[1]);
    dnn_free(x);
    dnn_free(coef);
}

static void all(void)
{
    pools();
    pool_nan();
    upsamples();
    for (int axis = 0; axis < 4; axis++) {
        concat(axis, 2, 16);
        concat(axis, 4, 3);
        concat(axis, 1, 400);
    }
    pad((int64_t[]){0, 1, 2, 0}, (int64_t[]){0, 3, 0, 0}, 5);
    pad((int64_t[]){0, -1, 2, 0}, (int64_t[]){0, 3, -2, 0}, 8);
    pad((int64_t[]){1, 0, 0, 3}, (int64_t[]){0, 0, 0, -1}, 17);
    pad((int64_t[]){0, 0, 0, -2}, (int64_t[]){0, 0, -3, 4}, 17);
    reorder(false, (int[]){0, 0, 0, 0});
    reorder(true, (int[]){0, 3, 1, 2});
    reorder(true, (int[]){0, 2, 1, 3});
    reorder(true, (int[]){3, 2, 1, 0});
    streams();
}

int main(void)
{
    all();
    printf("# in plain C\n");
    setenv("DNN_ISA", "plain", 1);
    all();
    return done();
}
