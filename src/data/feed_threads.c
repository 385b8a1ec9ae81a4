/* feed_threads.c - the threads of a feed, and their scheduling.
 *
 * Each thread takes the most urgent task: rows of a batch whose samples have been read;
 * reading the next batch; reading the next window.  Only one thread reads at a time.  A
 * thread without a task sleeps until something changes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

enum { FETCH = 8 << 20 }; /* bytes of samples read at once */

/* ---- names ---- */

/* The name of a sample in its dataset or source; false if it has none. */
static bool label_of(struct dnn_feed *feed, int64_t number, char out[DNN_SAMPLE_NAME])
{
    char **name = NULL;

    if (feed->dataset == NULL) {
        dnn_source_label(feed->cfg.source, number, out);
        return true;
    }
    pthread_mutex_lock(&feed->lock);
    while (feed->reading)
        pthread_cond_wait(&feed->work, &feed->lock);
    feed->reading = true;
    pthread_mutex_unlock(&feed->lock);
    int rc = dnn_dataset_metadata(feed->dataset, feed->split_number, number, 1, &name,
                                  NULL, NULL, NULL);
    pthread_mutex_lock(&feed->lock);
    feed->reading = false;
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
    bool named = rc == 0 && name != NULL && name[0][0] != '\0';
    if (named) snprintf(out, DNN_SAMPLE_NAME, "%s", name[0]);
    dnn_free(name);
    return named;
}

void dnn_feed_name(struct dnn_feed *feed, int64_t index, char *out, size_t size)
{
    int64_t number = dnn_feed_number(feed, index);
    char label[DNN_SAMPLE_NAME];
    bool named = label_of(feed, number, label);

    snprintf(out, size, "%s[%" PRId64 "]%s%.400s%s", feed->about, number,
             named ? " (" : "", named ? label : "", named ? ")" : "");
}

void dnn_feed_label(struct dnn_feed *feed, int64_t index, char out[DNN_SAMPLE_NAME])
{
    int64_t number = dnn_feed_number(feed, index);

    if (!label_of(feed, number, out))
        snprintf(out, DNN_SAMPLE_NAME, "%" PRId64, number);
}

/* ---- rows ---- */

/* The earliest batch with rows that no thread has claimed. */
static struct dnn_feed_slot *next_to_make(struct dnn_feed *feed)
{
    struct dnn_feed_slot *first = NULL;

    for (int i = 0; i < feed->nslots; i++) {
        struct dnn_feed_slot *s = &feed->slot[i];

        if ((s->state == DNN_SLOT_MAKING || s->state == DNN_SLOT_READING) &&
            s->claimed < s->fetched && (first == NULL || s->seq < first->seq))
            first = s;
    }
    return first;
}

/* Sets the error of a row.  Of several, that of the first row is kept: rows before
 * it were claimed before, so this does not depend on timing.  No further rows are
 * claimed. */
static void set_row_error(struct dnn_feed_slot *slot, int64_t row, int rc,
                          const struct dnn_err *err)
{
    if (slot->rc < 0 && slot->bad < row) return;
    slot->rc = rc;
    slot->bad = row;
    slot->err = *err;
    slot->made += slot->batch.n - slot->claimed;
    slot->claimed = slot->fetched = slot->batch.n;
}

/* Marks a batch ready if all its samples are read and all its rows are made. */
static void finish(struct dnn_feed *feed, struct dnn_feed_slot *slot)
{
    if (slot->state != DNN_SLOT_MAKING || slot->made < slot->batch.n) return;
    slot->state = DNN_SLOT_READY;
    pthread_cond_signal(&feed->ready);
    pthread_cond_broadcast(&feed->work);
}

static bool make_some(struct dnn_feed_worker *w)
{
    struct dnn_feed *feed = w->feed;
    struct dnn_feed_slot *slot = next_to_make(feed);
    struct dnn_err err = {0};
    int rc = 0;

    if (slot == NULL) return false;
    int64_t from = slot->claimed, left = slot->fetched - from, i;
    int64_t n = left < feed->grain ? left : feed->grain;
    slot->claimed += n;
    pthread_mutex_unlock(&feed->lock);
    for (i = from; i < from + n && rc == 0; i++)
        rc = dnn_feed_make(w, slot, i, &err);
    pthread_mutex_lock(&feed->lock);
    slot->made += n;
    if (rc < 0) set_row_error(slot, i - 1, rc, &err);
    finish(feed, slot);
    return true;
}

/* ---- reading ---- */

static void acquire_dataset(struct dnn_feed *feed)
{
    feed->reading = true;
    pthread_mutex_unlock(&feed->lock);
}

static void release_dataset(struct dnn_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    feed->reading = false;
    pthread_cond_broadcast(&feed->work);
}

/* Whether unfinished batches need a window. */
static bool in_use(const struct dnn_feed *feed, int64_t seq)
{
    for (int i = 0; i < feed->nslots; i++) {
        const struct dnn_feed_slot *s = &feed->slot[i];

        if ((s->state == DNN_SLOT_READING || s->state == DNN_SLOT_MAKING) && seq >= 0 &&
            s->low <= seq && seq <= s->high)
            return true;
    }
    return false;
}

/* Reads some chunks of a window.  False: its memory is still in use. */
static bool load_some(struct dnn_feed *feed, int64_t seq, int *rc, struct dnn_err *err)
{
    struct dnn_feed_window *w = &feed->window[seq % DNN_FEED_WINDOWS];

    *rc = 0;
    if (w->seq != seq && in_use(feed, w->seq)) return false;
    acquire_dataset(feed);
    if (w->seq != seq) dnn_feed_window_set(feed, w, seq);
    *rc = dnn_feed_load(feed, w, err);
    release_dataset(feed);
    return true;
}

/* All samples are read, or an error occurred: the next batch can be read. */
static void finish_reading(struct dnn_feed *feed, struct dnn_feed_slot *slot)
{
    slot->fetched = slot->batch.n;
    slot->state = DNN_SLOT_MAKING;
    feed->next_in++;
    pthread_cond_broadcast(&feed->work);
    finish(feed, slot);
}

/* Whether an earlier batch still needs the stage, which every DNN_FEED_STAGES-th batch
 * uses. */
static bool stage_in_use(const struct dnn_feed *feed)
{
    for (int i = 0; i < feed->nslots; i++)
        if (feed->slot[i].state == DNN_SLOT_MAKING &&
            feed->slot[i].seq <= feed->next_in - DNN_FEED_STAGES)
            return true;
    return false;
}

/* Reads the samples of some more rows, enough to make the request cheap; other threads
 * can make these rows while the next ones are read. */
static void fetch_some(struct dnn_feed *feed, struct dnn_feed_slot *slot)
{
    size_t each = dnn_feed_stored(feed) * (feed->mixes ? 2 : 1) + 1;
    int64_t from = slot->fetched, left = slot->batch.n - from;
    int64_t fit = (int64_t)(FETCH / each) + 1, n = left < fit ? left : fit;
    struct dnn_err err = {0};

    acquire_dataset(feed);
    int rc = dnn_feed_fetch(feed, slot, from, n, &err);
    release_dataset(feed);
    if (rc < 0)
        set_row_error(slot, from, rc, &err);
    else if (slot->rc == 0)
        slot->fetched += n;
}

/* One step of reading a batch; false if it cannot be done now. */
static bool read_step(struct dnn_feed *feed, struct dnn_feed_slot *slot)
{
    struct dnn_err err = {0};
    int rc = 0;

    for (int64_t s = slot->low; s >= 0 && s <= slot->high; s++) {
        if (dnn_feed_loaded(&feed->window[s % DNN_FEED_WINDOWS], s)) continue;
        if (!load_some(feed, s, &rc, &err)) return false;
        if (rc == 0) return true;
        set_row_error(slot, 0, rc, &err);
        break;
    }
    if (feed->from != DNN_FROM_SOURCE && (slot->low < 0 || feed->mixes) &&
        slot->fetched < slot->batch.n) {
        if (stage_in_use(feed)) return false;
        fetch_some(feed, slot);
        if (slot->fetched < slot->batch.n) return true;
    }
    finish_reading(feed, slot);
    return true;
}

static bool read_next(struct dnn_feed *feed)
{
    struct dnn_feed_slot *slot = &feed->slot[feed->next_in % feed->nslots];

    if (feed->reading) return false;
    if (slot->state == DNN_SLOT_READING) return read_step(feed, slot);
    if (slot->state != DNN_SLOT_FREE) return false;
    slot->seq = feed->next_in;
    slot->low = slot->high = -1;
    slot->fetched = slot->claimed = slot->made = 0;
    slot->rc = 0;
    slot->state = DNN_SLOT_READING;
    acquire_dataset(feed);
    dnn_feed_set_up(feed, slot);
    release_dataset(feed);
    return true;
}

/* Reads the window after the last one in use. */
static bool read_ahead(struct dnn_feed *feed)
{
    int64_t last = -1;
    struct dnn_err err = {0};
    int rc;

    if (feed->from != DNN_FROM_MEMORY || dnn_feed_all_in_memory(feed) ||
        feed->reading || feed->prefetch_failed)
        return false;
    for (int i = 0; i < feed->nslots; i++)
        if (feed->slot[i].state != DNN_SLOT_FREE && feed->slot[i].high > last)
            last = feed->slot[i].high;
    if (last < 0 ||
        dnn_feed_loaded(&feed->window[(last + 1) % DNN_FEED_WINDOWS], last + 1))
        return false;
    bool done = load_some(feed, last + 1, &rc, &err);
    if (rc < 0) feed->prefetch_failed = true;
    return done;
}

int dnn_feed_serve(struct dnn_feed_worker *worker)
{
    struct dnn_feed *feed = worker->feed;

    pthread_mutex_lock(&feed->lock);
    while (!feed->stop)
        if (!make_some(worker) && !read_next(feed) && !read_ahead(feed))
            pthread_cond_wait(&feed->work, &feed->lock);
    pthread_mutex_unlock(&feed->lock);
    return 0;
}

/* ---- threads ---- */

/* Binds the thread away from the compute threads, if the place has more CPUs than they
 * use, and lowers its priority. */
static void bind_thread(const struct dnn_feed *feed)
{
    const struct dnn_place *place = feed->cfg.place;

    if (place != NULL && feed->cfg.topo != NULL) {
        struct dnn_place *ours = dnn_alloc(sizeof *ours);

        *ours = *place;
        for (int t = 0; t < place->threads && t < DNN_TOPO_THREADS; t++) {
            int pu = place->pu[t];

            if (pu >= 0) ours->pus.word[pu / 64] &= ~((uint64_t)1 << pu % 64);
            if (pu < 0) ours->pus = place->pus;
        }
        if (dnn_topo_count(&ours->pus) == 0) ours->pus = place->pus;
        dnn_topo_bind_helper(feed->cfg.topo, feed->cfg.bind, ours);
        dnn_free(ours);
    }
    /* On Linux for this thread only.  If it is refused, the thread keeps its
     * priority. */
    struct sched_param none = {0};
    if (sched_setscheduler(0, SCHED_BATCH, &none) == 0)
        setpriority(PRIO_PROCESS, 0, 19);
}

static void *run(void *arg)
{
    struct dnn_feed_worker *w = arg;

    bind_thread(w->feed);
    w->task(w);
    return NULL;
}

int dnn_feed_begin(struct dnn_feed *feed, int (*task)(struct dnn_feed_worker *),
                   struct dnn_err *err)
{
    sigset_t all, old;
    int rc = 0;

    feed->stop = feed->reading = feed->prefetch_failed = false;
    /* Signals are for the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (feed->running < feed->threads && rc == 0) {
        struct dnn_feed_worker *w = &feed->worker[feed->running];

        w->feed = feed;
        w->task = task;
        rc = pthread_create(&w->thread, NULL, run, w);
        if (rc == 0) feed->running++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0) return 0;
    dnn_feed_end(feed);
    return dnn_fail(err, DNN_EIO, "%s: cannot start a reader thread: %s", feed->about,
                    strerror(rc));
}

void dnn_feed_end(struct dnn_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    feed->stop = true;
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
    for (; feed->running > 0; feed->running--)
        pthread_join(feed->worker[feed->running - 1].thread, NULL);
}
