/* parallel_exact.c - sums that do not depend on the order of adding.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/rng.h"
#include "parallel/exact.h"

#include <math.h>
#include <string.h>

enum { N = 40000, PARTS = 16 };

static float part[PARTS][N], one[N], other[N];
static double sums[2 * N], more[2 * N];

static void fill(void)
{
    struct dnn_rng rng = dnn_rng_make(7, 1);

    for (uint32_t p = 0; p < PARTS; p++)
        for (uint64_t i = 0; i < N; i++) {
            double size = dnn_rng_uniform(&rng, (struct dnn_rng_at){p, 1, i});

            part[p][i] = (float)(dnn_rng_normal(&rng, (struct dnn_rng_at){p, 0, i}) *
                                 pow(2, 40 * size - 30));
        }
}

static void orders(void)
{
    bool good = true;

    for (int p = 0; p < PARTS; p++)
        good = dnn_exact_add(sums, N, &(const float *){part[p]}, 1, N, p == 0) && good;
    dnn_exact_read(sums, N, one, N);
    /* In reverse order, and in two groups added afterwards, as by ranks. */
    memset(sums, 0, sizeof sums);
    memset(more, 0, sizeof more);
    for (int p = PARTS - 1; p >= 0; p--)
        good = dnn_exact_add(p % 3 == 0 ? sums : more, N, &(const float *){part[p]}, 1,
                             N, false) &&
               good;
    for (int i = 0; i < 2 * N; i++)
        sums[i] += more[i];
    dnn_exact_read(sums, N, other, N);
    ok(good, "numbers up to 2^10 and beyond can be added");
    ok(memcmp(one, other, sizeof one) == 0,
       "any order and grouping gives the same bits");
}

/* In groups of any size, with any last step. */
static void groups(void)
{
    const float *x[PARTS];

    for (int p = 0; p < PARTS; p++)
        x[p] = part[p];
    for (int most = 2; most <= PARTS; most++) {
        bool good = true, same;

        memset(sums, 0xff, sizeof sums); /* a new sum ignores the content */
        for (int p = 0; p < PARTS; p += most) {
            int m = PARTS - p < most ? PARTS - p : most;

            if (p + m == PARTS)
                good =
                    dnn_exact_sum(p == 0 ? NULL : sums, N, x + p, m, other, N) && good;
            good = dnn_exact_add(sums, N, x + p, m, N, p == 0) && good;
        }
        same = memcmp(one, other, sizeof one) == 0;
        dnn_exact_read(sums, N, other, N);
        ok(good && same && memcmp(one, other, sizeof one) == 0,
           "%d at once: the same bits", most);
    }
}

/* The result may overwrite a vector; false if a number is too large. */
static void in_place(void)
{
    const float *x[PARTS];
    float was = part[1][3];

    memcpy(other, part[0], sizeof other);
    for (int p = 0; p < PARTS; p++)
        x[p] = p == 0 ? other : part[p];
    ok(dnn_exact_sum(NULL, 0, x, PARTS, other, N) &&
           memcmp(one, other, sizeof one) == 0,
       "the sum in place of one of its terms");
    part[1][3] = INFINITY;
    ok(!dnn_exact_sum(NULL, 0, x + 1, PARTS - 1, other, N), "an infinity among many");
    part[1][3] = was;
}

static void near(void)
{
    double worst = 0;

    for (int i = 0; i < N; i++) {
        long double sum = 0, size = 0;

        for (int p = 0; p < PARTS; p++) {
            sum += (long double)part[p][i];
            size += fabsl((long double)part[p][i]);
        }
        double off = (double)(fabsl((long double)one[i] - sum) / size);
        if (off > worst) worst = off;
    }
    ok(worst < 6e-8, "sums are correct to half a unit of f32 (worst %.3g)", worst);
}

static bool add_one(double *few, const float *x, int64_t n)
{
    return dnn_exact_add(few, n, &x, 1, n, false);
}

static void limits(void)
{
    const float small[] = {ldexpf(1, -60), ldexpf(1, -62), -ldexpf(1, -59)};
    const float large = DNN_EXACT_LARGEST;
    double few[6] = {0};
    float back[3];

    ok(add_one(few, small, 3), "tiny numbers can be added");
    dnn_exact_read(few, 3, back, 3);
    ok(back[0] == small[0] && back[1] == 0 && back[2] == small[2],
       "units are 2^-60; smaller ones count as zero");
    ok(!add_one(few, &large, 1), "a number that is too large is detected");
    ok(!add_one(few, &(float){NAN}, 1), "a NaN is detected");
    ok(!add_one(few, &(float){-INFINITY}, 1), "an infinity is detected");
    memset(few, 0, sizeof few);
    bool good = true;
    for (int i = 0; i < DNN_EXACT_VECTORS; i++)
        good = add_one(few, &(float){nextafterf(large, 0)}, 1) && good;
    dnn_exact_read(few, 1, back, 1);
    ok(good && back[0] == (float)(DNN_EXACT_VECTORS * (double)nextafterf(large, 0)),
       "the documented number of largest values can be added");
}

int main(void)
{
    fill();
    orders();
    groups();
    in_place();
    near();
    limits();
    return done();
}
