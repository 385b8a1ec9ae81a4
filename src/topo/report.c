/* report.c - find problems in the places of all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "topo/topo.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Messages about pairs of ranks per node; more are only counted. */
enum { MAX_PAIRS = 4 };

struct check {
    const struct dnn_topo_request *request;
    const struct dnn_place *place;
    int n;
    bool *mark; /* owned [n]: the ranks of a message */
    struct dnn_topo_report *out;
};

static DNN_PRINTF(3, 4) void note(struct check *c, int level, const char *fmt, ...)
{
    struct dnn_topo_report *out = c->out;
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    out->note =
        dnn_grow(out->note, &out->cap, (size_t)out->count + 1, sizeof *out->note);
    out->note[out->count].level = level;
    out->note[out->count++].text = dnn_strdup(text);
}

/* Append the marked ranks: "rank 3", "ranks 0 and 1" or "ranks 0-3,7". */
static void add_ranks(struct dnn_buf *out, const struct check *c)
{
    int n = 0, first = -1, last = -1;
    const char *comma = "";

    for (int r = 0; r < c->n; r++)
        if (c->mark[r]) {
            if (n++ == 0) first = r;
            last = r;
        }
    if (n <= 2) {
        if (n == 2)
            dnn_buf_add(out, "ranks %d and %d", first, last);
        else
            dnn_buf_add(out, "rank %d", first);
        return;
    }
    dnn_buf_add(out, "ranks ");
    for (int r = first; r <= last; r++) {
        int low = r;

        if (!c->mark[r]) continue;
        while (r < last && c->mark[r + 1])
            r++;
        if (r == low)
            dnn_buf_add(out, "%s%d", comma, low);
        else
            dnn_buf_add(out, "%s%d-%d", comma, low, r);
        comma = ",";
    }
}

static void add_cores(struct dnn_buf *out, const struct dnn_topo_set *cores)
{
    dnn_buf_add(out, dnn_topo_count(cores) == 1 ? "core " : "cores ");
    dnn_topo_list(out, cores);
}

static bool same_host(const struct check *c, int a, int b)
{
    return strcmp(c->request[a].host, c->request[b].host) == 0;
}

/* Why two ranks have a core in common. */
enum overlap {
    NONE,
    MASKS,    /* their masks overlap, but are different           */
    SIBLINGS, /* they have different hardware threads of the core */
    CROWDED,  /* there are more ranks than cores                  */
    INHERITED /* --bind inherit: they have the same mask          */
};

static enum overlap overlap_of(const struct check *c, int a, int b)
{
    const struct dnn_topo_request *x = &c->request[a], *y = &c->request[b];

    if (!dnn_topo_intersect(&c->place[a].cores, &c->place[b].cores, NULL)) return NONE;
    if (!dnn_topo_intersect(&x->granted, &y->granted, NULL)) return SIBLINGS;
    if (!dnn_topo_same(&x->granted, &y->granted)) return MASKS;
    return x->policy == DNN_BIND_AUTO && y->policy == DNN_BIND_AUTO ? CROWDED
                                                                    : INHERITED;
}

static bool is_off(const struct check *c, int a, int b)
{
    return c->request[a].policy == DNN_BIND_OFF && c->request[b].policy == DNN_BIND_OFF;
}

static void note_pair(struct check *c, int a, int b)
{
    struct dnn_buf cpus = {0};
    struct dnn_topo_set both;

    dnn_topo_intersect(&c->request[a].granted, &c->request[b].granted, &both);
    dnn_topo_list(&cpus, &both);
    note(
        c, DNN_WARN,
        "%s: ranks %d and %d were given overlapping CPUs (%s) and will slow each other "
        "down; give each rank its own (srun --cpu-bind=cores) or all of them the same "
        "(srun --cpu-bind=none)",
        c->request[a].host, a, b, cpus.text);
    dnn_buf_free(&cpus);
}

/* One message per host and reason, with all affected ranks. */
static void note_shared(struct check *c, int host, enum overlap reason)
{
    static const char *const advice[] = {
        [SIBLINGS] = "each was given some of the hardware threads; srun "
                     "--hint=nomultithread gives whole cores",
        [CROWDED] = "there are fewer cores than ranks; request more cores or start "
                    "fewer ranks",
        [INHERITED] = "they were started with the same mask; --bind auto divides it",
    };
    struct dnn_topo_set cores = {{0}};
    struct dnn_buf text = {0};
    bool any = false;

    memset(c->mark, 0, (size_t)c->n * sizeof *c->mark);
    for (int a = host; a < c->n; a++)
        for (int b = a + 1; same_host(c, host, a) && b < c->n; b++) {
            struct dnn_topo_set both;

            if (!same_host(c, a, b) || is_off(c, a, b) || overlap_of(c, a, b) != reason)
                continue;
            dnn_topo_intersect(&c->place[a].cores, &c->place[b].cores, &both);
            for (int n = 0; n < DNN_TOPO_PUS; n++)
                if (dnn_topo_has(&both, n)) dnn_topo_add(&cores, n);
            c->mark[a] = c->mark[b] = any = true;
        }
    if (!any) return;
    add_ranks(&text, c);
    dnn_buf_add(&text, " share ");
    add_cores(&text, &cores);
    note(c, DNN_WARN, "%s: %s: %s", c->request[host].host, text.text, advice[reason]);
    dnn_buf_free(&text);
}

/* Check for overlaps on a host, given by its first rank. */
static void check_host(struct check *c, int host)
{
    int pairs = 0;
    bool seen[INHERITED + 1] = {false};

    for (int a = host; a < c->n; a++)
        for (int b = a + 1; same_host(c, host, a) && b < c->n; b++) {
            if (!same_host(c, a, b)) continue;
            enum overlap reason = overlap_of(c, a, b);

            if (reason == NONE) continue;
            c->out->overlaps++;
            seen[reason] = true;
            if (reason == MASKS && !is_off(c, a, b) && pairs++ < MAX_PAIRS)
                note_pair(c, a, b);
        }
    if (pairs > MAX_PAIRS)
        note(c, DNN_WARN, "%s: %d more pairs of ranks were given overlapping CPUs",
             c->request[host].host, pairs - MAX_PAIRS);
    for (enum overlap reason = SIBLINGS; reason <= INHERITED; reason++)
        if (seen[reason]) note_shared(c, host, reason);
}

/* Whether a rank's threads fit on its cores. */
enum fit { FITS, USES_SIBLINGS, TOO_MANY_THREADS, TOO_FEW_CPUS };

static enum fit fit_of(const struct check *c, int r)
{
    const struct dnn_topo_request *request = &c->request[r];
    int pus = dnn_topo_count(&c->place[r].pus);

    if (request->want == DNN_WANT_CPUS)
        return request->threads > pus ? TOO_FEW_CPUS : FITS;
    if (request->want != DNN_WANT_THREADS || request->threads <= c->place[r].ncores)
        return FITS;
    return request->threads > pus ? TOO_MANY_THREADS : USES_SIBLINGS;
}

static bool same_fit(const struct check *c, int a, int b)
{
    return fit_of(c, a) == fit_of(c, b) &&
           c->request[a].threads == c->request[b].threads &&
           c->place[a].ncores == c->place[b].ncores &&
           dnn_topo_count(&c->place[a].pus) == dnn_topo_count(&c->place[b].pus);
}

static void note_fit(struct check *c, int r)
{
    int threads = c->request[r].threads, cores = c->place[r].ncores;
    int pus = dnn_topo_count(&c->place[r].pus);
    const char *s = cores == 1 ? "" : "s";
    struct dnn_buf ranks = {0};

    add_ranks(&ranks, c);
    switch (fit_of(c, r)) {
    case FITS:
        break;
    case USES_SIBLINGS:
        note(c, DNN_INFO,
             "%s: %d threads on %d core%s with %d hardware threads; --threads %d uses "
             "one per core",
             ranks.text, threads, cores, s, pus, cores);
        break;
    case TOO_MANY_THREADS:
        note(c, DNN_WARN,
             "%s: %d threads share %d core%s; request more cores (srun "
             "--cpus-per-task=%d) or use --threads %d",
             ranks.text, threads, cores, s, threads, cores);
        break;
    case TOO_FEW_CPUS:
        note(c, DNN_WARN,
             "%s: the Slurm job has %d CPUs per task, but only %d are available; use "
             "srun "
             "--cpus-per-task=%d",
             ranks.text, threads, pus, threads);
        break;
    }
    dnn_buf_free(&ranks);
}

static void check_threads(struct check *c)
{
    bool *done = dnn_alloc((size_t)c->n * sizeof *done);

    for (int r = 0; r < c->n; r++) {
        if (done[r] || fit_of(c, r) == FITS) continue;
        for (int s = 0; s < c->n; s++)
            if ((c->mark[s] = s >= r && !done[s] && same_fit(c, r, s))) done[s] = true;
        note_fit(c, r);
    }
    dnn_free(done);
}

/* Only DNN_INFO: ranks that compute on CPUs may share a GPU. */
static void check_gpus(struct check *c, int host)
{
    for (int gpu = 0; gpu < DNN_TOPO_GPUS; gpu++) {
        struct dnn_buf ranks = {0};
        int users = 0;

        for (int r = 0; r < c->n; r++) {
            c->mark[r] = same_host(c, host, r) && c->place[r].gpu_on_node == gpu;
            users += c->mark[r];
        }
        if (users < 2) continue;
        add_ranks(&ranks, c);
        note(c, DNN_INFO, "%s: %s share GPU %d", c->request[host].host, ranks.text,
             gpu);
        dnn_buf_free(&ranks);
    }
}

void dnn_topo_make_report(const struct dnn_topo_request *requests,
                          const struct dnn_place *places, int count,
                          struct dnn_topo_report *out)
{
    struct check c = {requests, places, count, NULL, out};

    memset(out, 0, sizeof *out);
    c.mark = dnn_alloc((size_t)count * sizeof *c.mark);
    for (int r = 0; r < count; r++) {
        bool first = true;

        for (int s = 0; s < r && first; s++)
            first = !same_host(&c, s, r);
        if (!first) continue;
        check_host(&c, r);
        check_gpus(&c, r);
    }
    check_threads(&c);
    dnn_free(c.mark);
}

void dnn_topo_free_report(struct dnn_topo_report *report)
{
    for (int i = 0; i < report->count; i++)
        dnn_free(report->note[i].text);
    dnn_free(report->note);
    memset(report, 0, sizeof *report);
}
