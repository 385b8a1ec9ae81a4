/* run.c - a preparation from its beginning to its end.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "base/file.h"
#include "base/stop.h"
#include "base/log.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- files ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every file of the sources once. */
static void list_files(struct dnn_prepare_state *s)
{
    int64_t total = 0, n = 0;

    for (int i = 0; i < s->origins.n; i++)
        total += s->origins.at[i].source->nfiles;
    s->file = dnn_alloc((size_t)(total + 1) * sizeof *s->file);
    for (int i = 0; i < s->origins.n; i++)
        for (int64_t f = 0; f < s->origins.at[i].source->nfiles; f++)
            s->file[n++] = s->origins.at[i].source->file[f];
    qsort(s->file, (size_t)n, sizeof *s->file, by_text);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || strcmp(s->file[i], s->file[s->nfiles - 1]) != 0)
            s->file[s->nfiles++] = s->file[i];
}

/* What killed writers of this dataset left: we have the lock, so none is alive. */
static int remove_parts(const char *to, struct dnn_err *err)
{
    const char *slash = strrchr(to, '/'), *name = slash == NULL ? to : slash + 1;
    char *dir = slash == NULL ? dnn_strdup(".")
                              : dnn_strndup(to, slash == to ? 1 : (size_t)(slash - to));
    char *start = dnn_format(".%s.", name);
    DIR *d = opendir(dir);
    int rc = 0;

    for (struct dirent *e; rc == 0 && d != NULL && (e = readdir(d)) != NULL;) {
        size_t len = strlen(e->d_name);

        if (strncmp(e->d_name, start, strlen(start)) != 0 || len < 5 ||
            strcmp(e->d_name + len - 5, ".part") != 0)
            continue;
        char *path = dnn_format("%s/%s", dir, e->d_name);
        rc = dnn_file_remove_tree(path, err);
        dnn_free(path);
    }
    if (d != NULL) closedir(d);
    dnn_free(start);
    dnn_free(dir);
    return rc;
}

/* ---- what is there already ---- */

/* Whether the dataset is what we would make. */
static bool is_ours(const char *to, const char *print)
{
    struct dnn_dataset *dataset = NULL;
    struct dnn_err why = {0};
    bool ours = false;

    if (dnn_dataset_open(NULL, to, 1, &dataset, &why) < 0) return false;
    const char *text = dnn_dataset_info(dataset)->provenance;
    char *want = dnn_format("\"fingerprint\": \"%s\"", print);
    ours = text != NULL && strstr(text, want) != NULL;
    dnn_free(want);
    dnn_dataset_close(dataset);
    return ours;
}

/* Rank 0: 1 if nothing is left to do. */
static int look(struct dnn_prepare_state *s, struct dnn_err *err)
{
    const char *to = s->prepare->to;
    struct stat st;

    if (lstat(to, &st) != 0) return 0;
    if (!s->opts->restart && is_ours(to, s->work.print)) return 1;
    if (s->opts->replace) return 0;
    return dnn_fail(err, DNN_EIO,
                    "%s: exists already and was made by another configuration or from "
                    "other files; use --replace to replace it",
                    to);
}

/* The fingerprint, known to all; *done: the dataset is there. */
static int begin(struct dnn_prepare_state *s, bool *done, struct dnn_err *err)
{
    bool first = dnn_comm_rank(s->comm) == 0;
    int rc = dnn_origins_open(s->prepare, &s->origins, err);

    rc = dnn_comm_agree(s->comm, rc, err);
    if (rc < 0) return rc;
    list_files(s);
    int64_t there = 0;
    if (first) {
        rc = dnn_record_print(s, s->work.print, err);
        if (rc == 0) there = look(s, err);
        if (there < 0) rc = (int)there;
    }
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    DNN_TRY(dnn_comm_bcast(s->comm, "fingerprint", s->work.print, sizeof s->work.print,
                           0, err));
    DNN_TRY(
        dnn_comm_bcast(s->comm, "checking what is done", &there, sizeof there, 0, err));
    *done = there != 0;
    if (first) {
        char print[33];

        memcpy(print, s->work.print, sizeof print);
        rc = dnn_work_open(&s->work, s->prepare->to, print, s->opts->restart && !*done,
                           err);
        if (rc == 0) rc = remove_parts(s->prepare->to, err);
    } else {
        s->work.dir = dnn_work_dir(s->prepare->to);
    }
    return dnn_comm_agree(s->comm, rc, err);
}

/* ---- the steps, before any piece is made ---- */

/* Who goes where. */
static int deal(struct dnn_prepare_state *s, struct dnn_err *err)
{
    const struct dnn_prepare *p = s->prepare;

    if (p->balance != NULL || (p->split != NULL && p->split->stratify))
        DNN_TRY(dnn_learn_classes(s, err));
    int rc = dnn_parts_make(p, &s->origins, s->class, &s->parts, err);
    return dnn_comm_agree(s->comm, rc, err);
}

static int take_steps(struct dnn_prepare_state *s, struct dnn_err *err)
{
    s->lanes = s->origins.lanes;
    for (int i = 0; i < s->prepare->nsteps; i++) {
        struct dnn_edit *step = &s->prepare->step[i];

        DNN_TRY(dnn_edit_place(step, &s->lanes, err));
        enum dnn_edit_need need = dnn_edit_needs(step);
        if (need != DNN_NEED_NOTHING) DNN_TRY(dnn_learn_stats(s, i, need, err));
        DNN_TRY(dnn_edit_lanes(step, &s->lanes, err));
        if (i == s->prepare->slice) DNN_TRY(dnn_learn_boxes(s, err));
    }
    return 0;
}

/* What the first sample becomes gives the extents nobody has said. */
static int probe(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct dnn_shape shape[DNN_MAX_COLUMNS] = {{0}};
    int rc = 0;

    if (dnn_comm_rank(s->comm) == 0) {
        struct dnn_flow flow;
        struct dnn_sample *sample = NULL;

        dnn_flow_start(&flow, s->prepare, &s->origins, s->prepare->nsteps);
        rc = dnn_flow_load(&flow, s->output[0].sample[0], err);
        if (rc == 0) rc = dnn_flow_box(&flow, 0, &sample, err);
        for (int k = 0; rc == 0 && k < s->lanes.n; k++)
            shape[k] = sample->col[k].shape;
        dnn_flow_stop(&flow);
    }
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    DNN_TRY(dnn_comm_bcast(s->comm, "shapes", shape, sizeof shape, 0, err));
    for (int k = 0; k < s->lanes.n; k++)
        s->lanes.lane[k].column.shape = shape[k];
    return 0;
}

static int plan(struct dnn_prepare_state *s, struct dnn_err *err)
{
    int rc = dnn_outputs_make(s->prepare, &s->parts, s->origins.count, s->class,
                              s->boxes, s->output, err);

    for (int p = 0; rc == 0 && p < s->parts.n; p++)
        if (s->output[p].first[s->output[p].n] == 0)
            rc = dnn_fail(err, DNN_ECONFIG, "the split \"%s\" would be empty",
                          s->parts.name[p]);
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    DNN_TRY(probe(s, err));
    for (int p = 0; p < s->parts.n; p++)
        s->info.split[p].folds =
            strcmp(s->parts.name[p], "train") == 0 ? s->parts.folds : 0;
    return dnn_comm_agree(s->comm, dnn_pieces_plan(s, err), err);
}

/* ---- the whole ---- */

static void say(const struct dnn_prepare_state *s, const char *hash)
{
    struct dnn_buf text = {0};

    for (int p = 0; p < s->info.nsplits; p++)
        dnn_buf_add(&text, "%s%" PRId64 " %s", p > 0 ? ", " : "",
                    s->info.split[p].count, s->info.split[p].name);
    dnn_log(DNN_INFO, "prepare", "%s: samples: %s; hash %s", s->prepare->to, text.text,
            hash);
    dnn_buf_free(&text);
}

static int work(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct dnn_units pieces = {"piece", "preparing", 0, dnn_piece_make, s};
    char hash[33] = "";

    DNN_TRY(deal(s, err));
    DNN_TRY(take_steps(s, err));
    DNN_TRY(plan(s, err));
    pieces.n = s->npieces;
    DNN_TRY(dnn_units_run(&s->work, s->comm, &pieces, err));
    DNN_TRY(dnn_learn_files(s, err));
    DNN_TRY(dnn_assemble(s, hash, err));
    say(s, hash);
    return 0;
}

static void free_state(struct dnn_prepare_state *s)
{
    for (int p = 0; p < DNN_MAX_SPLITS; p++)
        for (int k = 0; k < DNN_MAX_COLUMNS; k++)
            dnn_free(s->info.split[p].col[k].stats);
    dnn_free(s->info.provenance);
    dnn_outputs_free(s->output);
    dnn_parts_free(&s->parts);
    dnn_origins_close(&s->origins);
    dnn_buf_free(&s->files);
    dnn_free(s->file);
    dnn_free(s->piece);
    dnn_free(s->class);
    dnn_free(s->boxes);
    for (int i = 0; i < s->prepare->nsteps; i++)
        dnn_edit_free(&s->prepare->step[i]);
    dnn_free(s);
}

int dnn_prepare_run(struct dnn_prepare *prepare, struct dnn_comm *comm,
                    const struct dnn_prepare_opts *opts, struct dnn_err *err)
{
    struct dnn_prepare_state *s = dnn_alloc(sizeof *s);
    bool done = false;

    s->prepare = prepare;
    s->comm = comm;
    s->opts = opts;
    s->work.lock = -1;
    dnn_stop_watch(true);
    int rc = begin(s, &done, err);
    if (rc == 0 && done)
        dnn_log(DNN_INFO, "prepare",
                "%s: up to date, made by this configuration from these files",
                prepare->to);
    if (rc == 0 && !done) rc = work(s, err);
    /* The same files and words would give the same error: nothing to continue. */
    dnn_work_close(&s->work, rc == 0 || rc == DNN_ECONFIG || rc == DNN_EDATA);
    dnn_stop_unwatch();
    free_state(s);
    return rc;
}
