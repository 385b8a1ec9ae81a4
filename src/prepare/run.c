/* run.c - runs a preparation.
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

/* Removes what killed writers of this dataset left.  We have the lock, so no writer is
 * running. */
static int remove_partial(const char *to, struct dnn_err *err)
{
    const char *slash = strrchr(to, '/'), *name = slash == NULL ? to : slash + 1;
    char *dir = slash == NULL ? dnn_strdup(".")
                              : dnn_strndup(to, slash == to ? 1 : (size_t)(slash - to));
    char *start = dnn_format(".%s.", name);
    DIR *d = opendir(dir);
    int rc = 0;

    for (struct dirent *e; rc == 0 && d != NULL && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, start, strlen(start)) != 0) continue;
        /* ".NAME.WRITER.part", where WRITER has no dot: ".x.y.WRITER.part" belongs to
         * the dataset x.y, not to x. */
        const char *writer = e->d_name + strlen(start);
        if (strcmp(writer + strcspn(writer, "."), ".part") != 0) continue;
        char *path = dnn_format("%s/%s", dir, e->d_name);
        rc = dnn_file_remove_tree(path, err);
        dnn_free(path);
    }
    if (d != NULL) closedir(d);
    dnn_free(start);
    dnn_free(dir);
    return rc;
}

/* ---- an existing dataset ---- */

/* Whether the dataset was made with this fingerprint. */
static bool is_up_to_date(const char *to, const char *fingerprint)
{
    struct dnn_dataset *dataset = NULL;
    struct dnn_err why = {0};
    bool same = false;

    if (dnn_dataset_open(NULL, to, 1, &dataset, &why) < 0) return false;
    const char *text = dnn_dataset_info(dataset)->provenance;
    char *want = dnn_format("\"fingerprint\": \"%s\"", fingerprint);
    same = text != NULL && strstr(text, want) != NULL;
    dnn_free(want);
    dnn_dataset_close(dataset);
    return same;
}

/* Rank 0: 1 if the dataset exists and is up to date, 0 if it must be made. */
static int check_existing(struct dnn_prepare_state *s, struct dnn_err *err)
{
    const char *to = s->prepare->to;
    struct stat st;

    if (lstat(to, &st) != 0) return 0;
    if (!s->opts->restart && is_up_to_date(to, s->work.fingerprint)) return 1;
    if (s->opts->replace) return 0;
    return dnn_fail(err, DNN_EIO,
                    "%s: exists already and was made by another configuration or from "
                    "other files; use --replace to replace it",
                    to);
}

/* Opens the sources and the work directory.  All ranks get the fingerprint and *done:
 * the dataset is up to date. */
static int begin(struct dnn_prepare_state *s, bool *done, struct dnn_err *err)
{
    bool first = dnn_comm_rank(s->comm) == 0;
    int rc = dnn_origins_open(s->prepare, &s->origins, err);

    rc = dnn_comm_agree(s->comm, rc, err);
    if (rc < 0) return rc;
    list_files(s);
    int64_t exists = 0;
    if (first) {
        rc = dnn_record_fingerprint(s, s->work.fingerprint, err);
        if (rc == 0) exists = check_existing(s, err);
        if (exists < 0) rc = (int)exists;
    }
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    DNN_TRY(dnn_comm_bcast(s->comm, "fingerprint", s->work.fingerprint,
                           sizeof s->work.fingerprint, 0, err));
    DNN_TRY(dnn_comm_bcast(s->comm, "checking what is done", &exists, sizeof exists, 0,
                           err));
    *done = exists != 0;
    if (first) {
        char fingerprint[33];

        memcpy(fingerprint, s->work.fingerprint, sizeof fingerprint);
        rc = dnn_work_open(&s->work, s->prepare->to, fingerprint,
                           s->opts->restart && !*done, err);
        if (rc == 0) rc = remove_partial(s->prepare->to, err);
    } else {
        s->work.dir = dnn_work_dir(s->prepare->to);
    }
    return dnn_comm_agree(s->comm, rc, err);
}

/* ---- planning ---- */

/* Assigns the samples to splits. */
static int assign_splits(struct dnn_prepare_state *s, struct dnn_err *err)
{
    const struct dnn_prepare *p = s->prepare;

    if (p->balance != NULL || (p->split != NULL && p->split->stratify))
        DNN_TRY(dnn_pass_classes(s, err));
    int rc = dnn_parts_make(p, &s->origins, s->class, &s->parts, err);
    return dnn_comm_agree(s->comm, rc, err);
}

static int plan_steps(struct dnn_prepare_state *s, struct dnn_err *err)
{
    s->states = s->origins.states;
    for (int i = 0; i < s->prepare->nsteps; i++) {
        struct dnn_prepare_step *step = &s->prepare->step[i];

        DNN_TRY(dnn_prepare_step_select(step, &s->states, err));
        enum dnn_prepare_step_need need = dnn_prepare_step_needs(step);
        if (need != DNN_NEED_NOTHING) DNN_TRY(dnn_pass_stats(s, i, need, err));
        DNN_TRY(dnn_prepare_step_states(step, &s->states, err));
        if (i == s->prepare->slice) DNN_TRY(dnn_pass_boxes(s, err));
    }
    return 0;
}

/* Unknown extents are those of the first sample after all steps. */
static int probe(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct dnn_shape shape[DNN_MAX_COLUMNS] = {{0}};
    int rc = 0;

    if (dnn_comm_rank(s->comm) == 0) {
        struct dnn_pipeline pipeline;
        struct dnn_sample *sample = NULL;

        dnn_pipeline_start(&pipeline, s->prepare, &s->origins, s->prepare->nsteps);
        rc = dnn_pipeline_load(&pipeline, s->output[0].sample[0], err);
        if (rc == 0) rc = dnn_pipeline_box(&pipeline, 0, &sample, err);
        for (int k = 0; rc == 0 && k < s->states.n; k++)
            shape[k] = sample->col[k].shape;
        dnn_pipeline_stop(&pipeline);
    }
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    DNN_TRY(dnn_comm_bcast(s->comm, "shapes", shape, sizeof shape, 0, err));
    for (int k = 0; k < s->states.n; k++)
        s->states.state[k].column.shape = shape[k];
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

/* ---- everything ---- */

static void log_result(const struct dnn_prepare_state *s, const char *hash)
{
    struct dnn_buf text = {0};

    for (int p = 0; p < s->info.nsplits; p++)
        dnn_buf_add(&text, "%s%" PRId64 " %s", p > 0 ? ", " : "",
                    s->info.split[p].count, s->info.split[p].name);
    dnn_log(DNN_INFO, "prepare", "%s: samples: %s; hash %s", s->prepare->to, text.text,
            hash);
    dnn_buf_free(&text);
}

static int run_all(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct dnn_units pieces = {"piece", "preparing", 0, dnn_piece_make, s};
    char hash[33] = "";

    DNN_TRY(assign_splits(s, err));
    DNN_TRY(plan_steps(s, err));
    DNN_TRY(plan(s, err));
    pieces.n = s->npieces;
    DNN_TRY(dnn_units_run(&s->work, s->comm, &pieces, err));
    DNN_TRY(dnn_pass_files(s, err));
    DNN_TRY(dnn_assemble(s, hash, err));
    log_result(s, hash);
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
        dnn_prepare_step_free(&s->prepare->step[i]);
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
    if (rc == 0 && !done) rc = run_all(s, err);
    /* After an error in configuration or data there is nothing to continue. */
    dnn_work_close(&s->work, rc == 0 || rc == DNN_ECONFIG || rc == DNN_EDATA);
    dnn_stop_unwatch();
    free_state(s);
    return rc;
}
