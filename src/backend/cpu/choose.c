/* choose.c - which of several algos does a step.
 *
 * By rule it is the first in algos.c's list that can, or one that says it is the best.
 * Measured it is the fastest on this machine for this very shape: each shape is
 * measured once, and remembered for as long as the device is open and, if there is a
 * file, from run to run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/choose_impl.h"

#include "backend/cpu/onednn_impl.h"
#include "base/choice.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <ctype.h>
#include <string.h>

static const double worth = 1e6;  /* operations below which measuring costs more */
static const double clear = 0.97; /* how much better a later algo must be         */
static const double often = 2;    /* seconds between two writings of the file    */

/* ---- can a algo do a step? ---- */

/* The name of operand i: the word at its place in the op's table, without brackets;
 * after "x..." it is x for all. */
static void operand_name(const struct dnn_op *op, bool out, int i, char *name,
                         size_t size)
{
    const char *at = dnn_op_info(op->kind)->operands[op->pass];
    const char *arrow = strstr(at, "->");

    name[0] = '\0';
    if (out) at = arrow + 2;
    for (int word = 0;; word++) {
        size_t len = 0;
        bool many;

        while (*at == ' ')
            at++;
        if (*at == '\0' || (!out && at >= arrow)) return;
        while (at[len] != '\0' && at[len] != ' ')
            len++;
        many = len > 3 && strncmp(at + len - 3, "...", 3) == 0;
        if (word == i || many) {
            size_t n = 0;
            for (size_t k = 0; k < len && n + 1 < size; k++)
                if (isalpha((unsigned char)at[k])) name[n++] = at[k];
            name[n] = '\0';
            return;
        }
        at += len;
    }
}

static bool one_of(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

static bool type_fits(const struct dnn_op *op, bool out, int i, enum dnn_dtype dtype)
{
    static const char *const sums[] = {"sums", "dsums", "loss", "dloss", "s", NULL};
    static const char *const whole[] = {"index", "mask", "xym", NULL};
    char name[16];

    if (dtype == DNN_F32) return true;
    operand_name(op, out, i, name, sizeof name);
    if (dtype == DNN_F64) return one_of(name, sums);
    if (strcmp(name, "t") == 0) return dtype == DNN_I32;
    return one_of(name, whole);
}

static bool fits(const struct cpu_algo *algo, const struct dnn_op *op, bool out, int i,
                 const struct dnn_tensor *is)
{
    if (is == NULL) return true;
    return algo->f64 ? is->dtype == DNN_F64 : type_fits(op, out, i, is->dtype);
}

static bool pitch_fits(const struct dnn_tensor *is, const int64_t *pitch, int i,
                       unsigned allowed)
{
    if (is == NULL || pitch == NULL || pitch[i] == 0) return true;
    if (is->shape.ndim > 0 && pitch[i] == is->shape.dim[is->shape.ndim - 1])
        return true;
    return i < 32 && (allowed >> i & 1) != 0;
}

bool dnn_cpu_can(const struct cpu_algo *algo, const struct dnn_step *step)
{
    const struct dnn_op *op = step->op;

    for (int i = 0; i < op->nin; i++)
        if (!fits(algo, op, false, i, step->in[i]) ||
            !pitch_fits(step->in[i], step->in_pitch, i, algo->in_pitch))
            return false;
    for (int i = 0; i < op->nout; i++)
        if (!fits(algo, op, true, i, step->out[i]) ||
            !pitch_fits(step->out[i], step->out_pitch, i, algo->out_pitch))
            return false;
    return algo->can == NULL || algo->can(step);
}

/* ---- the key of a step: all a algo's speed can depend on ---- */

static void add_operand(struct dnn_buf *key, const struct dnn_tensor *is,
                        const int64_t *pitch, int i)
{
    char text[DNN_SHAPE_TEXT];

    if (is == NULL) {
        dnn_buf_add(key, " -");
        return;
    }
    dnn_buf_add(key, " %s", dnn_shape_text(text, sizeof text, &is->shape));
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

/* ---- choosing ---- */

static bool takes(struct dnn_dev *dev, const struct cpu_algo *algo,
                  const struct dnn_step *step)
{
    struct dnn_need need;

    return dnn_cpu_can(algo, step) &&
           (algo->need == NULL || algo->need(dev, step, &need, NULL) == 0);
}

static void save(struct dnn_dev *dev)
{
    struct dnn_err err = {0};

    if (!dev->choices->changed || dev->device.cache == NULL || !dnn_log_is_root())
        return;
    dev->choices->saved = dnn_clock_now();
    if (dnn_cpu_choices_write(dev->choices, dev->device.cache, &err) < 0)
        dnn_log_once(DNN_WARN, "backend", "%s; kernels are measured again next time",
                     err.text);
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
        if (seconds[i] < seconds[best] * clear) best = i;
    }
    return algos[best];
}

static const struct cpu_algo *remembered(const struct cpu_choices *choices,
                                         const char *key,
                                         const struct cpu_algo *const *algos, int count)
{
    const char *name = dnn_cpu_choices_find(choices, key);

    for (int i = 0; name != NULL && i < count; i++)
        if (strcmp(algos[i]->name, name) == 0) return algos[i];
    return NULL;
}

static const struct cpu_algo *by_rule(const struct dnn_step *step,
                                      const struct cpu_algo *const *algos, int count)
{
    for (int i = 0; i < count; i++)
        if (algos[i]->best != NULL && algos[i]->best(step)) return algos[i];
    return count == 0 ? &dnn_cpu_loops : algos[0];
}

/* ---- what the user asked for ---- */

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

static bool is_asked_for(const struct cpu_algo *algo, enum cpu_conv conv)
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

/* Leave only what the user asked for, if there is something. */
static int restrict_to(const struct dnn_dev *dev, const struct dnn_step *step,
                       const struct cpu_algo **algos, int count)
{
    enum dnn_op_kind kind = step->op->kind;
    int n = 0;

    if (dev->conv == CPU_CONV_ANY || (kind != DNN_OP_CONV && kind != DNN_OP_DECONV))
        return count;
    for (int i = 0; i < count; i++)
        if (is_asked_for(algos[i], dev->conv)) algos[n++] = algos[i];
    return n == 0 ? count : n;
}

int dnn_cpu_choose(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_algo **out, struct dnn_err *err)
{
    const struct cpu_algo *const *all = dnn_cpu_algos(step->op->kind, step->op->pass);
    const struct cpu_algo *algos[CPU_ALGOS_MAX];
    int count = 0;

    (void)err;
    for (int i = 0; all[i] != NULL && count < CPU_ALGOS_MAX; i++)
        if (takes(dev, all[i], step)) algos[count++] = all[i];
    count = restrict_to(dev, step, algos, count);
    *out = by_rule(step, algos, count);
    if (count < 2 || dev->device.kernels == DNN_KERNELS_HEURISTIC ||
        dnn_cpu_flops(step) < worth)
        return 0;
    char *key = key_of(dev, step);
    *out = remembered(dev->choices, key, algos, count);
    if (*out == NULL) {
        *out = fastest(dev, step, algos, count, key);
        dnn_cpu_choices_set(dev->choices, key, (*out)->name);
    }
    dnn_free(key);
    if (dnn_clock_now() - dev->choices->saved > often) save(dev);
    return 0;
}

/* ---- what is known ---- */

const char *dnn_cpu_choices_find(const struct cpu_choices *choices, const char *key)
{
    for (size_t i = 0; i < choices->count; i++)
        if (strcmp(choices->at[i].key, key) == 0) return choices->at[i].algo;
    return NULL;
}

void dnn_cpu_choices_set(struct cpu_choices *choices, const char *key, const char *algo)
{
    choices->changed = true;
    for (size_t i = 0; i < choices->count; i++) {
        if (strcmp(choices->at[i].key, key) != 0) continue;
        dnn_free(choices->at[i].algo);
        choices->at[i].algo = dnn_strdup(algo);
        return;
    }
    choices->at =
        dnn_grow(choices->at, &choices->cap, choices->count + 1, sizeof *choices->at);
    choices->at[choices->count++] =
        (struct cpu_choice){dnn_strdup(key), dnn_strdup(algo)};
}

int dnn_cpu_choices_open(struct dnn_dev *dev, struct dnn_err *err)
{
    (void)err;
    dev->choices = dnn_alloc(sizeof *dev->choices);
    dev->choices->header = dnn_cpu_choices_header(dev);
    dev->choices->saved = dnn_clock_now();
    if (dev->device.cache != NULL)
        dnn_cpu_choices_read(dev->choices, dev->device.cache);
    dev->choices->changed = false;
    return 0;
}

void dnn_cpu_choices_close(struct dnn_dev *dev)
{
    struct cpu_choices *choices = dev->choices;

    if (choices == NULL) return;
    save(dev);
    for (size_t i = 0; i < choices->count; i++) {
        dnn_free(choices->at[i].key);
        dnn_free(choices->at[i].algo);
    }
    dnn_free(choices->at);
    dnn_free(choices->header);
    dnn_free(choices);
    dev->choices = NULL;
}
