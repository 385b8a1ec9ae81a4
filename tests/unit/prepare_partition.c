/* prepare_partition.c - samples assigned to splits: exact counts, classes, groups, and
 * the same result for the same seed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "prepare/prepare_impl.h"

#include <math.h>
#include <stdlib.h>

/* ---- counts ---- */

static void counts(int64_t n, int nparts, const double *share, const char *want)
{
    int64_t count[8];
    char got[128] = "", name[160] = "";

    dnn_partition_counts(n, nparts, share, count);
    for (int p = 0; p <= nparts; p++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld",
                 p > 0 ? " " : "", (long long)count[p]);
    snprintf(name, sizeof name, "%lld samples by fractions: %s", (long long)n, want);
    is_text(got, want, name);
}

static void test_counts(void)
{
    const double usual[] = {0.8, 0.1, 0.1}, thirds[] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
    const double some[] = {0.5, 0.2}, all[] = {1.0};

    counts(10, 3, usual, "8 1 1 0");
    counts(60000, 3, usual, "48000 6000 6000 0");
    counts(5, 3, usual, "4 1 0 0");
    counts(15, 3, usual, "12 2 1 0");
    counts(30, 3, usual, "24 3 3 0");
    counts(10, 3, thirds, "4 3 3 0");
    counts(11, 3, thirds, "4 4 3 0");
    counts(10, 2, some, "5 2 3");
    counts(7, 1, all, "7 0");
    counts(0, 3, usual, "0 0 0 0");
    counts(1, 3, usual, "1 0 0 0");
}

/* For random fractions, counts add up and differ from their fraction by at most one. */
static void test_counts_property(void)
{
    int bad = 0;

    srand(1);
    for (int i = 0; i < 20000; i++) {
        int nparts = 1 + rand() % 5;
        double share[5], left = 1;
        int64_t n = rand() % 100000, count[6], sum = 0;

        for (int p = 0; p < nparts; p++) {
            share[p] = left * (rand() % 1001) / 1000;
            left -= share[p];
        }
        dnn_partition_counts(n, nparts, share, count);
        for (int p = 0; p <= nparts; p++) {
            sum += count[p];
            bad += count[p] < 0;
            if (p < nparts)
                bad += fabs((double)count[p] - (double)n * share[p]) > 1.001;
        }
        bad += sum != n;
    }
    is_int(bad, 0,
           "20000 random splits: sums are exact, no split differs by more than one");
}

/* ---- one by one ---- */

static void test_classes(void)
{
    enum { N = 1003, CLASSES = 7 };
    const double share[] = {0.7, 0.2, 0.1};
    int64_t class[N], of[CLASSES] = {0}, got[4][CLASSES] = {{0}}, total[4] = {0},
                      want[4];
    int32_t part[N], again[N], other[N];
    struct dnn_partition d = {N, NULL, class, 0, CLASSES, 3, share, 11};
    int off = 0;

    for (int i = 0; i < N; i++) {
        class[i] = i % 97 < 40 ? 0 : i % CLASSES;
        of[class[i]]++;
    }
    dnn_partition(&d, part);
    dnn_partition(&d, again);
    d.seed = 12;
    dnn_partition(&d, other);
    for (int i = 0; i < N; i++) {
        int p = part[i] < 0 ? 3 : part[i];

        got[p][class[i]]++;
        total[p]++;
    }
    dnn_partition_counts(N, 3, share, want);
    is_int(total[0], want[0], "stratified: as many for training as without classes");
    is_int(total[1], want[1], "and for validation");
    is_int(total[2], want[2], "and for the test");
    for (int p = 0; p < 3; p++)
        for (int c = 0; c < CLASSES; c++)
            off += fabs((double)got[p][c] - share[p] * (double)of[c]) > 1.001;
    is_int(off, 0, "each split has its fraction of each class, to one sample");
    ok(memcmp(part, again, sizeof part) == 0, "the same seed gives the same split");
    ok(memcmp(part, other, sizeof part) != 0, "another seed gives another split");
}

static void test_random(void)
{
    enum { N = 4000 };
    const double share[] = {0.5, 0.5};
    int32_t part[N];
    struct dnn_partition d = {N, NULL, NULL, 0, 0, 2, share, 3};
    int first = 0, changes = 0;

    dnn_partition(&d, part);
    for (int i = 0; i < N; i++) {
        first += part[i] == 0 && i < N / 2;
        changes += i > 0 && part[i] != part[i - 1];
    }
    ok(first > 900 && first < 1100, "half of the first half is in the first split (%d)",
       first);
    ok(changes > 1800 && changes < 2200, "neighbours are independent (%d changes)",
       changes);
    const double rest[] = {0.25};
    d.nparts = 1;
    d.share = rest;
    dnn_partition(&d, part);
    int out = 0;
    for (int i = 0; i < N; i++)
        out += part[i] == -1;
    is_int(out, 3000, "remaining samples are left out");
}

/* ---- groups ---- */

static void test_groups(void)
{
    enum { N = 2000, GROUPS = 90 };
    const double share[] = {0.8, 0.1, 0.1};
    int64_t group[N], class[N], total[3] = {0}, ofclass[3][2] = {{0}}, classes[2] = {0};
    int32_t part[N], first[GROUPS], again[N];
    struct dnn_partition d = {N, group, class, GROUPS, 2, 3, share, 5};
    int split = 0;

    srand(2);
    for (int i = 0; i < N; i++) {
        group[i] = rand() % GROUPS * (rand() % GROUPS) / GROUPS; /* of unequal sizes */
        class[i] = group[i] % 3 == 0;
        classes[class[i]]++;
    }
    dnn_partition(&d, part);
    dnn_partition(&d, again);
    for (int g = 0; g < GROUPS; g++)
        first[g] = -2;
    for (int i = 0; i < N; i++) {
        if (first[group[i]] == -2) first[group[i]] = part[i];
        split += first[group[i]] != part[i] || part[i] < 0;
        if (part[i] >= 0) {
            total[part[i]]++;
            ofclass[part[i]][class[i]]++;
        }
    }
    is_int(split, 0, "no group is divided, nothing is left out");
    ok(llabs(total[0] - 1600) < 60 && llabs(total[1] - 200) < 60 &&
           llabs(total[2] - 200) < 60,
       "fractions are nearly exact (%lld %lld %lld)", (long long)total[0],
       (long long)total[1], (long long)total[2]);
    ok(fabs((double)ofclass[0][1] - 0.8 * (double)classes[1]) < 60,
       "and so are those of a class (%lld of %lld)", (long long)ofclass[0][1],
       (long long)classes[1]);
    ok(memcmp(part, again, sizeof part) == 0,
       "the same seed gives the same split of groups");
}

int main(void)
{
    test_counts();
    test_counts_property();
    test_classes();
    test_random();
    test_groups();
    return done();
}
