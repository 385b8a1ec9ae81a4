/* ckpt_damage.c - damaged checkpoints: the damage is detected, the checkpoint is
 * renamed, and the one before it is loaded.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/log.h"
#include "unit/ckpt_made.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { N = 14, FLIPS = 50, CUTS = 20 };

static char top[] = "/tmp/dnn-ckpt-XXXXXX";
static char newest[128], aside[160];
static struct dnn_ckpt_array *array;

static int64_t load(struct dnn_err *err)
{
    struct dnn_ckpt_cfg cfg = {.dir = top, .keep = 2, .background = true};
    struct dnn_ckpts *c = NULL;
    int64_t step = -2;
    char *state = NULL;

    made_fill(N, array, 99);
    if (dnn_ckpt_open(NULL, &cfg, &c, err) < 0) return -3;
    int rc = dnn_ckpt_load(c, NULL, N, array, &step, &state, err);
    dnn_ckpt_close(c, NULL);
    bool same = rc < 0 || (step < 0 ? state == NULL : strcmp(state, "{\"x\": 1}") == 0);
    dnn_free(state);
    return rc < 0 ? rc : same ? step : -4;
}

/* 1: detected, renamed, and the one before it loaded.  2: not detected, and the content
 * is correct.  0: neither.  A renamed checkpoint is restored. */
static int outcome(const char *what)
{
    struct dnn_err err = {0};
    struct stat st;
    int64_t step = load(&err);
    bool moved = stat(aside, &st) == 0 && stat(newest, &st) < 0;

    if (moved) rename(aside, newest);
    if (step == 1 && made_is(N, array, 1) && moved) return 1;
    if (step == 2 && made_is(N, array, 2) && !moved) return 2;
    printf("# %s: step %lld %s\n", what, (long long)step, err.text);
    return 0;
}

static void flip(const char *path, off_t at, int bit)
{
    int fd = open(path, O_RDWR);
    unsigned char byte = 0;

    if (pread(fd, &byte, 1, at) != 1) printf("# %s: no byte\n", path);
    byte ^= (unsigned char)(1 << bit);
    if (pwrite(fd, &byte, 1, at) != 1) printf("# %s: no byte\n", path);
    close(fd);
}

static void flips(const char *name, const char *path, off_t size)
{
    int seen = 0, harmless = 0;

    for (int i = 0; i < FLIPS; i++) {
        off_t from = size * i / FLIPS, next = size * (i + 1) / FLIPS;
        off_t at = from + (next > from ? (off_t)(rand() % (next - from)) : 0);
        int bit = rand() % 8;

        if (at >= size) at = size - 1;
        flip(path, at, bit);
        int verdict = outcome(name);
        seen += verdict == 1;
        harmless += verdict == 2;
        if (verdict == 2) printf("# %s: byte %lld is not used\n", name, (long long)at);
        flip(path, at, bit);
    }
    ok(seen == FLIPS, "%s: %d bits flipped, %d detected, %d harmless", name, FLIPS,
       seen, harmless);
}

static void put_back(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (write(fd, bytes, len) != (ssize_t)len) printf("# %s: not put back\n", path);
    close(fd);
}

static void cuts(const char *name, const char *path, off_t size)
{
    char *bytes = NULL;
    size_t len = 0;
    int seen = 0;

    dnn_file_read(path, (size_t)size, &bytes, &len, NULL);
    for (int i = 0; i < CUTS; i++) {
        off_t to = i == 0 ? 0 : i == 1 ? size - 1 : (off_t)(rand() % size);

        if (truncate(path, to) < 0) printf("# %s: not cut\n", name);
        seen += outcome(name) == 1;
        put_back(path, bytes, len);
    }
    ok(seen == CUTS, "%s: truncated at %d places, %d detected", name, CUTS, seen);
    unlink(path);
    ok(outcome(name) == 1, "%s: removed", name);
    put_back(path, bytes, len);
    dnn_free(bytes);
}

/* A file replaced by that of another checkpoint: each file is intact, but they do not
 * match. */
static void mixed(const char *name)
{
    char *mine = dnn_format("%s/%s", newest, name);
    char *other = dnn_format("%s/ckpt-000000001.bp/%s", top, name);
    char *bytes = NULL, *kept = NULL;
    size_t len = 0, klen = 0;

    dnn_file_read(mine, 1 << 20, &kept, &klen, NULL);
    dnn_file_read(other, 1 << 20, &bytes, &len, NULL);
    if (len != klen || memcmp(bytes, kept, len) != 0) {
        put_back(mine, bytes, len);
        ok(outcome(name) == 1, "%s: of another checkpoint", name);
        put_back(mine, kept, klen);
    }
    dnn_free(bytes);
    dnn_free(kept);
    dnn_free(mine);
    dnn_free(other);
}

static void none_left(void)
{
    char *path[2] = {dnn_format("%s/data.0", newest),
                     dnn_format("%s/ckpt-000000001.bp/data.0", top)};
    struct dnn_err err = {0};

    flip(path[0], 100, 3);
    flip(path[1], 100, 3);
    is_int(load(&err), -1, "all are damaged: none is loaded");
    ok(made_is(N, array, 99), "and the arrays are not changed");
    is_int(load(&err), -1, "nor the next time");
    dnn_free(path[0]);
    dnn_free(path[1]);
}

/* A checkpoint that is requested by its step is not replaced by another. */
static void by_name(void)
{
    struct dnn_ckpt_cfg cfg = {.dir = top, .keep = 2};
    char *path = dnn_format("%s/data.0", newest), *state = NULL, *text = NULL;
    struct dnn_ckpts *c = NULL;
    struct dnn_err err = {0};
    struct stat st;
    int64_t step;
    size_t len;

    flip(path, 100, 3);
    dnn_ckpt_open(NULL, &cfg, &c, &err);
    is_int(dnn_ckpt_load(c, "2", N, array, &step, &state, &err), DNN_EDATA,
           "a damaged one requested by its step");
    char *want = dnn_format("%s: a/b/c/d//e/: is damaged: its checksum is ", newest);
    ok(strncmp(err.text, want, strlen(want)) == 0, "is an error");
    ok(stat(newest, &st) == 0 && made_is(N, array, 2), "and nothing is changed");
    FILE *where = open_memstream(&text, &len);
    is_int(dnn_ckpt_verify(newest, where, &err), DNN_EDATA, "verify detects it, too");
    fclose(where);
    ok(strstr(text, " WRONG\n") != NULL &&
           strstr(text, "\ndamaged: 1 of 14 arrays\n") != NULL,
       "and prints which array");
    flip(path, 100, 3);
    free(text);
    dnn_free(want);
    dnn_free(path);
    dnn_ckpt_close(c, NULL);
}

/* A file of another version is refused, but it is not damaged. */
static void of_version(int format)
{
    char *path = dnn_format("%s/ckpt-000000003.bp", top);
    struct dnn_err err = {0};
    struct stat st;

    is_int(made_format(path, format, &err), 0, "a file of another format");
    is_int(load(&err), DNN_ECONFIG, "is refused");
    char *want = dnn_format("%s: has checkpoint format %d; this program reads format "
                            "2: use the version that wrote it, or start a new run in "
                            "another directory",
                            path, format);
    is_text(err.text, want, "its message");
    ok(stat(path, &st) == 0, "and is kept");
    ok(made_is(N, array, 99), "nothing is loaded");
    dnn_file_remove_tree(path, NULL);
    dnn_free(want);
    dnn_free(path);
}

int main(void)
{
    struct dnn_ckpt_cfg cfg = {.dir = top, .keep = 2, .background = true};
    struct dnn_ckpts *c = NULL;
    struct dnn_err err = {0};
    struct dirent **entry;

    if (mkdtemp(top) == NULL) return 1;
    srand(20);
    snprintf(newest, sizeof newest, "%s/ckpt-000000002.bp", top);
    snprintf(aside, sizeof aside, "%s.damaged", newest);
    dnn_log_levels("error", &err);
    array = made_arrays(N);
    if (dnn_ckpt_open(NULL, &cfg, &c, &err) < 0) return 1;
    for (int i = 1; i <= 2; i++) {
        made_fill(N, array, i);
        dnn_ckpt_save(c, i, N, array, "{\"x\": 1}", false, &err);
    }
    is_int(dnn_ckpt_close(c, &err), 0, "two checkpoints");
    ok(load(&err) == 2 && made_is(N, array, 2), "the newest is loaded");
    int n = scandir(newest, &entry, NULL, alphasort);
    is_int(n, 2 + 5, "five files");
    for (int i = 0; i < n; i++) {
        char *path = dnn_format("%s/%s", newest, entry[i]->d_name);
        struct stat st;

        if (entry[i]->d_name[0] != '.' && stat(path, &st) == 0) {
            flips(entry[i]->d_name, path, st.st_size);
            cuts(entry[i]->d_name, path, st.st_size);
            mixed(entry[i]->d_name);
        }
        dnn_free(path);
        free(entry[i]);
    }
    free(entry);
    ok(load(&err) == 2 && made_is(N, array, 2), "restored, it is complete again");
    by_name();
    of_version(1);
    of_version(3);
    none_left();
    made_free(N, array);
    dnn_file_remove_tree(top, NULL);
    return done();
}
