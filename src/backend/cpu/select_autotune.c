/* select_autotune.c - how long each algo takes for a step.
 *
 * On the real shapes, in memory of its own filled with numbers as networks have them:
 * zeros and denormals would not take the time real ones do.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/select_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <math.h>

enum { RUNS = 3 };
static const double slow = 0.3;     /* seconds after which once is enough        */
static const double hopeless = 2.5; /* times the best: not worth a second look   */

struct bench {
    struct dnn_step step;
    void **in, **out; /* owned, and what they point to */
    size_t *in_bytes, *out_bytes;
};

static size_t operand_bytes(const struct dnn_tensor *is, const int64_t *pitch, int i)
{
    struct cpu_array a =
        dnn_cpu_array(is, NULL, pitch == NULL || is == NULL ? 0 : pitch[i]);

    return (size_t)(a.rows * a.pitch) * dnn_dtype_size(a.dtype);
}

/* Numbers between -1 and 1, none of them tiny. */
static void *make_operand(struct dnn_dev *dev, size_t bytes)
{
    float *mem = dnn_cpu_take(bytes);
    int64_t count = (int64_t)(bytes / sizeof *mem);

    if (mem == NULL) return NULL;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)i * 2654435761u;
        bits ^= bits >> 15;
        mem[i] = ((float)(bits % 2000) - 999.5f) / 1000;
    }
    return mem;
}

static void bench_free(struct bench *b)
{
    for (int i = 0; b->in != NULL && i < b->step.op->nin; i++)
        dnn_cpu_give_back(b->in[i], b->in_bytes[i]);
    for (int i = 0; b->out != NULL && i < b->step.op->nout; i++)
        dnn_cpu_give_back(b->out[i], b->out_bytes[i]);
    dnn_free(b->in);
    dnn_free(b->out);
    dnn_free(b->in_bytes);
    dnn_free(b->out_bytes);
}

static bool bench_make(struct dnn_dev *dev, const struct dnn_step *step,
                       struct bench *b)
{
    size_t nin = (size_t)step->op->nin, nout = (size_t)step->op->nout;
    bool good = true;

    b->step = *step;
    b->in = dnn_alloc(nin * sizeof *b->in);
    b->out = dnn_alloc(nout * sizeof *b->out);
    b->in_bytes = dnn_alloc(nin * sizeof *b->in_bytes);
    b->out_bytes = dnn_alloc(nout * sizeof *b->out_bytes);
    for (size_t i = 0; i < nin; i++) {
        if (step->in[i] == NULL) continue;
        b->in_bytes[i] = operand_bytes(step->in[i], step->in_pitch, (int)i);
        b->in[i] = make_operand(dev, b->in_bytes[i]);
        good = good && b->in[i] != NULL;
    }
    for (size_t i = 0; i < nout; i++) {
        if (step->out[i] == NULL) continue;
        b->out_bytes[i] = operand_bytes(step->out[i], step->out_pitch, (int)i);
        b->out[i] = make_operand(dev, b->out_bytes[i]);
        good = good && b->out[i] != NULL;
    }
    b->step.in_mem = b->in;
    b->step.out_mem = b->out;
    return good;
}

/* One run, with weights that have just changed. */
static double once(struct dnn_dev *dev, const struct cpu_algo *algo,
                   struct cpu_call *call, void *state)
{
    double from = dnn_clock_now();

    call->now.weights++;
    if (algo->fn != NULL)
        algo->fn(call);
    else if (algo->run(dev, call, state, NULL) < 0)
        return INFINITY;
    return dnn_clock_now() - from;
}

static double repeat(struct dnn_dev *dev, const struct cpu_algo *algo,
                     struct cpu_call *call, void *state, double best)
{
    double first = once(dev, algo, call, state), least = INFINITY;

    if (!isfinite(first) || first > hopeless * best) return first;
    for (int i = 0; i < (first > slow ? 1 : RUNS); i++)
        least = fmin(least, once(dev, algo, call, state));
    return least;
}

/* Seconds of one algo; best: of those before it. */
static double try_algo(struct dnn_dev *dev, const struct cpu_algo *algo,
                       struct bench *b, double best)
{
    struct dnn_need need = {0};
    double seconds = INFINITY;
    void *state = NULL;

    if (algo->need != NULL) {
        if (algo->need(dev, &b->step, &need, NULL) < 0) return INFINITY;
    } else if (algo->work != NULL) {
        need.work = algo->work(&b->step, dev->threads);
    }
    struct dnn_step step = b->step;
    step.work = dnn_cpu_take(need.work);
    step.keep = dnn_cpu_take(need.keep);
    struct cpu_call call = dnn_cpu_call(dev, &step);
    if (step.work != NULL && step.keep != NULL &&
        (algo->fn != NULL || algo->prepare(dev, &step, &call, &state, NULL) == 0))
        seconds = repeat(dev, algo, &call, state, best);
    if (state != NULL) algo->discard(state);
    dnn_free(call.in);
    dnn_cpu_give_back(step.work, need.work);
    dnn_cpu_give_back(step.keep, need.keep);
    return seconds;
}

int dnn_cpu_measure(struct dnn_dev *dev, const struct dnn_step *step,
                    const struct cpu_algo *const *algos, int count, double *seconds,
                    struct dnn_err *err)
{
    struct bench b = {0};
    double best = INFINITY;
    int rc = 0;

    if (bench_make(dev, step, &b)) {
        for (int i = 0; i < count; i++) {
            seconds[i] = try_algo(dev, algos[i], &b, best);
            best = fmin(best, seconds[i]);
        }
    } else {
        rc = dnn_fail(err, DNN_ENOMEM, "no memory to measure kernels in");
    }
    bench_free(&b);
    return rc;
}
