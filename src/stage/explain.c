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
    fprintf(f, ", %d thread%s%s:\n", threads, threads == 1 ? "" : "s",
            e->what->ranks == 1 ? "" : " each");
    dnn_replica_print_cuts(stage->replica, comm, f);
    dnn_comm_close(comm);
    return fclose(f) == 0 ? 0 : no_memory(err);
}

static int describe_model(const struct dnn_model *m, char **out, struct dnn_err *err)
{
    size_t len;
    FILE *f = open_memstream(out, &len);

    if (f == NULL) return no_memory(err);
    fprintf(f, ": %s, micro-batches of %lld of %lld sample%s%s\n",
            dnn_model_role_name(m->opts.role), (long long)m->opts.batch,
            (long long)m->opts.total, m->opts.total == 1 ? "" : "s",
            m->opts.owner == NULL
                ? ""
                : "; weights and other memory are shared with a plan above");
    dnn_model_print(m, f);
    return fclose(f) == 0 ? 0 : no_memory(err);
}

static void print_bytes(const struct dnn_stage *stage, struct dnn_buf *out)
{
    char a[32], b[32];
    size_t batches, available = dnn_model_available();
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

/* Add the plans of the ranks of a group, of which one has opened the stage. */
static int add_group(struct explain *e, const struct dnn_stage *stage,
                     struct item *group, struct dnn_err *err)
{
    const struct dnn_model *m;
    int ranks = e->what->ranks, last = -1;

    print_bytes(stage, &group->out);
    dnn_buf_add(&group->out, "  plans:");
    for (int i = 0; (m = dnn_replica_nth_model(stage->replica, i)) != NULL; i++) {
        char *text = NULL;
        int rc = describe_model(m, &text, err);

        if (rc < 0) {
            free(text);
            return rc;
        }
        struct item *plan = find(&e->plans, text, ranks);
        int number = (int)(plan - e->plans.item);
        for (int r = 0; r < ranks; r++)
            if (group->rank[r]) add_rank(plan, r);
        if (number != last) dnn_buf_add(&group->out, " %d", number + 1);
        last = number;
    }
    dnn_buf_add(&group->out, "\n");
    return 0;
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
        fputs(e->plans.item[i].text, where);
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
