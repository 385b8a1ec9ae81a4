/* select.c - selects the kernel for a step.
 *
 * The heuristic takes the first kernel in the list of algos.c that supports the step,
 * unless the best() of a later one is true. Autotuning takes the fastest kernel for
 * this shape on this machine: each shape is measured once, and the result is kept while
 * the device is open and, if there is a cache file, across runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/select_impl.h"

#include "backend/cpu/onednn_impl.h"
#include "base/choice.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <string.h>

static const double min_flops = 1e6;   /* smaller steps are not measured: no gain */
static const double margin = 0.97;     /* a later kernel must take less than this */
static const double save_interval = 2; /* seconds between two writes of the file */

/* ---- support of a step ---- */

static bool dtype_fits(enum dnn_operand operand, enum dnn_dtype dtype)
{
    switch (operand) {
    case DNN_OPERAND_SUM:
        return dtype == DNN_F32 || dtype == DNN_F64;
    case DNN_OPERAND_LABEL:
        return dtype == DNN_F32 || dtype == DNN_I32;
    case DNN_OPERAND_BITS:
        return dtype != DNN_F64;
    default:
        return dtype == DNN_F32;
    }
}

static bool pitch_fits(const struct dnn_tensor *tensor, const int64_t *pitch, int i,
                       unsigned allowed)
{
    if (pitch == NULL || pitch[i] == 0) return true;
    if (tensor->shape.ndim > 0 && pitch[i] == tensor->shape.dim[tensor->shape.ndim - 1])
        return true;
    return i < 32 && (allowed >> i & 1) != 0;
}

static bool fits(const struct cpu_algo *algo, const struct dnn_tensor *tensor,
                 enum dnn_operand operand, const int64_t *pitch, int i,
                 unsigned may_pitch)
{
    if (tensor == NULL) return true;
    return (algo->f64 ? tensor->dtype == DNN_F64
                      : dtype_fits(operand, tensor->dtype)) &&
           pitch_fits(tensor, pitch, i, may_pitch);
}

bool dnn_cpu_can(const struct cpu_algo *algo, const struct dnn_step *step)
{
    const struct dnn_op *op = step->op;

    for (int i = 0; i < op->nin; i++)
        if (!fits(algo, step->in[i], dnn_op_operand_in(op, i), step->in_pitch, i,
                  algo->in_pitch))
            return false;
    for (int i = 0; i < op->nout; i++)
        if (!fits(algo, step->out[i], dnn_op_operand_out(op, i), step->out_pitch, i,
                  algo->out_pitch))
            return false;
    return algo->can == NULL || algo->can(step);
}

/* ---- the key of a step: everything its speed depends on ---- */

static void add_operand(struct dnn_buf *key, const struct dnn_tensor *tensor,
                        const int64_t *pitch, int i)
{
    char text[DNN_SHAPE_TEXT];

    if (tensor == NULL) {
        dnn_buf_add(key, " -");
        return;
    }
    dnn_buf_add(key, " %s", dnn_shape_text(text, sizeof text, &tensor->shape));
    if (pitch != NULL && pitch[i] != 0) dnn_buf_add(key, "/%lld", (long long)pitch[i]);
}

static void add_window(struct dnn_buf *key, const struct dnn_op_window *w)
{
    for (int i = 0; i < w->nspatial; i++)
        dnn_buf_add(key, " k%llds%lldd%lldb%llda%lld", (long long)w->kernel[i],
                    (long long)w->stride[i], (long long)w->dilation[i],
                    (long long)w->before[i], (long long)w->after[i]);
    dnn_buf_add(key, " g%lld", (long long)w->groups);
}

static char *key_of(const struct dnn_dev *dev, const struct dnn_step *step)
{
    const struct dnn_op *op = step->op;
    struct dnn_buf key = {0};

    dnn_buf_add(&key, "%s %d", dnn_op_info(op->kind)->name, (int)op->pass);
    for (int i = 0; i < op->nin; i++)
        add_operand(&key, step->in[i], step->in_pitch, i);
    dnn_buf_add(&key, " ->");
    for (int i = 0; i < op->nout; i++)
        add_operand(&key, step->out[i], step->out_pitch, i);
    if (op->kind == DNN_OP_CONV || op->kind == DNN_OP_DECONV)
        add_window(&key, &op->attr.window);
    if (op->post != NULL) dnn_buf_add(&key, " %s", dnn_op_unary_name(op->post->fn));
    if (dev->conv != CPU_CONV_ANY) dnn_buf_add(&key, " conv%d", (int)dev->conv);
    return key.text;
}

/* ---- selection ---- */

static void save(struct dnn_dev *dev)
{
    struct dnn_err err = {0};

    if (!dev->tuned->changed || dev->device.cache == NULL || !dnn_log_is_root()) return;
    dev->tuned->saved = dnn_clock_now();
    if (dnn_cpu_tuned_write(dev->tuned, dev->device.cache, &err) < 0)
        dnn_log_once(DNN_WARN, "backend",
                     "%s; kernels will be measured again next time", err.text);
}

static const struct cpu_algo *fastest(struct dnn_dev *dev, const struct dnn_step *step,
                                      const struct cpu_algo *const *algos, int count,
                                      const char *key)
{
    double seconds[CPU_ALGOS_MAX];
    struct dnn_err err = {0};
    int best = 0;

    if (dnn_cpu_measure(dev, step, algos, count, seconds, &err) < 0) {
        dnn_log(DNN_DEBUG, "backend", "%s: not measured: %s", key, err.text);
        return algos[0];
    }
    for (int i = 0; i < count; i++) {
        dnn_log(DNN_DEBUG, "backend", "%s: %s %.3g ms, %.1f GFLOP/s", key,
                algos[i]->name, seconds[i] * 1e3,
                dnn_cpu_flops(step) / seconds[i] * 1e-9);
        if (seconds[i] < seconds[best] * margin) best = i;
    }
    return algos[best];
}

static const struct cpu_algo *cached(const struct cpu_tuned *tuned, const char *key,
                                     const struct cpu_algo *const *algos, int count)
{
    const char *name = dnn_cpu_tuned_find(tuned, key);

    for (int i = 0; name != NULL && i < count; i++)
        if (strcmp(algos[i]->name, name) == 0) return algos[i];
    return NULL;
}

static const struct cpu_algo *heuristic(const struct dnn_step *step,
                                        const struct cpu_algo *const *algos, int count)
{
    for (int i = 0; i < count; i++)
        if (algos[i]->best != NULL && algos[i]->best(step)) return algos[i];
    return count == 0 ? &dnn_cpu_loops : algos[0];
}

/* ---- the algorithm the user requested ---- */

static const struct dnn_choice convs[] = {
    {"gemm",     CPU_CONV_GEMM    },
    {"winograd", CPU_CONV_WINOGRAD},
    {"direct",   CPU_CONV_DIRECT  },
    {"onednn",   CPU_CONV_ONEDNN  },
    {"i2c",      CPU_CONV_GEMM    },
    {"im2col",   CPU_CONV_GEMM    },
    {NULL,       0                }
};

int dnn_cpu_conv_read(struct dnn_dev *dev, struct dnn_err *err)
{
    int conv = CPU_CONV_ANY;

    if (dev->device.conv != NULL &&
        dnn_choice_find(convs, dev->device.conv, &conv, err) < 0) {
        if (err != NULL) err->code = DNN_ECONFIG;
        dnn_prefix(err, "kernels.conv: ");
        return DNN_ECONFIG;
    }
    dev->conv = (enum cpu_conv)conv;
    return 0;
}

static bool is_requested(const struct cpu_algo *algo, enum cpu_conv conv)
{
    bool winograd = strncmp(algo->name, "wino", 4) == 0;
    bool onednn = strcmp(algo->name, "oneDNN") == 0;

    switch (conv) {
    case CPU_CONV_WINOGRAD:
        return winograd;
    case CPU_CONV_DIRECT:
        return !winograd;
    default: /* of gemm, see onednn_conv.c */
        return onednn;
    }
}

/* Keep only the requested kernels; all, if none of them supports the step. */
static int restrict_to(const struct dnn_dev *dev, const struct dnn_step *step,
                       const struct cpu_algo **algos, int count)
{
    enum dnn_op_kind kind = step->op->kind;
    int n = 0;

    if (dev->conv == CPU_CONV_ANY || (kind != DNN_OP_CONV && kind != DNN_OP_DECONV))
        return count;
    for (int i = 0; i < count; i++)
        if (is_requested(algos[i], dev->conv)) algos[n++] = algos[i];
    return n == 0 ? count : n;
}

int dnn_cpu_select(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_algo **out, struct dnn_err *err)
{
    const struct cpu_algo *const *all = dnn_cpu_algos(step->op->kind, step->op->pass);
    const struct cpu_algo *algos[CPU_ALGOS_MAX];
    struct dnn_need need;
    int count = 0;

    (void)err;
    for (int i = 0; all[i] != NULL && count < CPU_ALGOS_MAX; i++)
        if (dnn_cpu_can(all[i], step) &&
            (all[i]->need == NULL || all[i]->need(dev, step, &need, NULL) == 0))
            algos[count++] = all[i];
    count = restrict_to(dev, step, algos, count);
    *out = heuristic(step, algos, count);
    if (count < 2 || dev->device.kernels == DNN_KERNELS_HEURISTIC ||
        dnn_cpu_flops(step) < min_flops)
        return 0;
    char *key = key_of(dev, step);
    *out = cached(dev->tuned, key, algos, count);
    if (*out == NULL) {
        *out = fastest(dev, step, algos, count, key);
        dnn_cpu_tuned_set(dev->tuned, key, (*out)->name);
    }
    dnn_free(key);
    if (dnn_clock_now() - dev->tuned->saved > save_interval) save(dev);
    return 0;
}

/* ---- results of autotuning ---- */

const char *dnn_cpu_tuned_find(const struct cpu_tuned *tuned, const char *key)
{
    for (size_t i = 0; i < tuned->count; i++)
        if (strcmp(tuned->at[i].key, key) == 0) return tuned->at[i].algo;
    return NULL;
}

void dnn_cpu_tuned_set(struct cpu_tuned *tuned, const char *key, const char *algo)
{
    tuned->changed = true;
    for (size_t i = 0; i < tuned->count; i++) {
        if (strcmp(tuned->at[i].key, key) != 0) continue;
        dnn_free(tuned->at[i].algo);
        tuned->at[i].algo = dnn_strdup(algo);
        return;
    }
    tuned->at = dnn_grow(tuned->at, &tuned->cap, tuned->count + 1, sizeof *tuned->at);
    tuned->at[tuned->count++] =
        (struct cpu_tuned_entry){dnn_strdup(key), dnn_strdup(algo)};
}

int dnn_cpu_tuned_open(struct dnn_dev *dev, struct dnn_err *err)
{
    (void)err;
    dev->tuned = dnn_alloc(sizeof *dev->tuned);
    dev->tuned->header = dnn_cpu_tuned_header(dev);
    dev->tuned->saved = dnn_clock_now();
    if (dev->device.cache != NULL) dnn_cpu_tuned_read(dev->tuned, dev->device.cache);
    dev->tuned->changed = false;
    return 0;
}

void dnn_cpu_tuned_close(struct dnn_dev *dev)
{
    struct cpu_tuned *tuned = dev->tuned;

    if (tuned == NULL) return;
    save(dev);
    for (size_t i = 0; i < tuned->count; i++) {
        dnn_free(tuned->at[i].key);
        dnn_free(tuned->at[i].algo);
    }
    dnn_free(tuned->at);
    dnn_free(tuned->header);
    dnn_free(tuned);
    dev->tuned = NULL;
}
