/* import_file_cache.c - more files than a process may open, read by several threads at
 * once.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"
#include "import_made.h"

#include <fcntl.h>
#include <sys/resource.h>

enum { FILES = 600, THREADS = 4, READS = 3000, MOST_OPEN = 400 };

static struct dnn_source *source[FILES];

/* File i has the number i, as u2. */
static void make(int i)
{
    static const char text[] =
        "{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}";
    unsigned char bytes[10 + sizeof text - 1 + 2] = {0x93, 'N', 'U', 'M',
                                                     'P',  'Y', 1,   0};
    struct dnn_import how = made_how();
    struct dnn_err err = {0};

    bytes[8] = sizeof text - 1;
    memcpy(bytes + 10, text, sizeof text - 1);
    bytes[sizeof bytes - 2] = (unsigned char)i;
    bytes[sizeof bytes - 1] = (unsigned char)(i >> 8);
    dnn_free(made_path);
    made_path = dnn_format("%s/%d.npy", made_dir, i);
    /* Without fsync: these are many files. */
    int fd = open(made_path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) exit(99);
    close(fd);
    source[i] = made_open(&dnn_importer_npy, &how, false, &err);
    if (source[i] == NULL) printf("# %s\n", err.text);
}

static void *reader(void *arg)
{
    struct dnn_sample sample = {0};
    struct dnn_err err = {0};
    unsigned long at = (unsigned long)(uintptr_t)arg;
    intptr_t bad = 0;

    for (int i = 0; i < READS; i++) {
        at = (at * 1103515245ul + 12345ul) & 0x7ffffffful;
        unsigned long which = at / 7 % FILES;

        if (dnn_source_read(source[which], 0, &sample, &err) < 0 ||
            *(uint16_t *)sample.col[0].data != which)
            bad++;
    }
    if (bad > 0) printf("# %s\n", err.text);
    dnn_sample_free(&sample);
    return (void *)bad;
}

/* ---- an entry that counts how often it is opened ---- */

struct counted {
    struct dnn_file_cache kept;
    int made, dropped;
    bool fails;
};

static int fill(struct dnn_file_cache *kept, struct dnn_err *err)
{
    struct counted *c = (struct counted *)kept;

    if (c->fails) return dnn_fail(err, DNN_EIO, "not now");
    kept->bytes = 700u << 20;
    c->made++;
    return 0;
}

static void drop(struct dnn_file_cache *kept)
{
    ((struct counted *)kept)->dropped++;
}

static void counts(void)
{
    struct counted a = {0}, b = {0};
    struct dnn_err err = {0};

    dnn_file_cache_make(&a.kept, drop);
    dnn_file_cache_make(&b.kept, drop);
    a.fails = true;
    is_int(dnn_file_cache_take(&a.kept, fill, &err), DNN_EIO,
           "an entry that cannot be opened");
    a.fails = false;
    dnn_file_cache_take(&a.kept, fill, &err);
    dnn_file_cache_give(&a.kept);
    dnn_file_cache_take(&a.kept, fill, &err);
    is_int(a.made, 1, "another is opened once");
    dnn_file_cache_take(&b.kept, fill, &err);
    dnn_file_cache_give(&b.kept);
    is_int(a.dropped, 0, "entries in use are kept");
    dnn_file_cache_give(&a.kept);
    is_int(b.dropped, 1, "two entries above the limit: the older is closed");
    dnn_file_cache_take(&b.kept, fill, &err);
    dnn_file_cache_give(&b.kept);
    is_int(b.made, 2, "and is opened again");
    is_int(a.dropped, 1, "and the other is closed");
    dnn_file_cache_end(&a.kept);
    dnn_file_cache_end(&b.kept);
    is_int(b.dropped, 2, "at the end all are closed");
    is_int(a.dropped, 1, "none twice");
}

int main(void)
{
    struct rlimit limit;
    pthread_t id[THREADS];
    intptr_t bad = 0;

    made_start("0.npy");
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = MOST_OPEN;
    is_int(setrlimit(RLIMIT_NOFILE, &limit), 0, "400 open files are allowed");
    for (int i = 0; i < FILES; i++)
        make(i);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&id[i], NULL, reader, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) {
        void *one;

        pthread_join(id[i], &one);
        bad += (intptr_t)one;
    }
    is_int(bad, 0, "600 are read by four threads");
    for (int i = 0; i < FILES; i++)
        dnn_source_close(source[i]);
    counts();
    return made_end();
}
