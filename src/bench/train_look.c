/* train_look.c - what the lines of a run tell.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/train_impl.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* ---- numbers ---- */

static void add(struct dnn_train_values *v, double x)
{
    v->value = dnn_grow(v->value, &v->cap, (size_t)v->n + 1, sizeof *v->value);
    v->value[v->n++] = x;
}

double dnn_train_median(const struct dnn_train_values *values)
{
    if (values->n == 0) return NAN;
    double *copy = dnn_alloc((size_t)values->n * sizeof *copy);
    memcpy(copy, values->value, (size_t)values->n * sizeof *copy);
    double middle = dnn_bench_median(copy, values->n);
    dnn_free(copy);
    return middle;
}

double dnn_train_most(const struct dnn_train_values *values)
{
    double most = values->n == 0 ? NAN : values->value[0];

    for (int i = 1; i < values->n; i++)
        most = fmax(most, values->value[i]);
    return most;
}

const struct dnn_train_way *dnn_train_find(const struct dnn_train_all *all,
                                           const char *work, const char *way)
{
    for (int i = 0; i < all->nworks; i++)
        for (int k = 0; k < all->work[i].nways; k++)
            if (strcmp(all->work[i].key, work) == 0 &&
                strcmp(all->work[i].way[k].key, way) == 0)
                return &all->work[i].way[k];
    return NULL;
}

/* ---- what a run's lines tell ---- */

/* An epoch: lines [from, to), the last of them the epoch's own; before it another. */
static void look_at_epoch(const struct dnn_train_line *line, int from, int to,
                          int64_t samples, struct dnn_train_way *way)
{
    double began = line[from - 1].seconds, comm = 0, late = 0, all = 0;

    if (to - from < 2) return;
    for (int i = from; i < to - 1; i++) {
        if (!(line[i].rate > 0)) continue;
        comm += line[i].comm / line[i].rate;
        late += line[i].late / line[i].rate;
        all += 1 / line[i].rate;
    }
    add(&way->rate, (double)samples / (line[to - 2].seconds - began));
    add(&way->whole, (double)samples / (line[to - 1].seconds - began));
    if (!(all > 0) || way->ranks == 1) return;
    add(&way->comm, comm / all);
    add(&way->late, late / all);
    add(&way->bare, (comm - late) / all);
}

/* After every so many steps there is a checkpoint, or could be one: by how much the
 * steps of the half behind it take longer than those of the other. */
static void look_at_halves(const struct dnn_train_lines *lines, int period,
                           struct dnn_train_way *way)
{
    double half[2] = {0};
    int seen = 0;

    for (int i = 1; i < lines->n; i++) {
        const struct dnn_train_line *at = &lines->line[i];
        int place = (int)((at->step - 1) % period);

        if (at->moment != DNN_TRAIN_STEP || at->epoch < 2) continue;
        if (place == 0) half[0] = half[1] = seen = 0;
        half[place >= period / 2] += at->seconds - at[-1].seconds;
        if (++seen == period) add(&way->extra, half[0] - half[1]);
    }
}

int dnn_train_look(const struct dnn_train_lines *lines, const struct dnn_train_work *w,
                   struct dnn_train_way *way, struct dnn_err *err)
{
    int before = -1, epochs = 0;

    for (int i = 0; i < lines->n; i++) {
        if (lines->line[i].moment != DNN_TRAIN_EPOCH) continue;
        if (before >= 0) {
            look_at_epoch(lines->line, before + 1, i + 1, w->samples, way);
            epochs++;
        }
        before = i;
    }
    if (epochs == 0 || lines->line[0].moment != DNN_TRAIN_STEP)
        return dnn_fail(err, DNN_EDATA, "%s, %s: no two epochs with their steps came",
                        w->name, way->name);
    add(&way->start, lines->line[0].at);
    if (w->period > 0) look_at_halves(lines, w->period, way);
    return 0;
}
