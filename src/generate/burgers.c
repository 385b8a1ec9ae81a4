/* burgers.c - initial conditions of Burgers' equation.
 *
 * On d points x = 0 ... d - 1: b(x) = (1 - cos(2 pi c x / d)) / 2 with a frequency c
 * per sample, or a weighted sum of several such terms; the sum of the random weights is
 * 1, so that values are between 0 and 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "generate/generate_impl.h"

#include <math.h>
#include <stddef.h>

enum { MAX_TERMS = 64 };

enum spread { RANDOM, FIXED };

static const struct dnn_choice spreads[] = {
    {"random_uniform", RANDOM},
    {"fixed_uniform",  FIXED },
    {NULL,             0     },
};

struct opts {
    int64_t domain_size, terms;
    struct dnn_list frequency;
    int spread;
};

struct burgers {
    struct dnn_gen gen;
    struct opts opts;
};

#define AT(f) offsetof(struct opts, f)
static const struct dnn_sub pair = {.min = 2, .max = 2};
static const struct dnn_field fields[] = {
    {"domain_size",  DNN_F_INT,   AT(domain_size), NULL,             2, 1 << 24,   NULL,
     "number of grid points",                                                                     NULL },
    {"bc_frequency", DNN_F_REALS, AT(frequency),   NULL,             0, 1e6,       NULL,
     "frequency c: minimum, maximum",                                                             &pair},
    {"bc_type",      DNN_F_ENUM,  AT(spread),      "random_uniform", 0, 0,         spreads,
     "random frequencies, or evenly spaced from minimum to maximum",                              NULL },
    {"terms",        DNN_F_INT,   AT(terms),       "1",              1, MAX_TERMS, NULL,
     "number of waves per sample",                                                                NULL },
    {NULL,           0,           0,               NULL,             0, 0,         NULL,    NULL, NULL },
};

static int make(struct dnn_gen *gen, const struct dnn_jobj *obj, struct dnn_err *err)
{
    struct burgers *b = (struct burgers *)gen;

    DNN_TRY(dnn_gen_range_real(obj, "bc_frequency", &b->opts.frequency, err));
    if (b->opts.spread == FIXED && b->opts.terms != 1) {
        struct dnn_jobj at = dnn_json_sub(obj, "terms");

        return dnn_json_fail(&at, err, "must be 1 if bc_type is fixed_uniform");
    }
    return dnn_gen_input(gen, 1, &b->opts.domain_size, err);
}

static int read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                struct dnn_err *err)
{
    static const double pi = 3.14159265358979323846;
    const struct burgers *b = (const struct burgers *)source;
    const double *c = b->opts.frequency.reals;
    const int64_t n = b->opts.domain_size, terms = b->opts.terms;
    struct dnn_draw draw = dnn_gen_draw(&b->gen, i);
    double wave[MAX_TERMS], weight[MAX_TERMS] = {1}, sum = 0;

    DNN_TRY(dnn_gen_arrays(source, out, err));
    for (int64_t k = 0; k < terms; k++) {
        wave[k] = dnn_draw_real(&draw, c[0], c[1]);
        if (terms > 1) weight[k] = dnn_draw_real(&draw, 0.1, 1);
        sum += weight[k];
    }
    if (b->opts.spread == FIXED)
        wave[0] = source->count == 1
                      ? c[0]
                      : c[0] + (double)i * (c[1] - c[0]) / (double)(source->count - 1);
    float *to = out->col[0].data;
    for (int64_t x = 0; x < n; x++) {
        double value = 0;

        for (int64_t k = 0; k < terms; k++)
            value +=
                weight[k] * 0.5 * (1 - cos(2 * pi * wave[k] * (double)x / (double)n));
        to[x] = (float)(value / sum);
    }
    return 0;
}

const struct dnn_generator dnn_gen_burgers = {
    .help = "initial conditions of Burgers' equation, without targets",
    .fields = fields,
    .size = sizeof(struct burgers),
    .opts = offsetof(struct burgers, opts),
    .type = {.name = "burgers", .read = read, .close = dnn_gen_close},
    .make = make,
};
