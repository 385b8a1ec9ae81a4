/* file_cache.c - open files and decoded members, a bounded number of them.
 *
 * A dataset may be of ten thousand files, more than a process may have open, or of
 * archives whose content is larger than the memory.  What can be made again is kept
 * while there is room, and the longest unused goes first.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

enum {
    MOST = 256,      /* things kept: a process may commonly open 1024 files */
    BYTES = 1 << 30, /* of their memory, beside what is in use              */
    AT_ONCE = 8      /* that go when one comes                              */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dnn_file_cache *newest, *oldest; /* all under the lock */
static size_t listed, bytes_kept;

static void take_out(struct dnn_file_cache *kept)
{
    *(kept->newer != NULL ? &kept->newer->older : &newest) = kept->older;
    *(kept->older != NULL ? &kept->older->newer : &oldest) = kept->newer;
    kept->newer = kept->older = NULL;
    kept->listed = false;
    listed--;
    bytes_kept -= kept->bytes;
}

static void put_first(struct dnn_file_cache *kept)
{
    kept->older = newest;
    *(newest != NULL ? &newest->newer : &oldest) = kept;
    newest = kept;
    kept->listed = true;
    listed++;
    bytes_kept += kept->bytes;
}

void dnn_file_cache_make(struct dnn_file_cache *kept,
                         void (*drop)(struct dnn_file_cache *kept))
{
    *kept = (struct dnn_file_cache){.drop = drop};
    pthread_mutex_init(&kept->lock, NULL);
}

int dnn_file_cache_take(struct dnn_file_cache *kept,
                        int (*fill)(struct dnn_file_cache *kept, struct dnn_err *err),
                        struct dnn_err *err)
{
    int rc = 0;

    /* Its own lock first: others may be made meanwhile, and this one not dropped. */
    pthread_mutex_lock(&kept->lock);
    pthread_mutex_lock(&list_lock);
    if (kept->listed) take_out(kept);
    kept->users++;
    pthread_mutex_unlock(&list_lock);
    if (!kept->full) rc = fill(kept, err);
    kept->full = rc == 0;
    if (rc < 0) {
        pthread_mutex_lock(&list_lock);
        kept->users--;
        pthread_mutex_unlock(&list_lock);
    }
    pthread_mutex_unlock(&kept->lock);
    return rc;
}

void dnn_file_cache_give(struct dnn_file_cache *kept)
{
    struct dnn_file_cache *gone[AT_ONCE], *next;
    int n = 0;

    pthread_mutex_lock(&list_lock);
    if (--kept->users == 0) put_first(kept);
    for (struct dnn_file_cache *k = oldest; k != NULL && n < AT_ONCE; k = next) {
        next = k->newer;
        if (listed <= MOST && bytes_kept <= BYTES) break;
        /* Whoever has its lock is about to use it. */
        if (k == kept || pthread_mutex_trylock(&k->lock) != 0) continue;
        take_out(k);
        gone[n++] = k;
    }
    pthread_mutex_unlock(&list_lock);
    for (int i = 0; i < n; i++) {
        gone[i]->drop(gone[i]);
        gone[i]->full = false;
        pthread_mutex_unlock(&gone[i]->lock);
    }
}

void dnn_file_cache_end(struct dnn_file_cache *kept)
{
    pthread_mutex_lock(&kept->lock);
    pthread_mutex_lock(&list_lock);
    if (kept->listed) take_out(kept);
    pthread_mutex_unlock(&list_lock);
    if (kept->full) kept->drop(kept);
    kept->full = false;
    pthread_mutex_unlock(&kept->lock);
    pthread_mutex_destroy(&kept->lock);
}
