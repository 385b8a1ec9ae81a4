/* select_autotune.c - measures the time of each kernel for a step.
 *
 * It uses the real shapes and separate memory with typical values: zeros and denormals
 * would take a different time.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/select_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <math.h>

enum { RUNS = 3 };
static const double one_run_seconds =
    0.3; /* seconds: for slower kernels one run is enough */
static const double give_up_factor =
    2.5; /* times the best: slower ones get no second run */

struct bench {
    struct dnn_step step;
    void **in, **out; /* owned, with the memory they point to */
    size_t *in_bytes, *out_bytes;
};

static size_t operand_bytes(const struct dnn_tensor *tensor, const int64_t *pitch,
                            int i)
{
    struct cpu_array a =
        dnn_cpu_array(tensor, NULL, pitch == NULL || tensor == NULL ? 0 : pitch[i]);

    return (size_t)(a.rows * a.pitch) * dnn_dtype_size(a.dtype);
}

/* Values between -1 and 1, none of them tiny. */
static void *make_operand(struct dnn_dev *dev, size_t bytes)
{
    float *mem = dnn_cpu_alloc(bytes);
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
        dnn_cpu_free(b->in[i], b->in_bytes[i]);
    for (int i = 0; b->out != NULL && i < b->step.op->nout; i++)
        dnn_cpu_free(b->out[i], b->out_bytes[i]);
    dnn_free(b->in);
    dnn_free(b->out);
    dnn_free(b->in_bytes);
    dnn_free(b->out_bytes);
}

static bool bench_make(struct dnn_dev *dev, const struct dnn_step *step,
                       struct bench *b)
{
    size_t nin = (size_t)step->op->nin, nout = (size_t)step->op->nout;
    bool ok = true;

    b->step = *step;
    b->in = dnn_alloc(nin * sizeof *b->in);
    b->out = dnn_alloc(nout * sizeof *b->out);
    b->in_bytes = dnn_alloc(nin * sizeof *b->in_bytes);
    b->out_bytes = dnn_alloc(nout * sizeof *b->out_bytes);
    for (size_t i = 0; i < nin; i++) {
        if (step->in[i] == NULL) continue;
        b->in_bytes[i] = operand_bytes(step->in[i], step->in_pitch, (int)i);
        b->in[i] = make_operand(dev, b->in_bytes[i]);
        ok = ok && b->in[i] != NULL;
    }
    for (size_t i = 0; i < nout; i++) {
        if (step->out[i] == NULL) continue;
        b->out_bytes[i] = operand_bytes(step->out[i], step->out_pitch, (int)i);
        b->out[i] = make_operand(dev, b->out_bytes[i]);
        ok = ok && b->out[i] != NULL;
    }
    b->step.in_mem = b->in;
    b->step.out_mem = b->out;
    return ok;
}

/* Seconds of one run, with changed weights: it includes packing them. */
static double time_run(struct dnn_dev *dev, const struct cpu_algo *algo,
                       struct cpu_call *call, void *state)
{
    double start = dnn_clock_now();

    call->now.weights++;
    if (algo->fn != NULL)
        algo->fn(call);
    else if (algo->run(dev, call, state, NULL) < 0)
        return INFINITY;
    return dnn_clock_now() - start;
}

static double time_kernel(struct dnn_dev *dev, const struct cpu_algo *algo,
                          struct cpu_call *call, void *state, double best)
{
    double first = time_run(dev, algo, call, state), min = INFINITY;

    if (!isfinite(first) || first > give_up_factor * best) return first;
    for (int i = 0; i < (first > one_run_seconds ? 1 : RUNS); i++)
        min = fmin(min, time_run(dev, algo, call, state));
    return min;
}

/* Seconds of one kernel; best: seconds of the fastest one so far. */
static double measure_algo(struct dnn_dev *dev, const struct cpu_algo *algo,
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
    step.work = dnn_cpu_alloc(need.work);
    step.keep = dnn_cpu_alloc(need.keep);
    struct cpu_call call = dnn_cpu_call(dev, &step);
    if (step.work != NULL && step.keep != NULL &&
        (algo->fn != NULL || algo->prepare(dev, &step, &call, &state, NULL) == 0))
        seconds = time_kernel(dev, algo, &call, state, best);
    if (state != NULL) algo->discard(state);
    dnn_free(call.in);
    dnn_cpu_free(step.work, need.work);
    dnn_cpu_free(step.keep, need.keep);
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
            seconds[i] = measure_algo(dev, algos[i], &b, best);
            best = fmin(best, seconds[i]);
        }
    } else {
        rc = dnn_fail(err, DNN_ENOMEM, "not enough memory to autotune kernels");
    }
    bench_free(&b);
    return rc;
}
