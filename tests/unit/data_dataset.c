/* data_dataset.c - datasets: written and read, or refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "dataset_made.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/dnn-dataset-XXXXXX";
static char path[256];

/* Every sample of every column, alone and together. */
static bool same_samples(struct dnn_dataset *d, int split, int k)
{
    const struct dnn_split *s = &dnn_dataset_info(d)->split[split];
    size_t bytes = made_bytes(&s->col[k]), all = (size_t)s->count * bytes;
    unsigned char *want = dnn_alloc(all), *got = dnn_alloc(2 * all);
    struct dnn_err err = {0};
    bool same = true;

    for (int64_t i = 0; i < s->count; i++) {
        made_sample(s, split, k, i, want + (size_t)i * bytes);
        same &=
            dnn_dataset_request(d, split, k, i, 1, got + (size_t)i * bytes, &err) == 0;
    }
    same = same &&
           dnn_dataset_request(d, split, k, 0, s->count, got + all, &err) == 0 &&
           dnn_dataset_fetch(d, &err) == 0 && memcmp(got, want, all) == 0 &&
           memcmp(got + all, want, all) == 0;
    dnn_free(want);
    dnn_free(got);
    return same;
}

static bool same_about(struct dnn_dataset *d, int split)
{
    const struct dnn_split *s = &dnn_dataset_info(d)->split[split];
    struct dnn_err err = {0};
    bool same = true;

    for (int64_t first = 0; same && first < s->count; first++) {
        char **name, **group, want[64], of[64];
        int64_t n = s->count - first;
        int32_t fold[MADE_TRAIN];

        same = dnn_dataset_metadata(d, split, first, n, &name, fold, &group, &err) == 0;
        for (int64_t i = 0; same && i < n; i++) {
            made_name(split, first + i, want);
            snprintf(of, sizeof of, "p%lld", (long long)(first + i) / 2);
            same = strcmp(name[i], want) == 0 &&
                   strcmp(group[i], split ? "" : of) == 0 &&
                   fold[i] == (split ? 0 : (first + i) % 3);
        }
        if (err.code != 0) break;
        dnn_free(name);
        dnn_free(group);
    }
    return same;
}

static bool same_stored(const struct dnn_stored *a, const struct dnn_stored *b)
{
    const struct dnn_column *x = &a->column, *y = &b->column;
    bool same = strcmp(x->name, y->name) == 0 && x->role == y->role &&
                x->kind == y->kind && x->type == y->type &&
                dnn_shape_equal(&x->shape, &y->shape) && x->classes == y->classes &&
                (x->class_name == NULL) == (y->class_name == NULL) &&
                a->nscale == b->nscale &&
                memcmp(a->scale, b->scale, sizeof a->scale) == 0 &&
                memcmp(a->offset, b->offset, sizeof a->offset) == 0 &&
                memcmp(a->spacing, b->spacing, sizeof a->spacing) == 0 &&
                (a->stats == NULL) == (b->stats == NULL);

    for (int64_t i = 0; same && x->class_name != NULL && i < x->classes; i++)
        same = strcmp(x->class_name[i], y->class_name[i]) == 0;
    return same &&
           (a->stats == NULL || memcmp(a->stats, b->stats, sizeof *a->stats) == 0);
}

static void same_all(const char *what, const char hash[33])
{
    struct dnn_dataset_info want;
    struct dnn_dataset *d = NULL;
    struct dnn_err err = {0};

    made_info(&want);
    if (!ok(dnn_dataset_open(NULL, path, 2, &d, &err) == 0, "%s: opens", what)) {
        printf("# %s\n", err.text);
        made_free(&want);
        return;
    }
    const struct dnn_dataset_info *info = dnn_dataset_info(d);
    is_text(info->provenance, want.provenance, "provenance");
    is_text(info->hash, hash, "hash");
    is_int(info->nsplits, want.nsplits, "splits");
    is_int(dnn_dataset_find(d, "test"), 1, "found by name");
    is_int(dnn_dataset_find(d, "tes"), -1, "not found");
    for (int i = 0; i < info->nsplits; i++) {
        const struct dnn_split *s = &info->split[i], *w = &want.split[i];

        ok(strcmp(s->name, w->name) == 0 && s->count == w->count &&
               s->chunk == w->chunk && s->folds == w->folds && s->ncols == w->ncols,
           "%s: %s", what, w->name);
        for (int k = 0; k < s->ncols; k++) {
            ok(same_stored(&s->col[k], &w->col[k]), "%s: %s/%s: description", what,
               w->name, w->col[k].column.name);
            ok(same_samples(d, i, k), "%s: %s/%s: samples", what, w->name,
               w->col[k].column.name);
        }
        ok(same_about(d, i), "%s: %s: names, folds, groups of any range", what,
           w->name);
        is_int(dnn_dataset_verify(d, i, 0, s->count, &err), 0, "checksums");
        if (err.code != 0) printf("# %s\n", err.text);
    }
    dnn_dataset_close(d);
    made_free(&want);
}

/* ---- damage ---- */

/* Open it and compare every checksum. */
static int inspect(struct dnn_err *err)
{
    struct dnn_dataset *d = NULL;
    int rc = dnn_dataset_open(NULL, path, 1, &d, err);

    for (int i = 0; rc == 0 && i < MADE_SPLITS; i++)
        rc = dnn_dataset_verify(d, i, 0, dnn_dataset_info(d)->split[i].count, err);
    dnn_dataset_close(d);
    return rc;
}

static void set_file(const char *name, const char *bytes, size_t len)
{
    char *full = dnn_format("%s/%s", path, name);
    int fd = open(full, O_WRONLY | O_TRUNC);

    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len) perror(full);
    if (fd >= 0) close(fd);
    dnn_free(full);
}

static char *get_file(const char *name, size_t *len)
{
    char *full = dnn_format("%s/%s", path, name), *bytes = NULL;

    dnn_file_read(full, 1 << 30, &bytes, len, NULL);
    dnn_free(full);
    return bytes;
}

static void cut_off(const char *name)
{
    size_t len = 0;
    char *bytes = get_file(name, &len);
    int missed = 0;

    for (size_t k = 0; k < 20; k++) {
        struct dnn_err err = {0};

        set_file(name, bytes, len * k / 20);
        if (inspect(&err) != DNN_EDATA) {
            printf("# after %zu of %zu bytes: %s\n", len * k / 20, len, err.text);
            missed++;
        }
    }
    set_file(name, bytes, len);
    is_int(missed, 0, name);
    dnn_free(bytes);
}

/* Padding between blocks has no checksum: only that may change undetected. */
static bool unused(size_t at, const char *bytes, size_t len)
{
    size_t from = at > 7 ? at - 7 : 0, zeros = 0;

    for (size_t i = from; i < len && i < at + 8; i++)
        zeros += bytes[i] == 0;
    return bytes[at] == 0 && zeros > 0;
}

static void flip(const char *name, size_t step)
{
    size_t len = 0, found = 0, tried = 0, missed = 0;
    char *bytes = get_file(name, &len);

    for (size_t at = 0; at < len; at += step) {
        struct dnn_err err = {0};

        bytes[at] ^= 0x10;
        set_file(name, bytes, len);
        int rc = inspect(&err);
        bytes[at] ^= 0x10;
        tried++;
        if (rc == DNN_EDATA)
            found++;
        else if (rc != 0 || strncmp(name, "data.", 5) != 0 || !unused(at, bytes, len)) {
            printf("# byte %zu of %s: %s\n", at, name, err.text);
            missed++;
        }
    }
    set_file(name, bytes, len);
    ok(missed == 0 && found * 10 >= tried * 6,
       "%s: %zu of %zu changed bytes are found, the others are padding", name, found,
       tried);
    dnn_free(bytes);
}

static void damage(void)
{
    static const char *const files[] = {"md.idx", "md.0", "mmd.0", "data.0", "dnn.idx"};
    struct dnn_err err = {0};

    is_int(made_write(NULL, path, NULL, NULL, &err), 0, "written to be damaged");
    for (int i = 0; i < 5; i++)
        cut_off(files[i]);
    is_int(inspect(&err), 0, "restored, it is complete again");
    for (int i = 0; i < 5; i++) {
        size_t len = 0;

        dnn_free(get_file(files[i], &len));
        flip(files[i], len / 100 + 1);
    }
    for (int i = 0; i < 5; i++) {
        char *from = dnn_format("%s/%s", path, files[i]);
        char *to = dnn_format("%s/gone", dir);

        rename(from, to);
        is_int(inspect(&err), DNN_EDATA, files[i]);
        rename(to, from);
        dnn_free(from);
        dnn_free(to);
    }
    dnn_file_remove_tree(path, NULL);
}

/* The message of one changed byte, whole. */
static void named(void)
{
    struct dnn_err err = {0};
    struct dnn_dataset_info info;
    size_t len = 0, at = 0;
    unsigned char want[16 * 12 * 3];

    made_info(&info);
    made_write(NULL, path, NULL, NULL, &err);
    char *bytes = get_file("data.0", &len);
    made_sample(&info.split[0], 0, 0, 6, want);
    while (at + sizeof want < len && memcmp(bytes + at, want, sizeof want) != 0)
        at++;
    bytes[at + 100] ^= 1;
    set_file("data.0", bytes, len);
    is_int(inspect(&err), DNN_EDATA, "a changed pixel");
    char *text = dnn_format("%s: train: sample 6 (a/6.png): checksum mismatch in "
                            "input; the file is damaged",
                            path);
    is_text(err.text, text, "is found, and the message names its sample");
    dnn_free(text);
    dnn_free(bytes);
    made_free(&info);
    dnn_file_remove_tree(path, NULL);
}

/* ---- names ---- */

static int entries(void)
{
    DIR *d = opendir(dir);
    int n = 0;

    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void replaced(void)
{
    struct dnn_err err = {0};
    struct dnn_bp_how how = {.replace = true};
    char hash[33], *want;

    is_int(made_write(NULL, path, NULL, NULL, &err), 0, "a dataset");
    is_int(made_write(NULL, path, NULL, hash, &err), DNN_EIO, "a second");
    want = dnn_format("%s: exists already; use --replace to replace it", path);
    is_text(err.text, want, "is refused");
    dnn_free(want);
    is_int(made_write(NULL, path, &how, hash, &err), 0,
           "and replaces it with --replace");
    is_int(entries(), 1, "nothing else is left");
    same_all("replaced", hash);
    dnn_file_remove_tree(path, NULL);
    mkdir(path, 0777);
    is_int(made_write(NULL, path, &how, hash, &err), DNN_EIO, "a directory");
    want = dnn_format("%s: exists and is not a dataset; it is not replaced", path);
    is_text(err.text, want, "that is not a dataset is never replaced");
    dnn_free(want);
    rmdir(path);
}

static void leftovers(void)
{
    struct dnn_err err = {0};
    char host[256] = "", *part, *want;

    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    part = dnn_format("%s/.a.bp.%s-%d.part", dir, host, 99999999); /* no such process */
    mkdir(part, 0777);
    is_int(made_write(NULL, path, NULL, NULL, &err), 0,
           "after a writer that was killed");
    is_int(entries(), 1, "whose files are removed");
    dnn_free(part);
    dnn_file_remove_tree(path, NULL);

    part = dnn_format("%s/.a.bp.%s-1.part", dir, host); /* process 1 lives */
    mkdir(part, 0777);
    is_int(made_write(NULL, path, NULL, NULL, &err), DNN_EIO,
           "while another process writes");
    want = dnn_format("%s: being written by process 1 (%s)", path, part);
    is_text(err.text, want, "its files are not changed");
    dnn_free(want);
    rmdir(part);
    dnn_free(part);

    part = dnn_format("%s/.a.bp.second.bp.%s-99999999.part", dir, host);
    mkdir(part, 0777);
    is_int(made_write(NULL, path, NULL, NULL, &err), 0, "a.bp.second.bp is left, too");
    is_int(rmdir(part), 0, "its files are not those of a.bp");
    dnn_free(part);
    dnn_file_remove_tree(path, NULL);

    part = dnn_format("%s/.a.bp.elsewhere-5.part", dir);
    mkdir(part, 0777);
    is_int(made_write(NULL, path, NULL, NULL, &err), DNN_EIO,
           "a writer on another machine");
    want = dnn_format("%s: being written by process 5 on elsewhere; if that process "
                      "was killed, remove %s",
                      path, part);
    is_text(err.text, want, "its message");
    dnn_free(want);
    rmdir(part);
    dnn_free(part);

    made_write(NULL, path, NULL, NULL, &err);
    part = dnn_format("%s/.a.bp.%s-99999999.old", dir, host);
    rename(path, part);
    is_int(made_write(NULL, path, NULL, NULL, &err), DNN_EIO,
           "the old dataset of an interrupted replacement is restored");
    is_int(inspect(&err), 0, "whole");
    dnn_free(part);
    dnn_file_remove_tree(path, NULL);
    is_int(entries(), 0, "nothing is left");
}

/* A killed writer leaves no dataset, and the next writer succeeds. */
static void killed(void)
{
    struct dnn_err err = {0};
    pid_t pid = fork();

    if (pid == 0) {
        struct dnn_dataset_info info;
        struct dnn_dataset_writer *w = NULL;

        made_info(&info);
        if (dnn_dataset_create(NULL, path, &info, NULL, &w, &err) == 0 &&
            made_put(w, &info, 0, 0, &err) == 0 && dnn_dataset_flush(w, &err) == 0)
            raise(SIGKILL);
        _exit(1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a writer is killed");
    is_int(inspect(&err), DNN_EIO, "there is no dataset");
    is_int(entries(), 1, "but temporary files");
    is_int(made_write(NULL, path, NULL, NULL, &err), 0, "the next one writes it");
    is_int(entries(), 1, "and removes them");
    dnn_file_remove_tree(path, NULL);
}

static void too_early(void)
{
    struct dnn_dataset_info info;
    struct dnn_dataset_writer *w = NULL;
    struct dnn_err err = {0};

    made_info(&info);
    is_int(dnn_dataset_create(NULL, path, &info, NULL, &w, &err), 0, "begun");
    is_int(made_put(w, &info, 0, 0, &err), 0, "a chunk");
    is_int(inspect(&err), DNN_EIO, "no dataset before it is finished");
    is_int(made_put(w, &info, 0, 1, &err), DNN_EDATA, "not a chunk");
    char *want = dnn_format(
        "%s: train: samples 1 to 5 are not a chunk: chunks have 4 of the 23 samples",
        path);
    is_text(err.text, want, "is refused");
    dnn_free(want);
    is_int(dnn_dataset_finish(w, NULL, &err), DNN_EDATA, "finished too early");
    want = dnn_format("%s: train: sample 4 (perhaps more) was not written", path);
    is_text(err.text, want, "is refused");
    dnn_free(want);
    is_int(entries(), 0, "and no files are left");
    made_free(&info);
}

static void compressed(void)
{
    struct dnn_bp_how how = {.compress = "bzip2"};
    struct dnn_err err = {0};
    char hash[33], plain[33];

    if (!dnn_bp_operator("bzip2")) {
        skip("compressed", "ADIOS2 has no bzip2");
        return;
    }
    made_write(NULL, path, NULL, plain, &err);
    dnn_file_remove_tree(path, NULL);
    is_int(made_write(NULL, path, &how, hash, &err), 0, "compressed");
    is_text(hash, plain, "has the same hash");
    same_all("compressed", hash);
    cut_off("data.0");
    dnn_file_remove_tree(path, NULL);
}

static void others(void)
{
    struct dnn_err err = {0};
    struct dnn_bp *bp = NULL;
    struct dnn_shape shape = {.ndim = 1, .dim = {3}};
    int var;

    dnn_bp_create(NULL, path, NULL, &bp, &err);
    dnn_bp_define(bp, "x", DNN_U8, &shape, false, &var, &err);
    dnn_bp_put(bp, var, 0, 3, "abc", &err);
    dnn_bp_finish(bp, &err);
    is_int(inspect(&err), DNN_EDATA, "another BP file");
    char *want = dnn_format("%s: is a BP file, but not a prepared dataset (the "
                            "attribute dataset/format is not \"dnn-toolkit dataset\")",
                            path);
    is_text(err.text, want, "is no dataset");
    dnn_free(want);
    dnn_file_remove_tree(path, NULL);
}

int main(void)
{
    struct dnn_err err = {0};
    char hash[33] = "";

    if (mkdtemp(dir) == NULL) return 1;
    snprintf(path, sizeof path, "%s/a.bp", dir);
    is_int(made_write(NULL, path, NULL, hash, &err), 0, "written");
    if (err.code != 0) printf("# %s\n", err.text);
    same_all("plain", hash);
    dnn_file_remove_tree(path, NULL);
    compressed();
    damage();
    named();
    replaced();
    leftovers();
    killed();
    too_early();
    others();
    dnn_file_remove_tree(dir, NULL);
    return done();
}
