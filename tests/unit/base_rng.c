/* base_rng.c - random numbers: published vectors, exact bits, and statistics.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/rng.h"
#include "tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The known answers published with the generator. */
static const struct {
    uint32_t counter[4], key[2], want[4];
} vectors[] = {
    {{0, 0, 0, 0},                                     {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}                                                          },
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}                                                          },
};

static void test_vectors(void)
{
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        uint32_t got[4];

        dnn_rng_philox(vectors[i].counter, vectors[i].key, got);
        ok(memcmp(got, vectors[i].want, sizeof got) == 0, "published vector %zu", i);
    }
}

/* Every coordinate changes the result, at both ends of its range. */
static void test_coordinates(void)
{
    static const struct {
        uint64_t seed, stream;
        struct dnn_rng_at at;
    } places[] = {
        {0,                 0,                 {0, 0, 0}                },
        {1,                 0,                 {0, 0, 0}                },
        {(uint64_t)1 << 63, 0,                 {0, 0, 0}                },
        {0,                 1,                 {0, 0, 0}                },
        {0,                 (uint64_t)1 << 63, {0, 0, 0}                },
        {0,                 0,                 {1, 0, 0}                },
        {0,                 0,                 {(uint32_t)1 << 31, 0, 0}},
        {0,                 0,                 {0, 1, 0}                },
        {0,                 0,                 {0, (uint32_t)1 << 31, 0}},
        {0,                 0,                 {0, 0, 1}                },
        {0,                 0,                 {0, 0, (uint64_t)1 << 32}},
        {0,                 0,                 {0, 0, (uint64_t)1 << 63}},
    };
    enum { N = sizeof places / sizeof places[0] };
    uint32_t words[N][4];
    int same = 0;

    for (int i = 0; i < N; i++) {
        struct dnn_rng rng = dnn_rng_make(places[i].seed, places[i].stream);

        dnn_rng_words(&rng, places[i].at, words[i]);
        for (int j = 0; j < i; j++)
            for (int k = 0; k < 4; k++)
                same += words[i][k] == words[j][k];
    }
    is_int(same, 0, "seed, stream, step, sample and index all change the result");
}

static uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The same numbers in any order, and the same bits as recorded here. */
static void test_exact(void)
{
    struct dnn_rng rng = dnn_rng_make(20260301, 7);
    uint64_t forward = 0, backward = 0;
    char text[32];

    for (int i = 0; i < 1000; i++)
        forward +=
            bits_of(dnn_rng_normal(&rng, (struct dnn_rng_at){3, 5, (uint64_t)i})) *
            (2 * (uint64_t)i + 1);
    for (int i = 999; i >= 0; i--)
        backward +=
            bits_of(dnn_rng_normal(&rng, (struct dnn_rng_at){3, 5, (uint64_t)i})) *
            (2 * (uint64_t)i + 1);
    ok(forward == backward, "normals do not depend on the order of calls");
    snprintf(text, sizeof text, "%016" PRIx64, forward);
    is_text(text, "dd2ff9475a4fc6db", "a thousand normals have the recorded bits");

    uint64_t mixed = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        struct dnn_rng_at at = {1, 2, i};
        struct dnn_perm perm = dnn_rng_perm(i, 9, 1000003);

        mixed = mixed * 31 + bits_of(dnn_rng_uniform(&rng, at));
        mixed = mixed * 31 + dnn_rng_below(&rng, at, 1000);
        mixed = mixed * 31 + dnn_rng_perm_at(&perm, i);
    }
    snprintf(text, sizeof text, "%016" PRIx64, mixed);
    is_text(text, "cf0c04a21575d778",
            "and so have uniforms, bounded integers and permutations");
}

static void test_uniform(void)
{
    enum { N = 200000, BINS = 64 };
    struct dnn_rng rng = dnn_rng_make(1, 2), other = dnn_rng_make(1, 3);
    double sum = 0, square = 0, lag = 0, cross = 0, last = 0.5, chi = 0;
    int bin[BINS] = {0}, wrong = 0;

    for (int i = 0; i < N; i++) {
        struct dnn_rng_at at = {(uint32_t)i / 1000, (uint32_t)i % 1000,
                                (uint64_t)i % 7};
        double u = dnn_rng_uniform(&rng, at), v = dnn_rng_uniform(&other, at);

        wrong += !(u >= 0 && u < 1);
        bin[(int)(u * BINS)]++;
        sum += u - 0.5;
        square += (u - 0.5) * (u - 0.5);
        lag += (u - 0.5) * (last - 0.5);
        cross += (u - 0.5) * (v - 0.5);
        last = u;
    }
    for (int i = 0; i < BINS; i++)
        chi += pow(bin[i] - (double)N / BINS, 2) / ((double)N / BINS);
    is_int(wrong, 0, "uniforms are in [0, 1)");
    /* Limits at five standard deviations. */
    ok(fabs(sum / N) < 5 * sqrt(1. / 12 / N), "their mean is 1/2 (off by %g)", sum / N);
    ok(fabs(square / N - 1. / 12) < 5 * sqrt(1. / 180 / N), "their variance is 1/12");
    ok(fabs(lag / N) < 5. / 12 / sqrt(N), "neighbours are uncorrelated");
    ok(fabs(cross / N) < 5. / 12 / sqrt(N), "streams are uncorrelated");
    ok(chi < BINS - 1 + 5 * sqrt(2. * (BINS - 1)), "64 bins fill evenly (chi2 %g)",
       chi);
}

static void test_normal(void)
{
    enum { N = 200000 };
    struct dnn_rng rng = dnn_rng_make(3, 4);
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, cross = 0, worst = 0, most = 0;
    int within = 0;

    for (int i = 0; i < N; i++) {
        struct dnn_rng_at at = {0, 1, (uint64_t)i};
        double z[2];
        uint32_t w[4];

        dnn_rng_normals(&rng, at, z);
        m1 += z[0];
        m2 += z[0] * z[0];
        m3 += z[0] * z[0] * z[0];
        m4 += z[0] * z[0] * z[0] * z[0];
        cross += z[0] * z[1];
        within += fabs(z[0]) < 1;
        most = fmax(most, fabs(z[0]));
        /* The C library's functions agree, if not to the last bit. */
        dnn_rng_words(&rng, at, w);
        double u = (double)((((uint64_t)w[0] << 32 | w[1]) >> 11) + 1) * 0x1p-53;
        double t = (double)(((uint64_t)w[2] << 32 | w[3]) >> 11) * 0x1p-53;
        double r = sqrt(-2 * log(u));
        worst = fmax(worst, fabs(z[0] - r * cos(8 * atan(1) * t)));
        worst = fmax(worst, fabs(z[1] - r * sin(8 * atan(1) * t)));
    }
    ok(fabs(m1 / N) < 5 / sqrt(N), "normals: mean 0 (%g)", m1 / N);
    ok(fabs(m2 / N - 1) < 5 * sqrt(2. / N), "variance 1 (%g)", m2 / N);
    ok(fabs(m3 / N) < 5 * sqrt(15. / N), "no skew (%g)", m3 / N);
    ok(fabs(m4 / N - 3) < 5 * sqrt(96. / N), "fourth moment 3 (%g)", m4 / N);
    ok(fabs(cross / N) < 5 / sqrt(N), "the two of a block are independent");
    ok(fabs(within / (double)N - 0.682689492) < 5 * sqrt(0.2166 / N),
       "68.3 %% are within one deviation");
    ok(most > 3.5 && most < 8.6, "the tails are there (%g)", most);
    ok(worst < 1e-14, "log, sin and cos are right to %g", worst);
}

static void test_below(void)
{
    enum { N = 60000 };
    struct dnn_rng rng = dnn_rng_make(5, 6);
    static const uint64_t sizes[] = {1, 2, 3, 6, 7, 10};

    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int count[10] = {0}, wrong = 0;
        double n = (double)sizes[s], chi = 0;

        for (int i = 0; i < N; i++) {
            uint64_t x = dnn_rng_below(
                &rng, (struct dnn_rng_at){(uint32_t)s, 0, (uint64_t)i}, sizes[s]);

            if (x >= sizes[s])
                wrong++;
            else
                count[x]++;
        }
        for (int i = 0; i < (int)sizes[s]; i++)
            chi += pow(count[i] - N / n, 2) / (N / n);
        ok(wrong == 0 && chi < n - 1 + 5 * sqrt(2 * n), "below %d: even (chi2 %g)",
           (int)sizes[s], chi);
    }
    /* Below 2^63 + 1 nearly every second draw is rejected; each third of the range
     * must still get a third of the numbers. */
    uint64_t huge = ((uint64_t)1 << 63) + 1;
    int third[4] = {0};
    for (int i = 0; i < N; i++)
        third[dnn_rng_below(&rng, (struct dnn_rng_at){9, 0, (uint64_t)i}, huge) /
              (huge / 3)]++;
    ok(third[3] <= 1 && abs(third[0] - N / 3) < 600 && abs(third[1] - N / 3) < 600,
       "below 2^63 + 1: even (%d %d %d)", third[0], third[1], third[2]);
    is_int((long long)dnn_rng_below(&rng, (struct dnn_rng_at){0, 0, 0}, 1), 0,
           "below 1: 0");
}

static bool one_to_one(uint64_t seed, uint64_t epoch, uint64_t n, unsigned char *seen)
{
    struct dnn_perm perm = dnn_rng_perm(seed, epoch, n);

    memset(seen, 0, n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t x = dnn_rng_perm_at(&perm, i);

        if (x >= n || seen[x]++) return false;
    }
    return true;
}

static void test_perm(void)
{
    enum { MOST = 1 << 20 };
    unsigned char *seen = malloc(MOST + 1);
    int bad = 0;

    for (uint64_t n = 1; n <= 1000; n++)
        bad += !one_to_one(n, n / 3, n, seen);
    is_int(bad, 0, "permutations of 1 to 1000 elements are one to one");
    ok(one_to_one(1, 0, 100003, seen) && one_to_one(2, 5, MOST, seen) &&
           one_to_one(2, 5, MOST + 1, seen),
       "so are those of 100003, 2^20 and 2^20 + 1");
    free(seen);

    /* Too many to list: in range, and different in a sample. */
    struct dnn_perm perm = dnn_rng_perm(7, 0, (uint64_t)1 << 63);
    bool fine = true;
    uint64_t last = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t x = dnn_rng_perm_at(&perm, ((uint64_t)1 << 63) - 1 - i);

        fine = fine && x < (uint64_t)1 << 63 && x != last;
        last = x;
    }
    ok(fine, "a permutation of 2^63 elements is in range");
}

/* All n! permutations of a few elements are equally frequent over seeds, and over the
 * epochs of one seed. */
static void test_perm_orders(int n, int factorial, bool by_epoch)
{
    enum { EACH = 100 };
    int *count = calloc((size_t)factorial, sizeof *count);
    double chi = 0;

    for (int s = 0; s < EACH * factorial; s++) {
        struct dnn_perm perm = dnn_rng_perm(by_epoch ? 1 : (uint64_t)s,
                                            by_epoch ? (uint64_t)s : 0, (uint64_t)n);
        int code = 0, p[8];

        for (int i = 0; i < n; i++) {
            int less = 0;

            p[i] = (int)dnn_rng_perm_at(&perm, (uint64_t)i);
            for (int j = 0; j < i; j++)
                less += p[j] < p[i];
            code = code * (i + 1) + less;
        }
        count[code]++;
    }
    for (int i = 0; i < factorial; i++)
        chi += pow(count[i] - EACH, 2) / EACH;
    ok(chi < factorial - 1 + 5 * sqrt(2. * factorial),
       "the %d permutations of %d are uniform over %s (chi2 %g)", factorial, n,
       by_epoch ? "epochs" : "seeds", chi);
    free(count);
}

/* A long permutation: positions and values are independent, and so are neighbours. */
static void test_perm_long(void)
{
    enum { N = 50000 };
    struct dnn_perm perm = dnn_rng_perm(11, 2, N);
    double cell = N / 100., chi = 0, near = 0;
    int count[10][10] = {{0}};
    uint64_t last = dnn_rng_perm_at(&perm, N - 1);

    for (uint64_t i = 0; i < N; i++) {
        uint64_t x = dnn_rng_perm_at(&perm, i);

        count[i * 10 / N][x * 10 / N]++;
        near += ((double)x / N - 0.5) * ((double)last / N - 0.5);
        last = x;
    }
    for (int i = 0; i < 100; i++)
        chi += pow(count[i / 10][i % 10] - cell, 2) / cell;
    ok(chi < 81 + 5 * sqrt(2 * 81.), "a long permutation is uniform (chi2 %g)", chi);
    ok(fabs(near / N) < 5. / 12 / sqrt(N), "its neighbours are uncorrelated");
}

int main(void)
{
    test_vectors();
    test_coordinates();
    test_exact();
    test_uniform();
    test_normal();
    test_below();
    test_perm();
    test_perm_orders(2, 2, false);
    test_perm_orders(3, 6, false);
    test_perm_orders(4, 24, false);
    test_perm_orders(5, 120, false);
    test_perm_orders(4, 24, true);
    test_perm_orders(6, 720, true);
    test_perm_long();
    return done();
}
