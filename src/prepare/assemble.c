/* assemble.c - writes all pieces to one dataset, which is created atomically.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "base/progress.h"
#include "base/stop.h"

#include <string.h>

static int load(const struct dnn_prepare_state *s, int64_t number, char **bytes,
                struct dnn_piece_view *view, struct dnn_err *err)
{
    size_t len = 0;

    DNN_TRY(dnn_work_load(&s->work, "piece", number, bytes, &len, err));
    int rc = dnn_piece_read(s, number, *bytes, len, view, err);
    if (rc < 0) dnn_free(*bytes);
    return rc;
}

/* ---- the description ---- */

static void describe_columns(struct dnn_prepare_state *s)
{
    s->info.nsplits = s->parts.n;
    for (int p = 0; p < s->parts.n; p++) {
        struct dnn_split *split = &s->info.split[p];

        snprintf(split->name, sizeof split->name, "%s", s->parts.name[p]);
        split->ncols = s->states.n;
        for (int k = 0; k < s->states.n; k++) {
            const struct dnn_column_state *state = &s->states.state[k];
            struct dnn_stored *to = &split->col[k];

            to->column = state->column;
            to->nscale = state->nscale;
            memcpy(to->scale, state->scale, sizeof to->scale);
            memcpy(to->offset, state->offset, sizeof to->offset);
            to->stats = dnn_alloc(sizeof *to->stats);
            struct dnn_column column = dnn_column_state_column(state);
            dnn_stats_start(to->stats, &column);
        }
    }
}

static void add_piece(struct dnn_prepare_state *s, int64_t number,
                      const struct dnn_piece_summary *summary, bool *begun)
{
    int p = s->piece[number].split;
    struct dnn_split *split = &s->info.split[p];

    for (int k = 0; k < split->ncols; k++) {
        struct dnn_stored *to = &split->col[k];

        dnn_stats_merge(to->stats, &summary->stats[k]);
        for (int d = 0; d < DNN_MAX_SPACE; d++)
            if (!begun[p])
                to->spacing[d] = summary->spacing[k][d];
            else if (to->spacing[d] != summary->spacing[k][d])
                to->spacing[d] = -1;
    }
    begun[p] = true;
}

static int merge_summaries(struct dnn_prepare_state *s, struct dnn_err *err)
{
    bool begun[DNN_MAX_SPLITS] = {false};
    int rc = 0;

    for (int64_t i = 0; dnn_comm_rank(s->comm) == 0 && rc == 0 && i < s->npieces; i++) {
        struct dnn_piece_summary *summary = NULL;

        rc = dnn_piece_summary(s, i, &summary, err);
        if (rc == 0) add_piece(s, i, summary, begun);
        dnn_free(summary);
    }
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    for (int p = 0; p < s->parts.n; p++)
        for (int k = 0; k < s->states.n; k++) {
            struct dnn_stored *to = &s->info.split[p].col[k];

            DNN_TRY(dnn_comm_bcast(s->comm, "statistics", to->stats, sizeof *to->stats,
                                   0, err));
            DNN_TRY(dnn_comm_bcast(s->comm, "spacing", to->spacing, sizeof to->spacing,
                                   0, err));
        }
    return 0;
}

/* Spacing that differs between samples becomes 0 (unknown).  If more classes occur than
 * declared, their number is raised. */
static void finish_columns(struct dnn_prepare_state *s)
{
    for (int k = 0; k < s->states.n; k++) {
        enum dnn_kind kind = s->states.state[k].column.kind;
        int64_t classes = s->states.state[k].column.classes;

        for (int p = 0; p < s->parts.n; p++) {
            struct dnn_stored *to = &s->info.split[p].col[k];

            for (int d = 0; d < DNN_MAX_SPACE; d++)
                if (to->spacing[d] < 0) to->spacing[d] = 0;
            if (to->stats->nclasses > classes) classes = to->stats->nclasses;
        }
        if (kind != DNN_KIND_LABEL && kind != DNN_KIND_MASK) continue;
        for (int p = 0; p < s->parts.n; p++) {
            struct dnn_column *c = &s->info.split[p].col[k].column;

            if (c->classes != classes) c->class_name = NULL;
            c->classes = classes;
        }
    }
}

/* ---- the samples ---- */

static int put_piece(struct dnn_prepare_state *s, struct dnn_dataset_writer *writer,
                     int64_t number, struct dnn_err *err)
{
    const struct dnn_piece *piece = &s->piece[number];
    int64_t chunk = s->info.split[piece->split].chunk;
    struct dnn_piece_view view;
    char *bytes = NULL;
    int rc;

    DNN_TRY(load(s, number, &bytes, &view, err));
    for (int64_t i = rc = 0; rc == 0 && i < piece->n; i += chunk) {
        const void *data[DNN_MAX_COLUMNS];

        for (int k = 0; k < s->states.n; k++)
            data[k] = view.data[k] + (size_t)i * dnn_piece_bytes(&s->states.state[k]);
        rc = dnn_dataset_put(writer, piece->split, piece->first + i,
                             piece->n - i < chunk ? piece->n - i : chunk, data,
                             view.name + i, view.fold == NULL ? NULL : view.fold + i,
                             view.group == NULL ? NULL : view.group + i, err);
    }
    dnn_piece_view_free(&view);
    dnn_free(bytes);
    return rc;
}

static int check_stop(struct dnn_prepare_state *s, struct dnn_err *err)
{
    int64_t number = dnn_stop_requested();

    DNN_TRY(dnn_comm_allreduce(s->comm, "signals", &number, 1, DNN_COMM_I64,
                               DNN_COMM_MAX, err));
    if (number == 0) return 0;
    dnn_fail(err, DNN_ESTOP,
             "stopped by a signal while the dataset was assembled; run the same "
             "command again to continue");
    err->everywhere = true;
    return DNN_ESTOP;
}

static int put_all(struct dnn_prepare_state *s, struct dnn_dataset_writer *writer,
                   struct dnn_err *err)
{
    int rank = dnn_comm_rank(s->comm), size = dnn_comm_size(s->comm), rc = 0;
    struct dnn_progress *progress = NULL;

    if (rank == 0)
        progress = dnn_progress_start("prepare", "assembling the dataset", s->npieces,
                                      "pieces", NULL);
    for (int64_t at = 0; rc == 0 && at < s->npieces; at += size) {
        if (at + rank < s->npieces) rc = put_piece(s, writer, at + rank, err);
        rc = dnn_comm_agree(s->comm, rc, err);
        if (rc == 0) rc = dnn_dataset_flush(writer, err);
        if (rc == 0) rc = check_stop(s, err);
        if (progress != NULL && rc == 0)
            dnn_progress_at(progress, at + size < s->npieces ? at + size : s->npieces);
    }
    dnn_progress_stop(progress, rc == 0);
    return rc;
}

int dnn_assemble(struct dnn_prepare_state *s, char hash[33], struct dnn_err *err)
{
    struct dnn_bp_how how = {.replace = s->opts->replace};
    struct dnn_dataset_writer *writer = NULL;
    char *name = NULL;

    describe_columns(s);
    DNN_TRY(merge_summaries(s, err));
    finish_columns(s);
    s->info.provenance = dnn_record_text(s);
    if (s->prepare->compress != NULL) {
        name = dnn_strndup(s->prepare->compress, strcspn(s->prepare->compress, ":"));
        how.compress = name;
        how.params = strchr(s->prepare->compress, ':');
        if (how.params != NULL) how.params++;
    }
    int rc = dnn_dataset_create(s->comm, s->prepare->to, &s->info, &how, &writer, err);
    if (rc == 0) rc = put_all(s, writer, err);
    if (rc == 0)
        rc = dnn_dataset_finish(writer, hash, err);
    else
        dnn_dataset_abandon(writer);
    dnn_free(name);
    return rc;
}
