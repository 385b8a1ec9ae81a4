/* feed.c - opens and closes feeds, and returns their batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int agree(struct dnn_feed *feed, int rc, struct dnn_err *err)
{
    return feed->comm == NULL ? rc : dnn_comm_agree(feed->comm, rc, err);
}

/* ---- settings ---- */

static int check(const struct dnn_feed_cfg *cfg, struct dnn_err *err)
{
    static const char least[] = "the %s must be %s, not %" PRId64;

    if ((cfg->path == NULL) == (cfg->source == NULL))
        return dnn_fail(err, DNN_ECONFIG, "give either a dataset or a source");
    if (cfg->batch_size < 1)
        return dnn_fail(err, DNN_ECONFIG, least, "batch size", "at least 1",
                        cfg->batch_size);
    if (cfg->window < 0)
        return dnn_fail(err, DNN_ECONFIG, least, "window", "0 or more", cfg->window);
    if (cfg->threads < 0 || cfg->threads > 1024)
        return dnn_fail(err, DNN_ECONFIG, least, "number of threads", "0 to 1024",
                        (int64_t)cfg->threads);
    if (cfg->ahead < 0 || cfg->ahead > 1024)
        return dnn_fail(err, DNN_ECONFIG, least, "number of batches to prefetch",
                        "0 to 1024", (int64_t)cfg->ahead);
    if (cfg->memory < 0)
        return dnn_fail(err, DNN_ECONFIG, least, "memory", "0 or more", cfg->memory);
    return 0;
}

/* The split by its name, else "train", else the only one. */
static int find_split(struct dnn_feed *feed, struct dnn_err *err)
{
    const struct dnn_dataset_info *info = dnn_dataset_info(feed->dataset);
    const char *name = feed->cfg.split;
    struct dnn_buf all = {0};

    feed->split_number = dnn_dataset_find(feed->dataset, name == NULL ? "train" : name);
    if (feed->split_number < 0 && name == NULL && info->nsplits == 1)
        feed->split_number = 0;
    if (feed->split_number >= 0) {
        feed->split = &info->split[feed->split_number];
        dnn_free(feed->about);
        feed->about = dnn_format("%s: %s", feed->cfg.path, feed->split->name);
        return 0;
    }
    for (int i = 0; i < info->nsplits; i++)
        dnn_buf_add(&all, "%s%s", i == 0 ? "" : ", ", info->split[i].name);
    dnn_fail(err, DNN_ECONFIG, "%s: there is no split \"%s\"; available: %s",
             feed->cfg.path, name == NULL ? "train" : name,
             all.text == NULL ? "nothing" : all.text);
    dnn_buf_free(&all);
    return DNN_ECONFIG;
}

/* ---- columns ---- */

static void set_conversion(struct dnn_feed *feed, int k)
{
    struct dnn_conversion *conv = &feed->col[k].conv;

    dnn_conversion_column(&feed->in[k], feed->cfg.image_scale, conv);
    if (feed->split == NULL || conv->integer) return;
    const struct dnn_stored *s = &feed->split->col[k];
    conv->scale.period = 0;
    if (s->nscale > 0) dnn_conversion_scale(conv, s->nscale, s->scale, s->offset);
}

/* Sets the columns of batches; their shapes may be unknown. */
static int set_outputs(struct dnn_feed *feed, struct dnn_err *err)
{
    for (int k = 0; k < feed->ncols; k++) {
        feed->mid[k] = feed->out[k] = feed->in[k];
        feed->mid[k].type = feed->col[k].conv.integer ? DNN_I32 : DNN_F32;
        feed->out[k].type = feed->mid[k].type;
    }
    if (feed->cfg.augment == NULL) return 0;
    return dnn_augment_columns(feed->cfg.augment, feed->ncols, feed->mid, feed->out,
                               err);
}

static bool known(int ncols, const struct dnn_column *col)
{
    for (int k = 0; k < ncols; k++)
        if (!dnn_shape_known(&col[k].shape)) return false;
    return true;
}

/* Copies the shape of the first sample: all of it, or only the channels. */
static void copy_shape(struct dnn_column *col, const struct dnn_shape *first, bool all)
{
    bool space = col->kind == DNN_KIND_IMAGE || col->kind == DNN_KIND_MASK;

    if (all || !space || first->ndim != col->shape.ndim)
        col->shape = *first;
    else
        col->shape.dim[first->ndim - 1] = first->dim[first->ndim - 1];
}

/* Unknown shapes are those of the first sample.  If transforms make extents equal,
 * those of other samples may differ. */
static int shapes_from_first(struct dnn_feed *feed, struct dnn_err *err)
{
    struct dnn_sample first = {0};
    int rc = feed->dataset != NULL
                 ? dnn_fail(err, DNN_EDATA, "%s: the shape of the samples is unknown",
                            feed->about)
                 : dnn_feed_read_source(feed, 0, &first, err);
    bool all = feed->cfg.augment == NULL || feed->cfg.preload;

    feed->shape_from_first = true;
    for (int k = 0; k < feed->ncols && rc == 0; k++)
        copy_shape(&feed->in[k], &first.col[k].shape, all);
    if (rc == 0) rc = set_outputs(feed, err);
    if (rc == 0 && !known(feed->ncols, feed->out)) {
        for (int k = 0; k < feed->ncols; k++)
            copy_shape(&feed->in[k], &first.col[k].shape, true);
        rc = set_outputs(feed, err);
    }
    dnn_sample_free(&first);
    return rc;
}

static int set_sizes(struct dnn_feed *feed, struct dnn_err *err)
{
    for (int k = 0; k < feed->ncols; k++) {
        struct dnn_feed_col *col = &feed->col[k];
        const struct dnn_column *c = &feed->out[k];
        const struct dnn_tensor in = {NULL, feed->in[k].type, feed->in[k].shape};
        const struct dnn_tensor out = {NULL, c->type, c->shape};

        col->deferred = feed->cfg.stored && feed->cfg.augment == NULL;
        DNN_TRY(dnn_tensor_bytes(&out, &col->row, err));
        if (c->type != DNN_F32 && c->type != DNN_I32)
            return dnn_fail(err, DNN_EDATA, "%s: the transforms produce %s from %s",
                            feed->about, dnn_dtype_name(c->type), c->name);
        /* Not known: assume the size after conversion. */
        if (!dnn_shape_known(&in.shape)) {
            col->stored = col->row;
            col->count = (int64_t)(col->row / 4);
            continue;
        }
        DNN_TRY(dnn_shape_count(&in.shape, &col->count, err));
        DNN_TRY(dnn_tensor_bytes(&in, &col->stored, err));
        if (col->deferred) col->row = col->stored;
    }
    return 0;
}

static int set_columns(struct dnn_feed *feed, struct dnn_err *err)
{
    const struct dnn_source *source = feed->cfg.source;

    feed->ncols = feed->split != NULL ? feed->split->ncols : source->ncols;
    for (int k = 0; k < feed->ncols; k++) {
        feed->in[k] = feed->split != NULL ? feed->split->col[k].column : source->col[k];
        set_conversion(feed, k);
    }
    DNN_TRY(set_outputs(feed, err));
    if (!known(feed->ncols, feed->out) ||
        (feed->cfg.preload && !known(feed->ncols, feed->in)))
        DNN_TRY(shapes_from_first(feed, err));
    return set_sizes(feed, err);
}

/* ---- opening ---- */

/* The local part of opening. */
static int prepare(struct dnn_feed *feed, struct dnn_err *err)
{
    if (feed->dataset != NULL) DNN_TRY(find_split(feed, err));
    DNN_TRY(dnn_feed_select(feed, err));
    DNN_TRY(set_columns(feed, err));
    feed->mixes = feed->cfg.augment != NULL && dnn_augment_mixes(feed->cfg.augment);
    DNN_TRY(dnn_feed_plan(feed, err));
    return feed->cfg.dry_run ? 0 : dnn_feed_memory(feed, err);
}

static int open_all(struct dnn_feed *feed, struct dnn_err *err)
{
    const struct dnn_feed_cfg *cfg = &feed->cfg;

    DNN_TRY(agree(feed, check(cfg, err), err));
    if (cfg->path != NULL)
        DNN_TRY(dnn_dataset_open(cfg->dry_run ? NULL : feed->comm, cfg->path,
                                 cfg->threads > 0 ? cfg->threads : 2, &feed->dataset,
                                 err));
    feed->about = dnn_strdup(cfg->path != NULL ? cfg->path : cfg->source->type->name);
    DNN_TRY(agree(feed, prepare(feed, err), err));
    DNN_TRY(agree(feed, dnn_feed_sums(feed, err), err));
    return cfg->preload ? dnn_feed_preload(feed, err) : 0;
}

int dnn_feed_open(struct dnn_comm *comm, const struct dnn_feed_cfg *cfg,
                  struct dnn_feed **out, struct dnn_err *err)
{
    struct dnn_feed *feed = dnn_alloc(sizeof *feed);
    struct dnn_err own = {0};

    feed->cfg = *cfg;
    feed->comm = comm;
    feed->size = comm == NULL ? 1 : dnn_comm_size(comm);
    feed->rank = comm == NULL ? 0 : dnn_comm_rank(comm);
    feed->local_size = comm == NULL ? 1 : dnn_comm_local_size(comm);
    feed->local_rank = comm == NULL ? 0 : dnn_comm_local_rank(comm);
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->work, NULL);
    pthread_cond_init(&feed->ready, NULL);
    int rc = open_all(feed, err == NULL ? &own : err);
    if (rc < 0) {
        dnn_feed_close(feed);
        return rc;
    }
    *out = feed;
    return 0;
}

void dnn_feed_close(struct dnn_feed *feed)
{
    if (feed == NULL) return;
    dnn_feed_stop(feed);
    for (int i = 0; i < feed->threads && feed->worker != NULL; i++)
        dnn_feed_worker_free(&feed->worker[i]);
    for (int i = 0; i < DNN_FEED_WINDOWS; i++)
        dnn_free(feed->window[i].at);
    for (int k = 0; k < feed->ncols; k++)
        dnn_free(feed->col[k].sum);
    dnn_feed_unload(feed);
    free(feed->memory);
    dnn_dataset_close(feed->dataset);
    dnn_free(feed->slot);
    dnn_free(feed->worker);
    dnn_free(feed->selected);
    dnn_free(feed->about);
    pthread_cond_destroy(&feed->ready);
    pthread_cond_destroy(&feed->work);
    pthread_mutex_destroy(&feed->lock);
    dnn_free(feed);
}

int dnn_feed_columns(const struct dnn_feed *feed, const struct dnn_column **out)
{
    *out = feed->out;
    return feed->ncols;
}

int64_t dnn_feed_count(const struct dnn_feed *feed)
{
    return feed->count;
}

int64_t dnn_feed_batches(const struct dnn_feed *feed)
{
    return feed->batches;
}

const char *dnn_feed_hash(const struct dnn_feed *feed)
{
    return feed->dataset == NULL ? "" : dnn_dataset_info(feed->dataset)->hash;
}

const struct dnn_split *dnn_feed_split(const struct dnn_feed *feed)
{
    return feed->dataset == NULL ? NULL : feed->split;
}

const char *dnn_feed_provenance(const struct dnn_feed *feed)
{
    return feed->dataset == NULL ? NULL : dnn_dataset_info(feed->dataset)->provenance;
}

size_t dnn_feed_bytes(const struct dnn_feed *feed)
{
    return feed->bytes;
}

/* ---- batches ---- */

int dnn_feed_start(struct dnn_feed *feed, int64_t epoch, int64_t batch,
                   struct dnn_err *err)
{
    if (feed->cfg.dry_run)
        return dnn_fail(err, DNN_EUSAGE, "%s: a dry run cannot be started",
                        feed->about);
    dnn_feed_stop(feed);
    if (epoch < 0 || epoch > INT64_MAX / 4 / feed->batches)
        return dnn_fail(err, DNN_EUSAGE, "%s: no epoch %" PRId64, feed->about, epoch);
    if (batch < 0 || batch >= feed->batches)
        return dnn_fail(err, DNN_EUSAGE,
                        "%s: batch %" PRId64
                        " requested, but there are only 0 to %" PRId64,
                        feed->about, batch, feed->batches - 1);
    for (int i = 0; i < feed->nslots; i++)
        feed->slot[i].state = DNN_SLOT_FREE;
    feed->next_in = feed->next_out = epoch * feed->batches + batch;
    feed->taken = NULL;
    feed->failed = false;
    return dnn_feed_begin(feed, dnn_feed_serve, err);
}

void dnn_feed_stop(struct dnn_feed *feed)
{
    dnn_feed_end(feed);
}

int dnn_feed_next(struct dnn_feed *feed, const struct dnn_batch **out, double *waited,
                  struct dnn_err *err)
{
    double start = dnn_clock_now();

    if (feed->running == 0)
        return dnn_fail(err, DNN_EUSAGE, "%s: %s", feed->about,
                        feed->failed ? "reading stopped after an earlier error"
                                     : "reading was not started");
    pthread_mutex_lock(&feed->lock);
    if (feed->taken != NULL) {
        feed->taken->state = DNN_SLOT_FREE;
        feed->taken = NULL;
        pthread_cond_broadcast(&feed->work);
    }
    struct dnn_feed_slot *slot = &feed->slot[feed->next_out % feed->nslots];
    while (slot->state != DNN_SLOT_READY || slot->seq != feed->next_out)
        pthread_cond_wait(&feed->ready, &feed->lock);
    slot->state = DNN_SLOT_TAKEN;
    feed->taken = slot;
    feed->next_out++;
    pthread_mutex_unlock(&feed->lock);
    if (waited != NULL) *waited = dnn_clock_now() - start;
    if (slot->rc == 0) {
        *out = &slot->batch;
        return 0;
    }
    if (err != NULL) *err = slot->err;
    feed->failed = true;
    dnn_feed_stop(feed);
    return slot->rc;
}
