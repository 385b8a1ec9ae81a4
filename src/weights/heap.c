/* heap.c - look at the places where HDF5 keeps texts, before it does.
 *
 * Texts of any length are in "global heaps": a size, then objects one behind the other,
 * each with its own size.  The library follows these sizes without asking whether they
 * lead forward, and a damaged one sends it round in circles.  So every heap in the file
 * is walked here first.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PORTION = 1 << 20,
    HEAD = 16,      /* bytes: of a heap's head, and of an object's               */
    LEAST = 4096,   /* bytes of a heap; the library refuses smaller ones itself  */
    LENGTHS = 8,    /* bytes of a size, as in every file Keras wrote             */
    SPARE = 1 << 20 /* objects that may be seen beside one for every 16 bytes    */
};

struct scan {
    const struct dnn_weights *w;
    int fd; /* or w->memory */
    uint64_t len, steps;
};

static uint64_t little(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* n bytes from at on; fewer at the end are no failure: *n tells. */
static int fetch(const struct scan *s, uint64_t at, void *to, size_t *n,
                 struct dnn_err *err)
{
    size_t done = 0;

    if (*n > s->len - at) *n = (size_t)(s->len - at);
    if (s->w->memory != NULL) {
        memcpy(to, (const char *)s->w->memory + at, *n);
        return 0;
    }
    while (done < *n) {
        ssize_t k = pread(s->fd, (char *)to + done, *n - done, (off_t)(at + done));

        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return dnn_fail(err, DNN_EIO, "%s: %s", s->w->path, strerror(errno));
        if (k == 0) break;
        done += (size_t)k;
    }
    *n = done;
    return 0;
}

static int damaged(const struct scan *s, uint64_t at, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s: is damaged: the texts at byte %" PRIu64,
                    s->w->path, at);
}

/* Walk one heap, or what only looks like one: what the library refuses is let pass. */
static int check_heap(struct scan *s, uint64_t heap, struct dnn_err *err)
{
    unsigned char head[HEAD];
    size_t n = HEAD;

    DNN_TRY(fetch(s, heap, head, &n, err));
    uint64_t total = n < HEAD ? 0 : little(head + 8, 8);
    if (head[4] != 1 || total < LEAST || total > s->len - heap) return 0;
    for (uint64_t at = HEAD; total - at >= HEAD;) {
        if (++s->steps > s->len / HEAD + SPARE) return damaged(s, heap, err);
        n = HEAD;
        DNN_TRY(fetch(s, heap + at, head, &n, err));
        uint64_t size = little(head + 8, 8), left = total - at;
        if (n < HEAD || size > left) return damaged(s, heap, err);
        /* Number 0 is free space, whose size has its head in it. */
        uint64_t need = little(head, 2) == 0 ? size : HEAD + ((size + 7) & ~7ull);
        if (need < HEAD || need > left) return damaged(s, heap, err);
        at += need;
    }
    return 0;
}

static int scan(struct scan *s, struct dnn_err *err)
{
    char *buffer = dnn_alloc(PORTION + 3);
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < s->len; at += PORTION) {
        size_t n = PORTION + 3; /* one may begin at the end of a portion */
        const char *hit = buffer;

        rc = fetch(s, at, buffer, &n, err);
        while (rc == 0 &&
               (hit = memmem(hit, n - (size_t)(hit - buffer), "GCOL", 4)) != NULL) {
            rc = check_heap(s, at + (uint64_t)(hit - buffer), err);
            hit++;
        }
    }
    dnn_free(buffer);
    return rc;
}

int dnn_h5_check_heaps(const struct dnn_weights *w, size_t len, struct dnn_err *err)
{
    struct scan s = {.w = w, .fd = -1, .len = len};
    size_t offsets = 0, lengths = 0;
    struct stat stat;
    int rc = 0;
    hid_t plist = H5Fget_create_plist(w->file);

    if (plist < 0 || H5Pget_sizes(plist, &offsets, &lengths) < 0)
        rc = dnn_h5_fail(w->path, err, "its head");
    else if (lengths != LENGTHS)
        rc = dnn_fail(err, DNN_EDATA, "%s: sizes in it have %zu bytes, not %d", w->path,
                      lengths, LENGTHS);
    if (plist >= 0) H5Pclose(plist);
    if (rc == 0 && w->memory == NULL) {
        s.fd = open(w->path, O_RDONLY | O_CLOEXEC);
        if (s.fd < 0 || fstat(s.fd, &stat) < 0)
            rc = dnn_fail(err, DNN_EIO, "%s: %s", w->path, strerror(errno));
        else
            s.len = (uint64_t)stat.st_size;
    }
    if (rc == 0) rc = scan(&s, err);
    if (s.fd >= 0) close(s.fd);
    return rc;
}
#endif
