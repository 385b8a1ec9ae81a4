/* rows_update_kernel.h - one step of each optimizer, in one pass over memory; LARS and
 * LAMB need a second pass, for the norms.
 *
 * Included by rows_isa.h, after rows_elementwise_kernel.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

/* do_at(u, i, left) for all vectors of u. u is a copy: stores to arrays cannot alias
 * it. */
#define EACH_WEIGHT(given, do_at, ...)                                                 \
    do {                                                                               \
        const struct rows_update u_ = *(given);                                        \
        int64_t i_ = 0;                                                                \
        for (; i_ + LANES <= u_.n; i_ += LANES)                                        \
            do_at(&u_, i_, 0 __VA_OPT__(, ) __VA_ARGS__);                              \
        if (i_ < u_.n) do_at(&u_, i_, u_.n - i_ __VA_OPT__(, ) __VA_ARGS__);           \
    } while (0)

INLINE vec slope_of(const struct rows_update *u, int64_t i, int64_t left, vec w,
                    const bool regularized)
{
    vec g = v_load_some(u->g + i, left);

    if (!regularized) return g;
    return g + sign_of(w) * u->l1 + w * u->decay;
}

INLINE void put_weight(const struct rows_update *u, int64_t i, int64_t left, vec w)
{
    if (u->clip) w = v_where(~(w < 0.0f), w);
    v_store_some(u->w + i, w, left);
}

/* Updates the moving average at p with x; returns its new value. */
INLINE vec update_mean(float *p, int64_t left, float beta, float rest, vec x)
{
    vec v = v_load_some(p, left) * beta + x * rest;

    v_store_some(p, v, left);
    return v;
}

/* ---- SGD ---- */

INLINE void sgd_at(const struct rows_update *u, int64_t i, int64_t left,
                   const bool velocity, const bool torch)
{
    vec w = v_load_some(u->w + i, left), g = slope_of(u, i, left, w, u->regularized);
    vec step = g * (torch ? u->trust : -u->rate);

    if (velocity) {
        vec m = v_load_some(u->m + i, left) * u->momentum;

        if (torch)
            m += step * u->grad_factor;
        else
            m += step;
        v_store_some(u->m + i, m, left);
        if (u->nesterov)
            step += m * u->momentum;
        else
            step = m;
    }
    if (torch) step *= -u->rate;
    put_weight(u, i, left, w + step);
}

static TARGET void sgd(const struct rows_update *u)
{
    if (u->m != NULL && u->torch)
        EACH_WEIGHT(u, sgd_at, true, true);
    else if (u->m != NULL)
        EACH_WEIGHT(u, sgd_at, true, false);
    else if (u->torch)
        EACH_WEIGHT(u, sgd_at, false, true);
    else
        EACH_WEIGHT(u, sgd_at, false, false);
}

/* ---- Adam and its variants ---- */

/* Updates both moving means: *m becomes the first; returns the second, with amsgrad its
 * maximum so far. */
INLINE vec means_at(const struct rows_update *u, int64_t i, int64_t left, vec g, vec *m)
{
    *m = update_mean(u->m + i, left, u->beta1, u->rest1, g);
    vec v = update_mean(u->v + i, left, u->beta2, u->rest2, g * g);

    if (u->s != NULL) {
        v = v_max(v, v_load_some(u->s + i, left));
        v_store_some(u->s + i, v, left);
    }
    return v;
}

INLINE void adam_at(const struct rows_update *u, int64_t i, int64_t left,
                    const bool regularized)
{
    vec w = v_load_some(u->w + i, left), g = slope_of(u, i, left, w, regularized), m;
    vec v = means_at(u, i, left, g, &m);

    put_weight(u, i, left, w * u->w_factor - m * u->rate / (v_sqrt(v) + u->epsilon));
}

static TARGET void adam(const struct rows_update *u)
{
    if (u->regularized)
        EACH_WEIGHT(u, adam_at, true);
    else
        EACH_WEIGHT(u, adam_at, false);
}

INLINE void nadam_at(const struct rows_update *u, int64_t i, int64_t left)
{
    vec w = v_load_some(u->w + i, left), g = slope_of(u, i, left, w, u->regularized), m;
    vec v = means_at(u, i, left, g, &m);

    put_weight(u, i, left,
               w - (g * u->grad_rate + m * u->rate) / (v_sqrt(v) + u->epsilon));
}

static TARGET void nadam(const struct rows_update *u)
{
    EACH_WEIGHT(u, nadam_at);
}

/* ---- Adagrad, Adadelta, RMSprop ---- */

INLINE void adagrad_at(const struct rows_update *u, int64_t i, int64_t left)
{
    vec w = v_load_some(u->w + i, left), g = slope_of(u, i, left, w, u->regularized);
    vec m = v_load_some(u->m + i, left) + g * g;

    v_store_some(u->m + i, m, left);
    put_weight(u, i, left, w - g * u->rate / (v_sqrt(m) + u->epsilon));
}

static TARGET void adagrad(const struct rows_update *u)
{
    EACH_WEIGHT(u, adagrad_at);
}

INLINE void adadelta_at(const struct rows_update *u, int64_t i, int64_t left)
{
    vec w = v_load_some(u->w + i, left), g = slope_of(u, i, left, w, u->regularized);
    vec m = update_mean(u->m + i, left, u->beta2, u->rest2, g * g);
    vec v = v_load_some(u->v + i, left);
    vec step = v_sqrt(v + u->epsilon) / v_sqrt(m + u->epsilon) * g;

    v_store_some(u->v + i, v * u->beta2 + step * step * u->rest2, left);
    put_weight(u, i, left, w - step * u->rate);
}

static TARGET void adadelta(const struct rows_update *u)
{
    EACH_WEIGHT(u, adadelta_at);
}

INLINE void rmsprop_at(const struct rows_update *u, int64_t i, int64_t left)
{
    vec w = v_load_some(u->w + i, left), g = slope_of(u, i, left, w, u->regularized);
    vec m = update_mean(u->m + i, left, u->beta2, u->rest2, g * g);

    if (u->v != NULL) {
        vec mean = update_mean(u->v + i, left, u->beta2, u->rest2, g);

        m -= mean * mean;
        m = v_where(~(m < 0.0f), m); /* < 0 only by rounding */
    }
    vec step = g / (v_sqrt(m) + u->epsilon);
    if (u->s != NULL) {
        step += v_load_some(u->s + i, left) * u->momentum;
        v_store_some(u->s + i, step, left);
    }
    put_weight(u, i, left, w - step * u->rate);
}

static TARGET void rmsprop(const struct rows_update *u)
{
    EACH_WEIGHT(u, rmsprop_at);
}

/* ---- LARS and LAMB, which need norms first ---- */

/* Two sums of squares, in double. */
struct two_sums {
    dvec a, b;
};

INLINE void add_squares(struct two_sums *sum, vec a, vec b)
{
    dvec a0 = v_low(a), a1 = v_high(a), b0 = v_low(b), b1 = v_high(b);

    sum->a += a0 * a0 + a1 * a1;
    sum->b += b0 * b0 + b1 * b1;
}

INLINE void lars_norms_at(const struct rows_update *u, int64_t i, int64_t left,
                          struct two_sums *sum)
{
    vec w = v_load_some(u->w + i, left);

    add_squares(sum, w, slope_of(u, i, left, w, u->regularized));
}

static TARGET void lars_norms(const struct rows_update *u, double *weight, double *grad)
{
    struct two_sums sum = {{0}, {0}};

    EACH_WEIGHT(u, lars_norms_at, &sum);
    *weight = d_sum(sum.a);
    *grad = d_sum(sum.b);
}

INLINE vec lamb_step(const struct rows_update *u, vec w, vec m, vec v)
{
    return m * u->rate / (v_sqrt(v) + u->epsilon) + w * u->w_rate;
}

INLINE void lamb_means_at(const struct rows_update *u, int64_t i, int64_t left,
                          struct two_sums *sum)
{
    vec w = v_load_some(u->w + i, left), g = slope_of(u, i, left, w, u->regularized), m;
    vec v = means_at(u, i, left, g, &m), step = lamb_step(u, w, m, v);

    add_squares(sum, w, step);
}

static TARGET void lamb_means(const struct rows_update *u, double *weight, double *step)
{
    struct two_sums sum = {{0}, {0}};

    EACH_WEIGHT(u, lamb_means_at, &sum);
    *weight = d_sum(sum.a);
    *step = d_sum(sum.b);
}

INLINE void lamb_at(const struct rows_update *u, int64_t i, int64_t left)
{
    vec w = v_load_some(u->w + i, left), m = v_load_some(u->m + i, left);
    vec v = v_load_some((u->s != NULL ? u->s : u->v) + i, left);

    put_weight(u, i, left, w - lamb_step(u, w, m, v) * u->trust);
}

static TARGET void lamb(const struct rows_update *u)
{
    EACH_WEIGHT(u, lamb_at);
}

#undef EACH_WEIGHT
