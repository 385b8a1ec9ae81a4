/* split_order.c - which samples a split has, in which order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "base/rng.h"

#include <string.h>

/* Random streams, different from those that assign splits. */
enum { SHUFFLE = 0x70726570, BALANCE = 0x62616c00 };

static int find_balanced(const struct dnn_prepare *prepare,
                         const struct dnn_parts *parts, struct dnn_err *err)
{
    char names[DNN_MAX_SPLITS * 34] = "";

    for (int p = 0; p < parts->n; p++) {
        if (strcmp(parts->name[p], prepare->balance->split) == 0) return p;
        strcat(names, p > 0 ? ", " : "");
        strcat(names, parts->name[p]);
    }
    return dnn_fail(err, DNN_ECONFIG,
                    "balance: there is no split \"%s\"; available: %s",
                    prepare->balance->split, names);
}

/* How often each of n samples is repeated so that all classes are equally frequent. */
static int32_t *repeats(const struct dnn_prepare *prepare, const int64_t *sample,
                        int64_t n, const int64_t *class)
{
    int64_t nclasses = 0, want = 0;

    for (int64_t i = 0; i < n; i++)
        if (class[sample[i]] >= nclasses) nclasses = class[sample[i]] + 1;
    int64_t *members = dnn_alloc((size_t)(nclasses + 1) * sizeof *members);
    int64_t *seen = dnn_alloc((size_t)(nclasses + 1) * sizeof *seen);
    int32_t *times = dnn_alloc((size_t)(n + 1) * sizeof *times);
    for (int64_t i = 0; i < n; i++)
        members[class[sample[i]]]++;
    bool over = prepare->balance->how == DNN_BALANCE_OVER;
    for (int64_t c = 0; c < nclasses; c++)
        if (members[c] > 0 &&
            (want == 0 || (over ? members[c] > want : members[c] < want)))
            want = members[c];
    for (int64_t i = 0; i < n; i++) {
        int64_t c = class[sample[i]];
        struct dnn_perm perm = dnn_rng_perm((uint64_t)prepare->seed ^ BALANCE,
                                            (uint64_t)c, (uint64_t)members[c]);
        int64_t position = (int64_t)dnn_rng_perm_at(&perm, (uint64_t)seen[c]++);

        times[i] = (int32_t)(want / members[c] + (position < want % members[c]));
    }
    dnn_free(seen);
    dnn_free(members);
    return times;
}

/* First every sample once, then those that come a second time, and so on. */
static void repeat(struct dnn_output *out, const int32_t *times)
{
    int64_t *from = out->sample, n = out->n, total = 0, at = 0;
    int32_t most = 0;

    for (int64_t i = 0; i < n; i++) {
        total += times[i];
        if (times[i] > most) most = times[i];
    }
    out->sample = dnn_alloc((size_t)(total + 1) * sizeof *out->sample);
    for (int32_t round = 1; round <= most; round++)
        for (int64_t i = 0; i < n; i++)
            if (times[i] >= round) out->sample[at++] = from[i];
    out->n = total;
    dnn_free(from);
}

static void shuffle(struct dnn_output *out, uint64_t seed, int part)
{
    int64_t *from = out->sample;

    if (out->n == 0) return;
    struct dnn_perm perm =
        dnn_rng_perm(seed ^ SHUFFLE, (uint64_t)part, (uint64_t)out->n);
    out->sample = dnn_alloc((size_t)(out->n + 1) * sizeof *out->sample);
    for (int64_t i = 0; i < out->n; i++)
        out->sample[i] = from[dnn_rng_perm_at(&perm, (uint64_t)i)];
    dnn_free(from);
}

static int count_boxes(struct dnn_output *out, const int64_t *boxes,
                       struct dnn_err *err)
{
    out->first = dnn_alloc((size_t)(out->n + 1) * sizeof *out->first);
    for (int64_t i = 0; i < out->n; i++)
        if (__builtin_add_overflow(out->first[i],
                                   boxes == NULL ? 1 : boxes[out->sample[i]],
                                   &out->first[i + 1]))
            return dnn_fail(err, DNN_EDATA, "the number of slices overflows");
    return 0;
}

int dnn_outputs_make(const struct dnn_prepare *prepare, const struct dnn_parts *parts,
                     int64_t count, const int64_t *class, const int64_t *boxes,
                     struct dnn_output out[DNN_MAX_SPLITS], struct dnn_err *err)
{
    int balanced = -1;

    if (prepare->balance != NULL) {
        balanced = find_balanced(prepare, parts, err);
        if (balanced < 0) return balanced;
    }
    for (int64_t i = 0; i < count; i++)
        if (parts->part[i] >= 0) out[parts->part[i]].n++;
    for (int p = 0; p < parts->n; p++) {
        out[p].sample = dnn_alloc((size_t)(out[p].n + 1) * sizeof *out[p].sample);
        out[p].n = 0;
    }
    for (int64_t i = 0; i < count; i++) {
        int p = parts->part[i];

        if (p >= 0) out[p].sample[out[p].n++] = i;
    }
    for (int p = 0; p < parts->n; p++) {
        if (p == balanced) {
            int32_t *times = repeats(prepare, out[p].sample, out[p].n, class);

            repeat(&out[p], times);
            dnn_free(times);
        }
        if (prepare->shuffle) shuffle(&out[p], (uint64_t)prepare->seed, p);
        DNN_TRY(count_boxes(&out[p], boxes, err));
    }
    return 0;
}

void dnn_outputs_free(struct dnn_output out[DNN_MAX_SPLITS])
{
    for (int p = 0; p < DNN_MAX_SPLITS; p++) {
        dnn_free(out[p].sample);
        dnn_free(out[p].first);
        out[p] = (struct dnn_output){0};
    }
}
