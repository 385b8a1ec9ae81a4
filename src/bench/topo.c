/* topo.c - bind all ranks and print the binding.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "bench/bench.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "session/session.h"

#include <string.h>

struct work {
    const struct dnn_bench_topo *cfg;
    FILE *where;
    struct dnn_session session; /* owned */
    int overlaps;               /* rank 0: pairs of ranks that share cores */
};

/* "by srun --mpi=pmix", "by mpirun" or "directly". */
static const char *launch_text(const struct dnn_slurm *s, struct dnn_buf *out)
{
    if (s->launcher == DNN_LAUNCH_SRUN)
        dnn_buf_add(out, "by srun --mpi=%s", s->mpi);
    else
        dnn_buf_add(out, "%s",
                    s->launcher == DNN_LAUNCH_MPIRUN ? "by mpirun" : "directly");
    return out->text;
}

/* Whether a rank is the first one on its host. */
static bool first_on_host(const struct work *w, int rank)
{
    for (int r = 0; r < rank; r++)
        if (strcmp(w->session.requests[r].host, w->session.requests[rank].host) == 0)
            return false;
    return true;
}

struct sums {
    int nodes, cores, used;
};

/* Sum the cores of all nodes; a core with several ranks is counted once. */
static struct sums add_up(const struct work *w)
{
    struct sums sum = {0};

    for (int lead = 0; lead < w->session.size; lead++) {
        struct dnn_topo_set used = {{0}};

        if (!first_on_host(w, lead)) continue;
        for (int r = lead; r < w->session.size; r++) {
            if (strcmp(w->session.requests[r].host, w->session.requests[lead].host) !=
                0)
                continue;
            for (size_t i = 0; i < sizeof used.word / sizeof *used.word; i++)
                used.word[i] |= w->session.places[r].cores.word[i];
        }
        sum.nodes++;
        sum.cores += w->session.places[lead].node_cores;
        sum.used += dnn_topo_count(&used);
    }
    return sum;
}

/* ---- the table ---- */

enum { RANK, HOST, PACKAGE, NUMA, CORES, MEMORY, GPU, THREADS, BOUND, PINNED, COLUMNS };

static const struct {
    const char *title;
    bool right;
} columns[COLUMNS] = {
    [RANK] = {"rank",               true },
      [HOST] = {"host",               false},
    [PACKAGE] = {"package",            true },
      [NUMA] = {"numa",               true },
    [CORES] = {"cores",              false},
      [MEMORY] = {"memory local/total", false},
    [GPU] = {"gpu",                true },
      [THREADS] = {"threads",            true },
    [BOUND] = {"bound cpus",         false},
      [PINNED] = {"pinned",             true },
};

static void fill_bound(const struct dnn_topo_bound *b, const struct dnn_place *p,
                       struct dnn_buf *cell)
{
    if (!b->requested) {
        dnn_buf_add(&cell[BOUND], "-");
        dnn_buf_add(&cell[PINNED], "-");
        return;
    }
    dnn_topo_list(&cell[BOUND], &b->pus);
    if (!b->exact) dnn_buf_add(&cell[BOUND], " (refused)");
    if (p->pu[0] < 0)
        dnn_buf_add(&cell[PINNED], "-");
    else
        dnn_buf_add(&cell[PINNED], "%d/%d", b->pinned, p->threads);
}

static void fill_row(const struct work *w, int rank, struct dnn_buf *cell)
{
    const struct dnn_place *p = &w->session.places[rank];
    char local[32], total[32];

    dnn_buf_add(&cell[RANK], "%d", rank);
    dnn_buf_add(&cell[HOST], "%s", w->session.requests[rank].host);
    dnn_topo_list(&cell[PACKAGE], &p->packages);
    dnn_topo_list(&cell[NUMA], &p->numas);
    dnn_topo_list(&cell[CORES], &p->cores);
    dnn_buf_add(&cell[MEMORY], "%s / %s",
                dnn_text_bytes(local, sizeof local, (double)p->local_memory),
                dnn_text_bytes(total, sizeof total, (double)p->total_memory));
    if (p->gpu_on_node < 0)
        dnn_buf_add(&cell[GPU], "-");
    else
        dnn_buf_add(&cell[GPU], "%d", p->gpu_on_node);
    dnn_buf_add(&cell[THREADS], "%d", p->threads);
    fill_bound(&w->session.bounds[rank], p, cell);
}

static void print_cells(FILE *where, const struct dnn_buf *cell, const int *width)
{
    for (int c = 0; c < COLUMNS; c++) {
        int pad = c == COLUMNS - 1 && !columns[c].right ? 0 : width[c];

        fprintf(where, "%s%*s", c == 0 ? "" : "  ", columns[c].right ? pad : -pad,
                cell[c].text);
    }
    fputc('\n', where);
}

static void print_table(const struct work *w)
{
    struct dnn_buf(*cell)[COLUMNS] =
        dnn_alloc((size_t)(w->session.size + 1) * sizeof *cell);
    int width[COLUMNS] = {0};

    for (int c = 0; c < COLUMNS; c++)
        dnn_buf_add(&cell[0][c], "%s", columns[c].title);
    for (int r = 0; r < w->session.size; r++)
        fill_row(w, r, cell[r + 1]);
    for (int r = 0; r <= w->session.size; r++)
        for (int c = 0; c < COLUMNS; c++)
            if ((int)cell[r][c].len > width[c]) width[c] = (int)cell[r][c].len;
    for (int r = 0; r <= w->session.size; r++) {
        print_cells(w->where, cell[r], width);
        for (int c = 0; c < COLUMNS; c++)
            dnn_buf_free(&cell[r][c]);
    }
    dnn_free(cell);
}

static void print_header(const struct work *w)
{
    const struct dnn_slurm *s = &w->session.slurm;
    struct dnn_buf launch = {0};

    fprintf(w->where, "%s %s, topology and binding\n", PACKAGE_NAME, PACKAGE_VERSION);
    fprintf(w->where, "job     ");
    if (s->where == DNN_SLURM_NONE)
        fprintf(w->where, "none");
    else
        fprintf(w->where, "%ld", s->job);
    if (s->array_task >= 0 && s->array_job >= 0)
        fprintf(w->where, " (%ld_%ld)", s->array_job, s->array_task);
    if (s->where == DNN_SLURM_STEP) fprintf(w->where, ", step %ld", s->step);
    if (s->where != DNN_SLURM_NONE && s->name != NULL)
        fprintf(w->where, ", \"%s\"", s->name);
    if (s->restarts > 0) fprintf(w->where, ", restart %d", s->restarts);
    fprintf(w->where, "\nhosts  ");
    for (int r = 0, n = 0; r < w->session.size; r++)
        if (first_on_host(w, r))
            fprintf(w->where, "%s %s", n++ > 0 ? "," : "", w->session.requests[r].host);
    fprintf(w->where, "\nstarted %s; %s\n", launch_text(s, &launch),
            dnn_comm_version(w->session.comm));
    fprintf(w->where, "bind    %s\n\n",
            dnn_choice_name(dnn_topo_policies, w->cfg->bind));
    dnn_buf_free(&launch);
}

static void print_summary(const struct work *w)
{
    struct sums sum = add_up(w);

    fprintf(w->where, "\n%d rank%s on %d node%s, %d of %d core%s used, overlaps: ",
            w->session.size, w->session.size == 1 ? "" : "s", sum.nodes,
            sum.nodes == 1 ? "" : "s", sum.used, sum.cores, sum.cores == 1 ? "" : "s");
    if (w->overlaps == 0)
        fprintf(w->where, "none\n");
    else
        fprintf(w->where, "%d pair%s of ranks\n", w->overlaps,
                w->overlaps == 1 ? "" : "s");
}

/* ---- JSON ---- */

static void print_text(FILE *where, const char *key, const char *text,
                       const char *after)
{
    struct dnn_buf quoted = {0};

    if (text != NULL) dnn_json_quoted(&quoted, text);
    fprintf(where, "\"%s\": %s%s", key, text == NULL ? "null" : quoted.text, after);
    dnn_buf_free(&quoted);
}

/* Print a number; negative: null. */
static void print_number(FILE *where, const char *key, long number)
{
    if (number < 0)
        fprintf(where, "\"%s\": null, ", key);
    else
        fprintf(where, "\"%s\": %ld, ", key, number);
}

static void print_set(FILE *where, const char *key, const struct dnn_topo_set *set)
{
    const char *comma = "";

    fprintf(where, "\"%s\": [", key);
    for (int n = 0; n < DNN_TOPO_PUS; n++)
        if (dnn_topo_has(set, n)) {
            fprintf(where, "%s%d", comma, n);
            comma = ", ";
        }
    fprintf(where, "], ");
}

static void print_json_rank(const struct work *w, int rank)
{
    const struct dnn_place *p = &w->session.places[rank];
    const struct dnn_topo_bound *b = &w->session.bounds[rank];
    FILE *f = w->where;

    fprintf(f, "    {\"rank\": %d, ", rank);
    print_text(f, "host", w->session.requests[rank].host, ", ");
    print_set(f, "packages", &p->packages);
    print_set(f, "numa_nodes", &p->numas);
    print_set(f, "cores", &p->cores);
    print_set(f, "granted_cpus", &w->session.requests[rank].granted);
    print_set(f, "cpus", &p->pus);
    fprintf(f, "\"local_memory\": %llu, \"total_memory\": %llu, ",
            (unsigned long long)p->local_memory, (unsigned long long)p->total_memory);
    print_number(f, "gpu", p->gpu);
    print_number(f, "gpu_on_node", p->gpu_on_node);
    fprintf(f, "\"threads\": %d, \"thread_cpus\": [", p->threads);
    for (int t = 0; t < p->threads && p->pu[t] >= 0; t++)
        fprintf(f, "%s%d", t > 0 ? ", " : "", p->pu[t]);
    fprintf(f, "], ");
    print_set(f, "bound_cpus", &b->pus);
    fprintf(f, "\"pinned\": %d, \"memory_bound\": %s}", b->pinned,
            b->memory ? "true" : "false");
}

static void print_json(const struct work *w)
{
    struct sums sum = add_up(w);
    struct dnn_buf launch = {0};
    FILE *f = w->where;

    fprintf(f, "{\n  \"version\": \"%s\",\n  ", PACKAGE_VERSION);
    print_number(f, "job", w->session.slurm.job);
    print_number(f, "step", w->session.slurm.step);
    print_text(f, "name", w->session.slurm.name, ",\n  ");
    print_text(f, "started", launch_text(&w->session.slurm, &launch), ", ");
    print_text(f, "comm", dnn_comm_version(w->session.comm), ",\n  ");
    print_text(f, "bind", dnn_choice_name(dnn_topo_policies, w->cfg->bind), ",\n");
    fprintf(f, "  \"size\": %d, \"nodes\": %d, \"cores\": %d, \"cores_used\": %d, ",
            w->session.size, sum.nodes, sum.cores, sum.used);
    fprintf(f, "\"overlaps\": %d,\n  \"ranks\": [\n", w->overlaps);
    for (int r = 0; r < w->session.size; r++) {
        print_json_rank(w, r);
        fprintf(f, "%s\n", r + 1 < w->session.size ? "," : "");
    }
    fprintf(f, "  ]\n}\n");
    dnn_buf_free(&launch);
}

/* ---- all ---- */

static void print(struct work *w)
{
    w->overlaps = dnn_session_report(&w->session);
    if (w->cfg->json) {
        print_json(w);
    } else {
        print_header(w);
        print_table(w);
        print_summary(w);
    }
}

int dnn_bench_topo(const struct dnn_bench_topo *cfg, FILE *where, struct dnn_err *err)
{
    struct work w = {.cfg = cfg, .where = where};

    DNN_TRY(dnn_session_open((int)cfg->threads, (enum dnn_topo_policy)cfg->bind,
                             &w.session, err));
    if (dnn_comm_rank(w.session.comm) == 0) print(&w);
    dnn_session_close(&w.session);
    return 0;
}
