/* diffusivity.c - random diffusivity fields for PDE solvers trained without data.
 *
 * The logarithm is the truncated Karhunen-Loeve expansion of a random field with
 * exponential covariance of correlation length eta, on [0, 1] along each axis:
 *
 *   ln nu(x) = sum over i = 1 ... terms of omega_i product over axes d of
 *              sqrt(lambda_i) (eta a_i cos(a_i x_d) + sin(a_i x_d)),
 *   lambda_i = 2 eta / (1 + eta^2 a_i^2)
 *
 * with the roots a_i of (eta^2 a^2 - 1) sin a = 2 eta a cos a, so that a term has the
 * factor lambda_i with two axes and lambda_i^(3/2) with three.  omega is a point of
 * [-range, range]^terms: from the Sobol sequence, random, or configured.  The x_d are
 * nodes, the first at 0 and the last at 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "generate/generate_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

static const double pi = 3.14159265358979323846;

enum sampling { SOBOL, UNIFORM };

static const struct dnn_choice samplings[] = {
    {"sobol",   SOBOL  },
    {"uniform", UNIFORM},
    {NULL,      0      },
};

struct opts {
    int64_t terms, skip;
    struct dnn_list size, eta, omega;
    double range;
    int sampling;
    bool log;
};

struct diffusivity {
    struct dnn_gen gen;
    struct opts opts;
    int nspace;
    int64_t extent[3];
    double *table[3]; /* of each axis: [node][term] sqrt(lambda) phi */
};

#define AT(f) offsetof(struct opts, f)
static const struct dnn_sub axes = {.min = 1, .max = 3, .single = true};
static const struct dnn_field fields[] = {
    {"size",     DNN_F_INTS,  AT(size),     "64",    2,    4096,           NULL,
     "number of nodes of all axes, or one per axis",                                        &axes},
    {"terms",    DNN_F_INT,   AT(terms),    "4",     1,    DNN_SOBOL_DIMS, NULL,
     "number of terms of the expansion",                                                    NULL },
    {"eta",      DNN_F_REALS, AT(eta),      "0.5",   1e-3, 1e3,            NULL,
     "correlation length of all axes, or one per axis",                                     &axes},
    {"range",    DNN_F_REAL,  AT(range),    "3",     0,    100,            NULL,
     "coefficients lie between -range and range",                                           NULL },
    {"sampling", DNN_F_ENUM,  AT(sampling), "sobol", 0,    0,              samplings,
     "coefficients from the Sobol sequence (independent of the seed), or uniform "
     "random",                                                                              NULL },
    {"skip",     DNN_F_INT,   AT(skip),     "0",     0,    4294967295.0,   NULL,
     "sobol: number of points to skip, so that datasets do not overlap",                    NULL },
    {"omega",    DNN_F_REALS, AT(omega),    "null",  0,    0,              NULL,
     "fixed coefficients for every sample, one per term",                                   NULL },
    {"log",      DNN_F_BOOL,  AT(log),      "false", 0,    0,              NULL,
     "store the logarithm of the diffusivity",                                              NULL },
    {NULL,       0,           0,            NULL,    0,    0,              NULL,      NULL, NULL },
};

/* ---- the expansion ---- */

static double residual(double eta, double a)
{
    return (eta * eta * a * a - 1) * sin(a) - 2 * eta * a * cos(a);
}

/* There is one root between (i - 1) pi and i pi, where the sign of the residual changes
 * (to positive if i is odd).  Bisection ends when low and high are adjacent doubles. */
double dnn_diffusivity_root(double eta, int64_t i)
{
    const double sign = i % 2 == 1 ? 1 : -1;
    double low = (double)(i - 1) * pi, high = (double)i * pi;

    for (;;) {
        double mid = 0.5 * (low + high);

        if (mid <= low || mid >= high) return mid;
        if (sign * residual(eta, mid) < 0)
            low = mid;
        else
            high = mid;
    }
}

static double *make_table(struct diffusivity *d, int64_t n, double eta)
{
    const int64_t m = d->opts.terms;
    double *t = dnn_arena_alloc(d->gen.arena, (size_t)(n * m) * sizeof *t);

    for (int64_t i = 0; i < m; i++) {
        const double a = dnn_diffusivity_root(eta, i + 1);
        const double factor = sqrt(2 * eta / (1 + eta * eta * a * a));

        for (int64_t k = 0; k < n; k++) {
            const double x = (double)k / (double)(n - 1);

            t[k * m + i] = factor * (eta * a * cos(a * x) + sin(a * x));
        }
    }
    return t;
}

/* ---- the dataset ---- */

static int check(struct diffusivity *d, const struct dnn_jobj *obj, struct dnn_err *err)
{
    const struct opts *o = &d->opts;

    if (o->eta.count != 1 && o->eta.count != d->nspace) {
        struct dnn_jobj at = dnn_json_sub(obj, "eta");

        return dnn_json_fail(
            &at, err,
            "must be one number, or one for each of the %d axes, not %" PRId64
            " numbers",
            d->nspace, o->eta.count);
    }
    if (o->omega.count != 0 && o->omega.count != o->terms) {
        struct dnn_jobj at = dnn_json_sub(obj, "omega");

        return dnn_json_fail(&at, err,
                             "%" PRId64 " coefficients given for %" PRId64 " terms",
                             o->omega.count, o->terms);
    }
    if (o->omega.count == 0 && o->sampling == SOBOL &&
        d->gen.source.count > ((int64_t)1 << 32) - o->skip) {
        struct dnn_jobj at = dnn_json_sub(obj, "samples");

        return dnn_json_fail(
            &at, err, "must be at most %" PRId64 ": the Sobol sequence has 2^32 points",
            ((int64_t)1 << 32) - o->skip);
    }
    return 0;
}

static int make(struct dnn_gen *gen, const struct dnn_jobj *obj, struct dnn_err *err)
{
    struct diffusivity *d = (struct diffusivity *)gen;
    const struct opts *o = &d->opts;

    d->nspace = gen->kind == &dnn_gen_diffusivity2d ? 2 : 3;
    DNN_TRY(dnn_gen_extents(obj, "size", &o->size, d->nspace, d->extent, err));
    DNN_TRY(check(d, obj, err));
    for (int k = 0; k < d->nspace; k++)
        d->table[k] =
            make_table(d, d->extent[k], o->eta.reals[o->eta.count == 1 ? 0 : k]);
    return dnn_gen_input(gen, d->nspace, d->extent, err);
}

/* ---- a sample ---- */

static void draw_omega(const struct diffusivity *d, int64_t i, double *omega)
{
    const struct opts *o = &d->opts;
    struct dnn_draw draw = dnn_gen_draw(&d->gen, i);

    for (int64_t k = 0; k < o->terms; k++)
        if (o->omega.count != 0)
            omega[k] = o->omega.reals[k];
        else if (o->sampling == SOBOL)
            omega[k] = o->range * (2 * dnn_sobol((int)k, (uint32_t)(o->skip + i)) - 1);
        else
            omega[k] = dnn_draw_real(&draw, -o->range, o->range);
}

/* One row along the last axis; weight contains the factors of the other axes. */
static void fill_row(const struct diffusivity *d, const double *weight, float *out)
{
    const int64_t m = d->opts.terms, n = d->extent[d->nspace - 1];
    const double *t = d->table[d->nspace - 1];

    for (int64_t k = 0; k < n; k++, t += m) {
        double sum = 0;

        for (int64_t i = 0; i < m; i++)
            sum += weight[i] * t[i];
        out[k] = (float)(d->opts.log ? sum : exp(sum));
    }
}

static int read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                struct dnn_err *err)
{
    const struct diffusivity *d = (const struct diffusivity *)source;
    const int64_t m = d->opts.terms, n = d->extent[d->nspace - 1];
    const int64_t planes = d->nspace == 3 ? d->extent[0] : 1;
    const int64_t rows = d->extent[d->nspace - 2];
    double omega[DNN_SOBOL_DIMS], weight[DNN_SOBOL_DIMS];

    DNN_TRY(dnn_gen_arrays(source, out, err));
    float *to = out->col[0].data;
    draw_omega(d, i, omega);
    for (int64_t z = 0; z < planes; z++)
        for (int64_t y = 0; y < rows; y++, to += n) {
            const double *row = d->table[d->nspace - 2] + y * m;

            for (int64_t k = 0; k < m; k++) {
                weight[k] = omega[k] * row[k];
                if (d->nspace == 3) weight[k] *= d->table[0][z * m + k];
            }
            fill_row(d, weight, to);
        }
    return 0;
}

const struct dnn_generator dnn_gen_diffusivity2d = {
    .help = "random diffusivity fields on the unit square, without targets",
    .fields = fields,
    .size = sizeof(struct diffusivity),
    .opts = offsetof(struct diffusivity, opts),
    .type = {.name = "diffusivity2d", .read = read, .close = dnn_gen_close},
    .make = make,
};

const struct dnn_generator dnn_gen_diffusivity3d = {
    .help = "random diffusivity fields in the unit cube, without targets",
    .fields = fields,
    .size = sizeof(struct diffusivity),
    .opts = offsetof(struct diffusivity, opts),
    .type = {.name = "diffusivity3d", .read = read, .close = dnn_gen_close},
    .make = make,
};
