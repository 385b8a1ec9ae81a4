/* header.c - the header of a run's log: ranks, data, network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "train/log_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "stage/stage.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUPS = 12, /* maximum number of groups of hosts                               */
    RANKS = 8,   /* maximum number of ranks whose cores are printed                 */
    LAYERS = 28, /* maximum number of layers; of larger networks the first HEAD and
                  * the last TAIL are printed */
    HEAD = 14,
    TAIL = 8
};

/* ---- hosts ---- */

/* Hosts with consecutive numbers and the same number of ranks. */
struct group {
    const char *name; /* of the first host                                      */
    size_t stem;      /* length of the name without its number                  */
    long long number, last;
    int digits, ranks, hosts;
};

static struct group group_of(const char *name, int ranks)
{
    struct group g = {.name = name, .stem = strlen(name), .ranks = ranks, .hosts = 1};

    while (g.stem > 0 && isdigit((unsigned char)name[g.stem - 1]) && g.digits < 9) {
        g.stem--;
        g.digits++;
    }
    g.number = g.last = g.digits > 0 ? atoll(name + g.stem) : -1;
    return g;
}

static bool can_join(const struct group *g, const struct group *next)
{
    return g->digits > 0 && g->digits == next->digits && g->ranks == next->ranks &&
           g->stem == next->stem && strncmp(g->name, next->name, g->stem) == 0 &&
           next->number == g->last + 1;
}

static void add_group(struct dnn_buf *out, const struct group *g)
{
    if (g->hosts == 1)
        dnn_buf_add(out, "%s (%d rank%s)", g->name, g->ranks, g->ranks == 1 ? "" : "s");
    else
        dnn_buf_add(out, "%.*s[%0*lld-%0*lld] (%d rank%s each)", (int)g->stem, g->name,
                    g->digits, g->number, g->digits, g->last, g->ranks,
                    g->ranks == 1 ? "" : "s");
}

void dnn_train_list_hosts(int n, const char *const *name, const int *ranks,
                          struct dnn_buf *out)
{
    struct group g = {0};
    int groups = 0, unlisted = 0;

    for (int i = 0; i <= n; i++) {
        struct group next = i < n ? group_of(name[i], ranks[i]) : (struct group){0};

        if (i > 0 && i < n && can_join(&g, &next)) {
            g.last = next.last;
            g.hosts++;
            continue;
        }
        if (i > 0 && groups >= GROUPS) unlisted += g.hosts;
        if (i > 0 && groups < GROUPS) {
            if (groups++ > 0) dnn_buf_add(out, ", ");
            add_group(out, &g);
        }
        g = next;
    }
    if (unlisted > 0)
        dnn_buf_add(out, " and %d more node%s", unlisted, unlisted == 1 ? "" : "s");
}

void dnn_train_hosts(const struct train_run *run, struct dnn_buf *out)
{
    int nodes = dnn_comm_nodes(run->comm);
    int *ranks = dnn_alloc(((size_t)nodes + 1) * sizeof *ranks);
    const char **name = dnn_alloc(((size_t)nodes + 1) * sizeof *name);

    for (int r = 0; r < run->session->size; r++) {
        int node = dnn_comm_node(run->comm, r);

        ranks[node]++;
        name[node] = dnn_comm_host(run->comm, r);
    }
    dnn_train_list_hosts(nodes, name, ranks, out);
    dnn_free(ranks);
    dnn_free(name);
}

/* ---- cores ---- */

static void add_cores(struct dnn_buf *out, const struct dnn_session *s, int rank)
{
    const struct dnn_topo_bound *b = &s->bounds[rank];
    const struct dnn_place *p = &s->places[rank];

    dnn_buf_add(out, "rank %d on core%s ", rank, p->ncores == 1 ? "" : "s");
    dnn_topo_list(out, &p->cores);
    if (!b->exact)
        dnn_buf_add(out, " (not bound: %s)",
                    b->reason[0] != '\0' ? b->reason
                                         : "the system ignored the request");
}

void dnn_train_binding(const struct train_run *run, struct dnn_buf *out)
{
    const struct dnn_session *s = run->session;
    int bound = 0, n = 0;

    for (int r = 0; r < s->size; r++)
        bound += s->bounds[r].requested != 0;
    if (bound == 0) {
        dnn_buf_add(out, "off");
        return;
    }
    for (int r = 0; r < s->size && n < RANKS; r++, n++) {
        if (n > 0) dnn_buf_add(out, ", ");
        add_cores(out, s, r);
    }
    if (s->size > n) dnn_buf_add(out, " and %d more ranks", s->size - n);
}

/* ---- data and network ---- */

static void add_column(struct dnn_buf *out, const struct dnn_column *c, bool first)
{
    char text[DNN_SHAPE_TEXT];

    dnn_buf_add(out, "%s%s", first ? "" : ", ", c->name);
    if (c->kind != DNN_KIND_LABEL)
        dnn_buf_add(out, " %s", dnn_shape_text(text, sizeof text, &c->shape));
    if (c->classes > 0) dnn_buf_add(out, " of %" PRId64 " classes", c->classes);
}

void dnn_train_shapes(const struct train_run *run, struct dnn_buf *out)
{
    const struct dnn_column *col;
    int n = dnn_feed_columns(run->stage->train.feed, &col);
    bool first = true;

    for (int k = 0; k < n; k++) {
        if (col[k].role == DNN_ROLE_EXTRA) continue;
        add_column(out, &col[k], first);
        first = false;
    }
}

static void log_network(const struct train_run *run)
{
    const struct dnn_graph *g = run->config->net.graph;
    char *text = NULL, *remaining, *line;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    int i = 0;

    if (f == NULL) return;
    dnn_graph_print(g, f);
    fclose(f);
    remaining = text;
    /* Skip the totals after the layers: they are logged separately. */
    while ((line = strsep(&remaining, "\n")) != NULL) {
        int layer = i++ - 2;

        if (layer >= g->nnodes) break;
        if (g->nnodes > LAYERS && layer == HEAD)
            dnn_log(DNN_INFO, "train", "... %d more layers (--explain prints all) ...",
                    g->nnodes - HEAD - TAIL);
        if (g->nnodes > LAYERS && layer >= HEAD && layer < g->nnodes - TAIL) continue;
        dnn_log(DNN_INFO, "train", "%s", line);
    }
    free(text);
}

/* ---- the header ---- */

static void log_machine(const struct train_run *run)
{
    const struct dnn_session *session = run->session;
    struct dnn_buf hosts = {0}, cores = {0};

    dnn_train_hosts(run, &hosts);
    dnn_train_binding(run, &cores);
    dnn_log(DNN_INFO, "train",
            "%d rank%s with %d thread%s each on %d node%s: %s; backend: %s%s",
            session->size, session->size == 1 ? "" : "s", session->place.threads,
            session->place.threads == 1 ? "" : "s", dnn_comm_nodes(run->comm),
            dnn_comm_nodes(run->comm) == 1 ? "" : "s", hosts.text,
            dnn_train_model(run)->backend.name,
            run->config->deterministic ? ", deterministic" : "");
    dnn_log(DNN_INFO, "train", "binding: %s", cores.text);
    dnn_buf_free(&hosts);
    dnn_buf_free(&cores);
}

void dnn_train_header(const struct train_run *run, const char *dataset)
{
    const struct dnn_graph *g = run->config->net.graph;
    char bytes[32], params[32], trainable[32];

    dnn_session_report(run->session); /* warnings, with --quiet, too */
    if (!dnn_log_enabled(DNN_INFO, "train")) return;
    dnn_log(DNN_INFO, "train", "%s %s, %s", PACKAGE_NAME, PACKAGE_VERSION,
            dnn_json_name(run->config->file));
    log_machine(run);
    dnn_log(DNN_INFO, "train", "data: %s", dataset);
    log_network(run);
    dnn_log(DNN_INFO, "train", "parameters: %s (%s trainable)",
            dnn_text_count(params, g->params), dnn_text_count(trainable, g->trainable));
    dnn_log(
        DNN_INFO, "train", "memory per rank: %s",
        dnn_text_bytes(bytes, sizeof bytes, (double)dnn_stage_bytes(run->stage, NULL)));
    dnn_log(DNN_INFO, "train",
            "training: %" PRId64 " samples, batch size %" PRId64 ", %" PRId64
            " steps per epoch, %" PRId64 " epochs",
            dnn_feed_count(run->stage->train.feed), run->config->batch_size,
            dnn_feed_batches(run->stage->train.feed), run->config->num_epochs);
    dnn_log(DNN_INFO, "train", "validation: %" PRId64 " samples",
            dnn_train_eval_samples(run));
    dnn_log(DNN_INFO, "train", "run directory: %s", dnn_config_dir(run->config));
}
