/* partition.c - assigns samples to parts: by shares, stratified by class, in groups.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In binary 0.1 * 30 is slightly above 3: values close to an integer are rounded. */
static double ideal(int64_t n, double share)
{
    double x = (double)n * share, whole = nearbyint(x);

    return fabs(x - whole) < 1e-6 ? whole : x;
}

/* The share that no part gets. */
static double rest_of(int nparts, const double *share)
{
    double rest = 1;

    for (int p = 0; p < nparts; p++)
        rest -= share[p];
    return rest < 1e-9 ? 0 : rest;
}

void dnn_partition_counts(int64_t n, int nparts, const double *share, int64_t *count)
{
    double *remainder = dnn_alloc(((size_t)nparts + 1) * sizeof *remainder);
    int64_t left = n;

    for (int p = 0; p <= nparts; p++) {
        double x = ideal(n, p < nparts ? share[p] : rest_of(nparts, share));

        count[p] = (int64_t)floor(x);
        remainder[p] = x - floor(x);
        left -= count[p];
    }
    for (; left > 0; left--) {
        int best = 0;

        for (int p = 1; p <= nparts; p++)
            if (remainder[p] > remainder[best]) best = p;
        count[best]++;
        remainder[best] = -1;
    }
    /* Shares that add up to a little more than 1. */
    for (int p = nparts; left < 0; p = p > 0 ? p - 1 : nparts)
        if (count[p] > 0) {
            count[p]--;
            left++;
        }
    dnn_free(remainder);
}

/* ---- without groups ---- */

/* The number of samples of each class in each part.  Rows add up to the sizes of the
 * classes, columns to the counts without classes. */
static int64_t *counts_by_class(const struct dnn_partition *d, const int64_t *members)
{
    size_t width = (size_t)d->nparts + 1;
    int64_t *count = dnn_alloc((size_t)d->nclasses * width * sizeof *count);
    int64_t *want = dnn_alloc(width * sizeof *want);
    double rest = rest_of(d->nparts, d->share);

    dnn_partition_counts(d->n, d->nparts, d->share, want);
    for (int64_t c = 0; c < d->nclasses; c++)
        for (int p = 0; p <= d->nparts; p++) {
            double x = ideal(members[c], p < d->nparts ? d->share[p] : rest);

            count[(size_t)c * width + (size_t)p] = (int64_t)floor(x);
            want[p] -= (int64_t)floor(x);
        }
    for (int64_t c = 0; c < d->nclasses; c++) {
        int64_t *row = &count[(size_t)c * width], left = members[c];

        for (int p = 0; p <= d->nparts; p++)
            left -= row[p];
        for (; left > 0; left--) {
            int best = -1;
            double most = -2;

            for (int p = 0; p <= d->nparts; p++) {
                double x = ideal(members[c], p < d->nparts ? d->share[p] : rest);

                if (want[p] > 0 && x - (double)row[p] > most) {
                    best = p;
                    most = x - (double)row[p];
                }
            }
            if (best < 0) best = 0;
            row[best]++;
            want[best]--;
        }
    }
    dnn_free(want);
    return count;
}

static void assign_samples(const struct dnn_partition *d, int32_t *part)
{
    struct dnn_partition one = *d;
    int64_t *none = NULL;

    if (d->class == NULL) {
        one.nclasses = 1;
        one.class = none = dnn_alloc((size_t)(d->n + 1) * sizeof *none);
    }
    size_t width = (size_t)d->nparts + 1;
    int64_t *members = dnn_alloc((size_t)one.nclasses * sizeof *members);
    int64_t *seen = dnn_alloc((size_t)one.nclasses * sizeof *seen);
    for (int64_t i = 0; i < d->n; i++)
        members[one.class[i]]++;
    int64_t *count = counts_by_class(&one, members);
    struct dnn_perm *perm = dnn_alloc((size_t)one.nclasses * sizeof *perm);
    for (int64_t c = 0; c < one.nclasses; c++)
        if (members[c] > 0)
            perm[c] = dnn_rng_perm(d->seed, (uint64_t)c, (uint64_t)members[c]);
    /* Each sample has a random position in its class; positions are assigned to the
     * parts in order. */
    for (int64_t i = 0; i < d->n; i++) {
        int64_t c = one.class[i];
        int64_t position = (int64_t)dnn_rng_perm_at(&perm[c], (uint64_t)seen[c]++);
        int p = 0;

        while (p < d->nparts && position >= count[(size_t)c * width + (size_t)p])
            position -= count[(size_t)c * width + (size_t)p++];
        part[i] = p == d->nparts ? -1 : p;
    }
    dnn_free(perm);
    dnn_free(count);
    dnn_free(seen);
    dnn_free(members);
    dnn_free(none);
}

/* ---- with groups ---- */

struct group {
    int64_t number, size;
    uint64_t position; /* random: order of groups of one size */
};

static int larger_first(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* The samples of all groups, and how many of each class each part still needs. */
struct table {
    const struct dnn_partition *d;
    struct group *group;     /* owned [ngroups]                                      */
    int64_t *first, *sample; /* owned: members of group g are sample[first[g]...]     */
    int64_t *members;        /* owned: of each class                                 */
    double *missing;         /* owned [nparts + 1][nclasses]                         */
    int64_t *has, *classes;  /* owned: of one group: how many of each class, and which
                              * classes these are */
    int64_t nclasses;
};

static int64_t class_of(const struct dnn_partition *d, int64_t i)
{
    return d->class == NULL ? 0 : d->class[i];
}

static void fill_table(struct table *t)
{
    const struct dnn_partition *d = t->d;
    struct dnn_perm perm =
        dnn_rng_perm(d->seed, 0, d->ngroups > 0 ? (uint64_t)d->ngroups : 1);
    double rest = rest_of(d->nparts, d->share);

    for (int64_t i = 0; i < d->n; i++) {
        t->group[d->group[i]].size++;
        t->members[class_of(d, i)]++;
    }
    for (int64_t g = 0; g < d->ngroups; g++) {
        t->group[g].number = g;
        t->group[g].position = dnn_rng_perm_at(&perm, (uint64_t)g);
        t->first[g + 1] = t->first[g] + t->group[g].size;
    }
    for (int64_t i = d->n; i-- > 0;)
        t->sample[t->first[d->group[i]] + --t->group[d->group[i]].size] = i;
    for (int64_t g = 0; g < d->ngroups; g++)
        t->group[g].size = t->first[g + 1] - t->first[g];
    for (int p = 0; p <= d->nparts; p++)
        for (int64_t c = 0; c < d->nclasses; c++)
            t->missing[p * d->nclasses + c] =
                (double)t->members[c] * (p < d->nparts ? d->share[p] : rest);
}

/* How much a part needs a group: how many samples of its classes are missing. */
static double need(const struct table *t, int part)
{
    const double *missing = &t->missing[part * t->d->nclasses];
    double sum = 0;

    for (int64_t i = 0; i < t->nclasses; i++) {
        int64_t c = t->classes[i];

        sum += (double)t->has[c] * missing[c] / (double)t->members[c];
    }
    return sum;
}

/* Assigns a group to the part that needs its classes most. */
static int32_t assign_group(struct table *t, int64_t g)
{
    const struct dnn_partition *d = t->d;
    int best = 0;

    t->nclasses = 0;
    for (int64_t i = t->first[g]; i < t->first[g + 1]; i++) {
        int64_t c = class_of(d, t->sample[i]);

        if (t->has[c]++ == 0) t->classes[t->nclasses++] = c;
    }
    for (int p = 1; p <= d->nparts; p++)
        if (need(t, p) > need(t, best)) best = p;
    for (int64_t i = 0; i < t->nclasses; i++) {
        int64_t c = t->classes[i];

        t->missing[best * d->nclasses + c] -= (double)t->has[c];
        t->has[c] = 0;
    }
    return best == d->nparts ? -1 : best;
}

/* Largest groups first. */
static void assign_groups(const struct dnn_partition *d, int32_t *part)
{
    size_t nc = (size_t)d->nclasses, ng = (size_t)d->ngroups;
    struct table t = {.d = d};

    t.group = dnn_alloc((ng + 1) * sizeof *t.group);
    t.first = dnn_alloc((ng + 1) * sizeof *t.first);
    t.sample = dnn_alloc((size_t)d->n * sizeof *t.sample);
    t.members = dnn_alloc(nc * sizeof *t.members);
    t.missing = dnn_alloc(((size_t)d->nparts + 1) * nc * sizeof *t.missing);
    t.has = dnn_alloc(nc * sizeof *t.has);
    t.classes = dnn_alloc(nc * sizeof *t.classes);
    fill_table(&t);
    qsort(t.group, ng, sizeof *t.group, larger_first);
    for (int64_t i = 0; i < d->ngroups; i++) {
        int64_t g = t.group[i].number;
        int32_t to = assign_group(&t, g);

        for (int64_t k = t.first[g]; k < t.first[g + 1]; k++)
            part[t.sample[k]] = to;
    }
    dnn_free(t.classes);
    dnn_free(t.has);
    dnn_free(t.missing);
    dnn_free(t.members);
    dnn_free(t.sample);
    dnn_free(t.first);
    dnn_free(t.group);
}

void dnn_partition(const struct dnn_partition *in, int32_t *part)
{
    struct dnn_partition d = *in;

    if (d.n == 0) return;
    if (d.class == NULL) d.nclasses = 1;
    if (d.group != NULL)
        assign_groups(&d, part);
    else
        assign_samples(in, part);
}
