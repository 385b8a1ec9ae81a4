/* report.c - look over everybody's places and say what is wrong with them.
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

/* More pairs than this on one node are only counted. */
enum { MAX_PAIRS = 4 };

struct job {
    const struct dnn_topo_request *request;
    const struct dnn_place *place;
    int n;
    bool *mark; /* owned [n]: the ranks a message is about */
    struct dnn_topo_report *out;
};

static DNN_PRINTF(3, 4) void note(struct job *j, int level, const char *fmt, ...)
{
    struct dnn_topo_report *out = j->out;
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

/* "rank 3", "ranks 0 and 1" or "ranks 0-3,7": those marked. */
static void add_ranks(struct dnn_buf *out, const struct job *j)
{
    int n = 0, first = -1, last = -1;
    const char *comma = "";

    for (int r = 0; r < j->n; r++)
        if (j->mark[r]) {
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

        if (!j->mark[r]) continue;
        while (r < last && j->mark[r + 1])
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

static bool same_host(const struct job *j, int a, int b)
{
    return strcmp(j->request[a].host, j->request[b].host) == 0;
}

/* Why two ranks have a core in common. */
enum why {
    NOTHING,
    GRANTS,   /* their masks overlap without being the same       */
    SIBLINGS, /* each has other hardware threads of it            */
    CROWDED,  /* there are more ranks than cores                  */
    INHERITED /* they were told to take the shared mask as it is  */
};

static enum why why(const struct job *j, int a, int b)
{
    const struct dnn_topo_request *x = &j->request[a], *y = &j->request[b];

    if (!dnn_topo_meet(&j->place[a].cores, &j->place[b].cores, NULL)) return NOTHING;
    if (!dnn_topo_meet(&x->granted, &y->granted, NULL)) return SIBLINGS;
    if (!dnn_topo_same(&x->granted, &y->granted)) return GRANTS;
    return x->policy == DNN_BIND_AUTO && y->policy == DNN_BIND_AUTO ? CROWDED
                                                                    : INHERITED;
}

static bool is_off(const struct job *j, int a, int b)
{
    return j->request[a].policy == DNN_BIND_OFF && j->request[b].policy == DNN_BIND_OFF;
}

static void say_pair(struct job *j, int a, int b)
{
    struct dnn_buf cpus = {0};
    struct dnn_topo_set both;

    dnn_topo_meet(&j->request[a].granted, &j->request[b].granted, &both);
    dnn_topo_list(&cpus, &both);
    note(
        j, DNN_WARN,
        "%s: ranks %d and %d were given overlapping CPUs (%s) and will slow each other "
        "down; give each rank its own (srun --cpu-bind=cores) or all of them the same "
        "(srun --cpu-bind=none)",
        j->request[a].host, a, b, cpus.text);
    dnn_buf_free(&cpus);
}

/* One message per host and reason, over all ranks concerned. */
static void say_shared(struct job *j, int host, enum why reason)
{
    static const char *const advice[] = {
        [SIBLINGS] = "each was given some of the hardware threads; srun "
                     "--hint=nomultithread gives whole cores",
        [CROWDED] = "there are fewer cores than ranks; ask for more cores or start "
                    "fewer ranks",
        [INHERITED] = "they were started with the same mask; --bind auto divides it",
    };
    struct dnn_topo_set cores = {{0}};
    struct dnn_buf text = {0};
    bool any = false;

    memset(j->mark, 0, (size_t)j->n * sizeof *j->mark);
    for (int a = host; a < j->n; a++)
        for (int b = a + 1; same_host(j, host, a) && b < j->n; b++) {
            struct dnn_topo_set both;

            if (!same_host(j, a, b) || is_off(j, a, b) || why(j, a, b) != reason)
                continue;
            dnn_topo_meet(&j->place[a].cores, &j->place[b].cores, &both);
            for (int n = 0; n < DNN_TOPO_PUS; n++)
                if (dnn_topo_has(&both, n)) dnn_topo_add(&cores, n);
            j->mark[a] = j->mark[b] = any = true;
        }
    if (!any) return;
    add_ranks(&text, j);
    dnn_buf_add(&text, " share ");
    add_cores(&text, &cores);
    note(j, DNN_WARN, "%s: %s: %s", j->request[host].host, text.text, advice[reason]);
    dnn_buf_free(&text);
}

/* Overlaps on the host whose first rank is given. */
static void look_at_host(struct job *j, int host)
{
    int pairs = 0;
    bool seen[INHERITED + 1] = {false};

    for (int a = host; a < j->n; a++)
        for (int b = a + 1; same_host(j, host, a) && b < j->n; b++) {
            if (!same_host(j, a, b)) continue;
            enum why reason = why(j, a, b);

            if (reason == NOTHING) continue;
            j->out->overlaps++;
            seen[reason] = true;
            if (reason == GRANTS && !is_off(j, a, b) && pairs++ < MAX_PAIRS)
                say_pair(j, a, b);
        }
    if (pairs > MAX_PAIRS)
        note(j, DNN_WARN, "%s: %d more pairs of ranks were given overlapping CPUs",
             j->request[host].host, pairs - MAX_PAIRS);
    for (enum why reason = SIBLINGS; reason <= INHERITED; reason++)
        if (seen[reason]) say_shared(j, host, reason);
}

/* How a rank's threads and cores fit: 0 well, else which message. */
enum fit { FITS, USES_SIBLINGS, TOO_MANY_THREADS, TOO_FEW_CPUS };

static enum fit fit(const struct job *j, int r)
{
    const struct dnn_topo_request *request = &j->request[r];
    int pus = dnn_topo_count(&j->place[r].pus);

    if (request->want == DNN_WANT_CPUS)
        return request->threads > pus ? TOO_FEW_CPUS : FITS;
    if (request->want != DNN_WANT_THREADS || request->threads <= j->place[r].ncores)
        return FITS;
    return request->threads > pus ? TOO_MANY_THREADS : USES_SIBLINGS;
}

static bool alike(const struct job *j, int a, int b)
{
    return fit(j, a) == fit(j, b) && j->request[a].threads == j->request[b].threads &&
           j->place[a].ncores == j->place[b].ncores &&
           dnn_topo_count(&j->place[a].pus) == dnn_topo_count(&j->place[b].pus);
}

static void say_fit(struct job *j, int r)
{
    int want = j->request[r].threads, cores = j->place[r].ncores;
    int pus = dnn_topo_count(&j->place[r].pus);
    const char *s = cores == 1 ? "" : "s";
    struct dnn_buf who = {0};

    add_ranks(&who, j);
    switch (fit(j, r)) {
    case FITS:
        break;
    case USES_SIBLINGS:
        note(j, DNN_INFO,
             "%s: %d threads on %d core%s with %d hardware threads; --threads %d uses "
             "one per core",
             who.text, want, cores, s, pus, cores);
        break;
    case TOO_MANY_THREADS:
        note(j, DNN_WARN,
             "%s: %d threads but only %d core%s, so threads will take turns; ask for "
             "more (srun --cpus-per-task=%d) or use --threads %d",
             who.text, want, cores, s, want, cores);
        break;
    case TOO_FEW_CPUS:
        note(j, DNN_WARN,
             "%s: Slurm was asked for %d CPUs per task, but there are %d here; give "
             "srun the same --cpus-per-task=%d as the job",
             who.text, want, pus, want);
        break;
    }
    dnn_buf_free(&who);
}

static void look_at_threads(struct job *j)
{
    bool *done = dnn_alloc((size_t)j->n * sizeof *done);

    for (int r = 0; r < j->n; r++) {
        if (done[r] || fit(j, r) == FITS) continue;
        for (int s = 0; s < j->n; s++)
            if ((j->mark[s] = s >= r && !done[s] && alike(j, r, s))) done[s] = true;
        say_fit(j, r);
    }
    dnn_free(done);
}

/* Sharing a GPU is slow but may be meant: a run on CPUs does not care. */
static void look_at_gpus(struct job *j, int host)
{
    for (int gpu = 0; gpu < DNN_TOPO_GPUS; gpu++) {
        struct dnn_buf who = {0};
        int users = 0;

        for (int r = 0; r < j->n; r++) {
            j->mark[r] = same_host(j, host, r) && j->place[r].gpu_on_node == gpu;
            users += j->mark[r];
        }
        if (users < 2) continue;
        add_ranks(&who, j);
        note(j, DNN_INFO, "%s: %s share GPU %d", j->request[host].host, who.text, gpu);
        dnn_buf_free(&who);
    }
}

void dnn_topo_make_report(const struct dnn_topo_request *requests,
                          const struct dnn_place *places, int count,
                          struct dnn_topo_report *out)
{
    struct job j = {requests, places, count, NULL, out};

    memset(out, 0, sizeof *out);
    j.mark = dnn_alloc((size_t)count * sizeof *j.mark);
    for (int r = 0; r < count; r++) {
        bool first = true;

        for (int s = 0; s < r && first; s++)
            first = !same_host(&j, s, r);
        if (!first) continue;
        look_at_host(&j, r);
        look_at_gpus(&j, r);
    }
    look_at_threads(&j);
    dnn_free(j.mark);
}

void dnn_topo_free_report(struct dnn_topo_report *report)
{
    for (int i = 0; i < report->count; i++)
        dnn_free(report->note[i].text);
    dnn_free(report->note);
    memset(report, 0, sizeof *report);
}
