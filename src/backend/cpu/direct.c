/* direct.c - the choice of the instruction set, and the convolutions that the direct
 * kernels support.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"

#include <stdlib.h>
#include <string.h>

/* From the simplest to the best. */
static const struct dnn_direct_isa *const isas[] = {
    &dnn_direct_plain,
#if defined(__x86_64__)
    &dnn_direct_avx2,
    &dnn_direct_avx512,
#endif
};

enum { COUNT = sizeof isas / sizeof isas[0] };

static bool is_supported(const struct dnn_direct_isa *isa)
{
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");

    if (isa == &dnn_direct_avx2) return avx2;
    if (isa == &dnn_direct_avx512) return avx2 && __builtin_cpu_supports("avx512f");
#endif
    return isa == &dnn_direct_plain;
}

int dnn_direct_level(void)
{
    const char *limit = getenv("DNN_ISA");
    int best = 0;

    for (int i = 0; i < COUNT; i++) {
        if (is_supported(isas[i])) best = i;
        if (limit != NULL && strcmp(limit, isas[i]->name) == 0) break;
    }
    return best;
}

const struct dnn_direct_isa *dnn_direct_find(void)
{
    return isas[dnn_direct_level()];
}

const struct dnn_direct_isa *dnn_direct_find_for(int64_t columns)
{
    const struct dnn_direct_isa *best = dnn_direct_find();

#if defined(__x86_64__)
    if (best == &dnn_direct_avx512 && columns <= dnn_direct_avx2.lanes)
        return &dnn_direct_avx2;
#else
    (void)columns;
#endif
    return best;
}

const char *dnn_direct_isa(void)
{
    return dnn_direct_find()->name;
}

void dnn_direct_columns(const float *y, int64_t rows, int64_t m, int64_t pitch,
                        float *sum)
{
    memset(sum, 0, (size_t)m * sizeof *sum);
    for (int64_t from = 0; from < rows; from += 1024)
        dnn_direct_find()->columns(
            y + from * pitch, rows - from < 1024 ? rows - from : 1024, m, pitch, sum);
}

int dnn_direct_check(struct dnn_err *err)
{
    const char *limit = getenv("DNN_ISA");

    if (limit == NULL) return 0;
    for (int i = 0; i < COUNT; i++) {
        if (strcmp(limit, isas[i]->name) != 0) continue;
        if (is_supported(isas[i])) return 0;
        return dnn_fail(err, DNN_EUSAGE, "DNN_ISA: this CPU has no %s; the best is %s",
                        limit, dnn_direct_isa());
    }
    return dnn_fail(err, DNN_EUSAGE,
                    "DNN_ISA: must be one of plain, avx2, avx512, not \"%s\"", limit);
}

/* Whether factor[0] * factor[1] * ... is at most 2^48: byte offsets cannot overflow. */
static bool is_small(const int64_t *factor, int count)
{
    int64_t product = 1;

    for (int i = 0; i < count; i++) {
        if (factor[i] > ((int64_t)1 << 48) / product) return false;
        product *= factor[i];
    }
    return true;
}

bool dnn_direct_weights_can(const struct dnn_direct_conv *v)
{
    int64_t pad[5] = {v->n, 0, 0, 0, v->c};

    if (v->n < 1 || v->c < 1 || v->m < 1) return false;
    if (v->pitch != 0 && v->pitch < v->c) return false;
    if (v->pitch != 0) pad[4] = v->pitch;
    for (int i = 0; i < 3; i++) {
        int64_t reach[] = {v->out[i], v->stride[i]};
        int64_t spread[] = {v->kernel[i], v->dilation[i] == 0 ? 1 : v->dilation[i]};

        if (v->in[i] < 1 || v->out[i] < 1 || v->kernel[i] < 1 || v->stride[i] < 1 ||
            v->before[i] < 0 || v->dilation[i] < 0 || v->before[i] > INT32_MAX ||
            !is_small(&v->in[i], 1) || !is_small(reach, 2) || !is_small(spread, 2))
            return false;
        pad[i + 1] = v->in[i] + reach[0] * reach[1] + spread[0] * spread[1];
    }
    return is_small(pad, 5) &&
           is_small((int64_t[]){v->n, v->out[0], v->out[1], v->out[2], v->m}, 5) &&
           is_small((int64_t[]){v->kernel[0], v->kernel[1], v->kernel[2], v->c, v->m},
                    5);
}
