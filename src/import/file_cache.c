/* file_cache.c - a bounded number of open files and decoded arrays.
 *
 * A dataset may consist of more files than a process can have open, or of archives
 * whose content is larger than the memory.  Beyond the limits, the least recently used
 * entries are dropped.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

enum {
    MAX_ENTRIES = 256,   /* entries; a process can often open 1024 files        */
    MAX_BYTES = 1 << 30, /* of memory of entries that are not in use            */
    MAX_DROPPED = 8      /* entries dropped by one call                         */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dnn_file_cache *newest, *oldest; /* protected by list_lock */
static size_t listed, listed_bytes;

static void unlink_entry(struct dnn_file_cache *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &oldest) = entry->newer;
    entry->newer = entry->older = NULL;
    entry->listed = false;
    listed--;
    listed_bytes -= entry->bytes;
}

static void link_newest(struct dnn_file_cache *entry)
{
    entry->older = newest;
    *(newest != NULL ? &newest->newer : &oldest) = entry;
    newest = entry;
    entry->listed = true;
    listed++;
    listed_bytes += entry->bytes;
}

void dnn_file_cache_make(struct dnn_file_cache *entry,
                         void (*drop)(struct dnn_file_cache *entry))
{
    *entry = (struct dnn_file_cache){.drop = drop};
    pthread_mutex_init(&entry->lock, NULL);
}

int dnn_file_cache_take(struct dnn_file_cache *entry,
                        int (*fill)(struct dnn_file_cache *entry, struct dnn_err *err),
                        struct dnn_err *err)
{
    int rc = 0;

    /* The lock of the entry first: fill does not block other entries, and this one
     * cannot be dropped. */
    pthread_mutex_lock(&entry->lock);
    pthread_mutex_lock(&list_lock);
    if (entry->listed) unlink_entry(entry);
    entry->users++;
    pthread_mutex_unlock(&list_lock);
    if (!entry->full) rc = fill(entry, err);
    entry->full = rc == 0;
    if (rc < 0) {
        pthread_mutex_lock(&list_lock);
        entry->users--;
        pthread_mutex_unlock(&list_lock);
    }
    pthread_mutex_unlock(&entry->lock);
    return rc;
}

void dnn_file_cache_give(struct dnn_file_cache *entry)
{
    struct dnn_file_cache *dropped[MAX_DROPPED], *next;
    int n = 0;

    pthread_mutex_lock(&list_lock);
    if (--entry->users == 0) link_newest(entry);
    for (struct dnn_file_cache *k = oldest; k != NULL && n < MAX_DROPPED; k = next) {
        next = k->newer;
        if (listed <= MAX_ENTRIES && listed_bytes <= MAX_BYTES) break;
        /* Another thread that holds its lock is about to use it. */
        if (k == entry || pthread_mutex_trylock(&k->lock) != 0) continue;
        unlink_entry(k);
        dropped[n++] = k;
    }
    pthread_mutex_unlock(&list_lock);
    for (int i = 0; i < n; i++) {
        dropped[i]->drop(dropped[i]);
        dropped[i]->full = false;
        pthread_mutex_unlock(&dropped[i]->lock);
    }
}

void dnn_file_cache_end(struct dnn_file_cache *entry)
{
    pthread_mutex_lock(&entry->lock);
    pthread_mutex_lock(&list_lock);
    if (entry->listed) unlink_entry(entry);
    pthread_mutex_unlock(&list_lock);
    if (entry->full) entry->drop(entry);
    entry->full = false;
    pthread_mutex_unlock(&entry->lock);
    pthread_mutex_destroy(&entry->lock);
}
