/* explain.c - print what each rank would run.
 *
 * The stage is opened as in a run, but as a dry run.  Ranks whose batches are cut in
 * the same way, and that have the same number of threads, run the same plans.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "stage/stage_impl.h"

#include "base/mem.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ranks that have something in common, and its text. */
struct item {
    char *text;         /* owned: what distinguishes it */
    struct dnn_buf out; /* more text                    */
    bool *rank;         /* owned: by rank               */
    int nranks, first;
};

struct items {
    struct item *item; /* owned */
    int n;
    size_t cap;
};

struct explain {
    const struct dnn_stage_explain *what;
    struct dnn_session session;
    struct items groups, plans;
};

/* ---- ranks ---- */

/* The item of this text; it takes the text. */
static struct item *find(struct items *all, char *text, int ranks)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->item[i].text, text) == 0) {
            free(text);
            return &all->item[i];
        }
    all->item = dnn_grow(all->item, &all->cap, (size_t)all->n + 1, sizeof *all->item);
    struct item *item = &all->item[all->n++];
    *item = (struct item){.text = text, .rank = dnn_alloc((size_t)ranks)};
    return item;
}

static void add_rank(struct item *item, int rank)
{
    if (item->nranks == 0) item->first = rank;
    item->nranks += !item->rank[rank];
    item->rank[rank] = true;
}

static void free_items(struct items *all)
{
    for (int i = 0; i < all->n; i++) {
        free(all->item[i].text);
        dnn_buf_free(&all->item[i].out);
        dnn_free(all->item[i].rank);
    }
    dnn_free(all->item);
}

/* "rank 3", "ranks 0-2,5". */
static void print_ranks(const struct item *item, int ranks, FILE *where)
{
    fprintf(where, "rank%s", item->nranks == 1 ? " " : "s ");
    for (int r = 0, last; r < ranks; r = last + 1) {
        last = r;
        if (!item->rank[r]) continue;
        while (last + 1 < ranks && item->rank[last + 1])
            last++;
        fprintf(where, "%s%d", r == item->first ? "" : ",", r);
        if (last > r) fprintf(where, "-%d", last);
    }
}

/* ---- one rank ---- */

static int no_memory(struct dnn_err *err)
{
    return dnn_fail(err, DNN_ENOMEM, "no memory for text: %s", strerror(errno));
}

/* What decides the plans of a rank, as text. */
static int describe_rank(const struct explain *e, const struct dnn_stage *stage,
                         int rank, char **out, struct dnn_err *err)
{
    int threads = e->session.places[rank].threads;
    size_t len;
    FILE *f = open_memstream(out, &len);

    if (f == NULL) return no_memory(err);
    struct dnn_comm *comm = dnn_comm_pretend(e->what->ranks, rank);
    fprintf(f, ", %d thread%s per rank:\n", threads, threads == 1 ? "" : "s");
    dnn_replica_print_cuts(stage->replica, comm, f);
    dnn_comm_close(comm);
    return fclose(f) == 0 ? 0 : no_memory(err);
}

/* What distinguishes the plans of two models. */
static int describe_model(const struct dnn_model *m, char **out, struct dnn_err *err)
{
    size_t len;
    FILE *f = open_memstream(out, &len);

    if (f == NULL) return no_memory(err);
    fprintf(f, ": %s, micro-batches of %lld sample%s\n",
            dnn_model_role_name(m->opts.role), (long long)m->opts.batch,
            m->opts.batch == 1 ? "" : "s");
    dnn_model_print_steps(m, f);
    return fclose(f) == 0 ? 0 : no_memory(err);
}

/* Memory and work of the first model with a plan; others may share more of it. */
static int describe_memory(const struct dnn_model *m, struct dnn_buf *out,
                           struct dnn_err *err)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL) return no_memory(err);
    dnn_model_print_memory(m, f);
    if (m->opts.owner != NULL)
        fprintf(f, "weights, and more where possible, are shared with a plan above\n");
    bool good = fclose(f) == 0;
    if (good) dnn_buf_bytes(out, text, len);
    free(text);
    return good ? 0 : no_memory(err);
}

static void print_bytes(const struct dnn_stage *stage, struct dnn_buf *out)
{
    char a[32], b[32];
    size_t batches, available = dnn_memory_available();
    size_t all = dnn_stage_bytes(stage, &batches);

    dnn_buf_add(out,
                "  memory per rank: %s (%zu bytes), of which %s for reading ahead\n",
                dnn_text_bytes(a, sizeof a, (double)all), all,
                dnn_text_bytes(b, sizeof b, (double)batches));
    if (stage->config->memory_limit == 0 && all > available)
        dnn_buf_add(
            out,
            "  only %s are available here: a run would recompute activations, or "
            "fail\n",
            dnn_text_bytes(a, sizeof a, (double)available));
}

/* Find or add the plan of a model; *number: its index. */
static int add_plan(struct explain *e, const struct dnn_model *m,
                    const struct item *group, int *number, struct dnn_err *err)
{
    char *text = NULL;
    int rc = describe_model(m, &text, err);

    if (rc < 0) {
        free(text);
        return rc;
    }
    struct item *plan = find(&e->plans, text, e->what->ranks);
    if (plan->nranks == 0) DNN_TRY(describe_memory(m, &plan->out, err));
    for (int r = 0; r < e->what->ranks; r++)
        if (group->rank[r]) add_rank(plan, r);
    *number = (int)(plan - e->plans.item);
    return 0;
}

/* Add the plans of the ranks of a group, of which one has opened the stage. */
static int add_group(struct explain *e, const struct dnn_stage *stage,
                     struct item *group, struct dnn_err *err)
{
    const struct dnn_model *m;
    int *models = NULL, known = 0, number; /* models: how many have each plan */
    size_t cap = 0;
    int rc = 0;

    print_bytes(stage, &group->out);
    for (int i = 0; (m = dnn_replica_nth_model(stage->replica, i)) != NULL; i++) {
        rc = add_plan(e, m, group, &number, err);
        if (rc < 0) break;
        models = dnn_grow(models, &cap, (size_t)e->plans.n, sizeof *models);
        while (known < e->plans.n)
            models[known++] = 0;
        models[number]++;
    }
    dnn_buf_add(&group->out, "  plans:");
    for (int p = 0; p < known; p++) {
        if (models[p] > 0) dnn_buf_add(&group->out, " %d", p + 1);
        if (models[p] > 1) dnn_buf_add(&group->out, " (%d models)", models[p]);
    }
    dnn_buf_add(&group->out, "\n");
    dnn_free(models);
    return rc;
}

/* ---- all ranks ---- */

static void print_head(const struct explain *e, const struct dnn_stage *stage)
{
    const struct dnn_config *config = stage->config;
    FILE *where = e->what->where;

    fprintf(where, "%d rank%s, %s, backend %s%s%s\n", e->what->ranks,
            e->what->ranks == 1 ? "" : "s",
            dnn_dtype_name((enum dnn_dtype)config->precision),
            dnn_replica_nth_model(stage->replica, 0)->backend.name,
            config->deterministic ? ", deterministic" : "",
            e->what->stage.inference ? ", inference only" : "");
    if (stage->mode == DNN_CONFIG_NOTHING) fprintf(where, "no data are configured\n");
    if (stage->unreadable.code != 0)
        fprintf(where, "the data cannot be read, so batches are as configured: %s\n",
                stage->unreadable.text);
    const struct dnn_feed *const feed[] = {stage->train.feed, stage->eval.feed,
                                           stage->separate_test.feed};
    static const char *const name[] = {"training", "evaluation", "test"};
    for (int i = 0; i < DNN_STAGE_PARTS; i++)
        if (feed[i] != NULL)
            fprintf(where, "%s samples: %lld, in %lld batch%s\n", name[i],
                    (long long)dnn_feed_count(feed[i]),
                    (long long)dnn_feed_batches(feed[i]),
                    dnn_feed_batches(feed[i]) == 1 ? "" : "es");
}

/* Find the groups of ranks, with the stage of rank 0. */
static int find_groups(struct explain *e, const struct dnn_stage *stage,
                       struct dnn_err *err)
{
    for (int r = 0; r < e->what->ranks; r++) {
        char *text = NULL;
        int rc = describe_rank(e, stage, r, &text, err);

        if (rc < 0) {
            free(text);
            return rc;
        }
        add_rank(find(&e->groups, text, e->what->ranks), r);
    }
    return 0;
}

static void print_all(const struct explain *e)
{
    FILE *where = e->what->where;

    for (int i = 0; i < e->groups.n; i++) {
        const struct item *g = &e->groups.item[i];

        print_ranks(g, e->what->ranks, where);
        fprintf(where, "%s%s", g->text, g->out.text);
    }
    for (int i = 0; i < e->plans.n; i++) {
        fprintf(where, "\nplan %d of ", i + 1);
        print_ranks(&e->plans.item[i], e->what->ranks, where);
        fprintf(where, "%s%s", e->plans.item[i].text, e->plans.item[i].out.text);
    }
}

/* Open the stage as the current rank of the session, and explain the group. */
static int explain_rank(struct explain *e, int group, struct dnn_err *err)
{
    const struct dnn_stage_explain *what = e->what;
    struct dnn_stage_cfg cfg = what->stage;
    struct dnn_stage *stage = NULL;

    cfg.session = &e->session;
    cfg.dry_run = true;
    DNN_TRY(dnn_stage_open(&cfg, &stage, err));
    int rc = 0;
    if (group == 0) {
        print_head(e, stage);
        rc = find_groups(e, stage, err);
    }
    if (rc == 0) rc = add_group(e, stage, &e->groups.item[group], err);
    if (rc == 0 && group == e->groups.n - 1) {
        print_all(e);
        if (what->also != NULL)
            rc = what->also(what->arg, dnn_replica_model(stage->replica), what->where,
                            err);
    }
    dnn_stage_close(stage);
    return rc;
}

int dnn_stage_explain(const struct dnn_stage_explain *what, struct dnn_err *err)
{
    struct explain e = {.what = what};

    DNN_TRY(dnn_session_pretend((int)what->stage.config->threads, what->ranks,
                                &e.session, err));
    int rc = explain_rank(&e, 0, err);
    for (int g = 1; g < e.groups.n && rc == 0; g++) {
        dnn_session_pretend_rank(&e.session, e.groups.item[g].first);
        rc = explain_rank(&e, g, err);
    }
    free_items(&e.groups);
    free_items(&e.plans);
    dnn_session_close(&e.session);
    return rc;
}
