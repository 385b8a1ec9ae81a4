/* ckpt_save.c - checkpoints written and read, which are kept, the best, and error
 * messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/log.h"
#include "unit/ckpt_made.h"

#include <dirent.h>
#include <sys/stat.h>

static char top[] = "/tmp/dnn-ckpt-XXXXXX";
static char dir[128];

static struct dnn_ckpts *opened(int keep, bool background)
{
    struct dnn_ckpt_cfg cfg = {.dir = dir, .keep = keep, .background = background};
    struct dnn_ckpts *c = NULL;
    struct dnn_err err = {0};

    if (dnn_ckpt_open(NULL, &cfg, &c, &err) < 0) printf("# %s\n", err.text);
    return c;
}

/* The sorted list of files as one text. */
static const char *listed(void)
{
    static char text[2000];
    struct dirent **entry;
    int n = scandir(dir, &entry, NULL, alphasort);

    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;

        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            strcat(text, text[0] == '\0' ? "" : " ");
            strcat(text, name);
        }
        free(entry[i]);
    }
    free(entry);
    return text;
}

static void there_and_back(int n, const char *state, bool background, const char *what)
{
    struct dnn_ckpt_array *a = made_arrays(n);
    struct dnn_err err = {0};
    int64_t step = 0;
    char *got = NULL;

    struct dnn_ckpts *c = opened(2, background);
    made_fill(n, a, 7);
    ok(dnn_ckpt_save(c, 7, n, a, state, false, &err) == 0, "%s: save", what);
    made_fill(n, a, 8); /* the run continues at once */
    ok(dnn_ckpt_close(c, &err) == 0, "%s: close", what);
    c = opened(2, background);
    int rc = dnn_ckpt_load(c, NULL, n, a, &step, &got, &err);
    ok(rc == 0 && step == 7 && made_is(n, a, 7), "%s: load", what);
    is_text(got, state == NULL ? "" : state, "the state");
    if (err.text[0] != '\0') printf("# %s\n", err.text);
    dnn_free(got);
    dnn_ckpt_close(c, NULL);
    made_free(n, a);
    dnn_file_remove_tree(dir, NULL);
}

static void staying(void)
{
    struct dnn_ckpt_array *a = made_arrays(3);
    struct dnn_err err = {0};
    struct dnn_ckpts *c = opened(2, true);
    int64_t step = 0;
    char *state = NULL;

    for (int i = 1; i <= 6; i++) {
        made_fill(3, a, i);
        if (dnn_ckpt_save(c, i, 3, a, "{}", i == 2, &err) < 0)
            printf("# %s\n", err.text);
    }
    is_int(dnn_ckpt_wait(c, &err), 0, "wait");
    is_text(listed(),
            "best.bp ckpt-000000002.bp ckpt-000000005.bp ckpt-000000006.bp lock",
            "the last two and the best are kept");
    dnn_ckpt_close(c, NULL);

    c = opened(2, true);
    ok(dnn_ckpt_load(c, "best", 3, a, &step, &state, &err) == 0 && step == 2 &&
           made_is(3, a, 2),
       "the best one");
    dnn_free(state);
    ok(dnn_ckpt_load(c, "5", 3, a, &step, &state, &err) == 0 && step == 5 &&
           made_is(3, a, 5),
       "one by its step");
    dnn_free(state);
    char *path = dnn_format("%s/best.bp", dir);
    ok(dnn_ckpt_load(c, path, 3, a, &step, &state, &err) == 0 && step == 2 &&
           made_is(3, a, 2),
       "one by its path");
    dnn_free(state);
    dnn_free(path);
    dnn_ckpt_load(c, "4", 3, a, &step, &state, &err);
    char *want = dnn_format("%s: no checkpoint of step 4; found: 2, 5, 6", dir);
    is_text(err.text, want, "a step that does not exist");
    dnn_free(want);
    ok(step == -1 && state == NULL, "then step is -1");

    made_fill(3, a, 7);
    dnn_ckpt_save(c, 7, 3, a, "{}", true, &err);
    dnn_ckpt_wait(c, &err);
    is_text(listed(), "best.bp ckpt-000000006.bp ckpt-000000007.bp lock",
            "the old best one is removed after a new one");
    dnn_ckpt_close(c, NULL);
    made_free(3, a);
}

/* Back to an earlier step, and the same step again. */
static void again(void)
{
    struct dnn_ckpt_array *a = made_arrays(3);
    struct dnn_err err = {0};
    struct dnn_ckpts *c = opened(2, true);
    int64_t step = 0;
    char *state = NULL;

    made_fill(3, a, 77);
    dnn_ckpt_save(c, 6, 3, a, "{\"again\": 1}", false, &err);
    is_int(dnn_ckpt_wait(c, &err), 0, "a step that exists already");
    is_text(listed(), "ckpt-000000006.bp ckpt-000000007.bp.superseded lock",
            "replaces it, and later ones are renamed");
    dnn_ckpt_load(c, NULL, 3, a, &step, &state, &err);
    ok(step == 6 && made_is(3, a, 77), "with the last saved content");
    is_text(state, "{\"again\": 1}", "and its state");
    dnn_free(state);
    dnn_ckpt_close(c, NULL);
    c = opened(2, true);
    dnn_ckpt_save(c, 9, 3, a, "{}", true, &err);
    dnn_ckpt_close(c, NULL);
    c = opened(2, true);
    dnn_ckpt_save(c, 3, 3, a, "{}", true, &err);
    dnn_ckpt_close(c, NULL);
    char *path = NULL;
    ok(dnn_ckpt_find(dir, "best", &path, &err) == 0 &&
           strstr(path, "ckpt-000000003.bp") != NULL,
       "the first one of a new run is its best, and replaces a later one %s", err.text);
    dnn_free(path);
    made_free(3, a);
    dnn_file_remove_tree(dir, NULL);
}

static void leftover(const char *name)
{
    char *path = dnn_format("%s/%s", dir, name), *file = dnn_format("%s/data.0", path);

    mkdir(path, 0777);
    dnn_file_write(file, "x", 1, NULL);
    dnn_free(path);
    dnn_free(file);
}

static void leftovers(void)
{
    struct dnn_ckpt_array *a = made_arrays(3);
    struct dnn_err err = {0};
    struct dnn_ckpts *c = opened(2, true);
    char *link = dnn_format("%s/.best.part", dir);

    dnn_ckpt_save(c, 3, 3, a, NULL, false, &err);
    dnn_ckpt_close(c, &err);
    leftover(".ckpt-000000004.bp.part");
    leftover(".ckpt-000000002.bp.old");
    leftover("mine");
    ok(symlink("ckpt-000000003.bp", link) == 0, "a link that was not renamed yet");
    dnn_ckpt_close(opened(2, true), NULL);
    is_text(listed(), "best.bp ckpt-000000003.bp lock mine",
            "files of a killed writer are removed or renamed");
    ok(symlink("ckpt-000000004.bp", link) == 0,
       "a link to a checkpoint that does not exist");
    dnn_ckpt_close(opened(2, true), NULL);
    is_text(listed(), "best.bp ckpt-000000003.bp lock mine", "is removed");
    /* Killed between the two steps of a replacement. */
    char *from = dnn_format("%s/ckpt-000000003.bp", dir);
    char *to = dnn_format("%s/.ckpt-000000003.bp.old", dir);
    rename(from, to);
    leftover(".ckpt-000000003.bp.part");
    dnn_ckpt_close(opened(2, true), NULL);
    is_text(listed(), "best.bp ckpt-000000003.bp lock mine",
            "the replaced checkpoint is restored");
    FILE *nowhere = fopen("/dev/null", "w");
    is_int(dnn_ckpt_verify(from, nowhere, &err), 0, "whole");
    fclose(nowhere);
    dnn_free(from);
    dnn_free(to);
    dnn_free(link);
    made_free(3, a);
    dnn_file_remove_tree(dir, NULL);
}

static void taken(void)
{
    struct dnn_ckpt_cfg cfg = {.dir = dir, .keep = 1};
    struct dnn_ckpts *c = opened(1, true), *other = NULL;
    struct dnn_err err = {0};
    char host[256];

    gethostname(host, sizeof host);
    is_int(dnn_ckpt_open(NULL, &cfg, &other, &err), DNN_EIO, "a second run");
    char *want = dnn_format(
        "%s: process %ld on %s is using it; every run needs its own directory", dir,
        (long)getpid(), host);
    is_text(err.text, want, "gets the process that uses the directory");
    dnn_ckpt_close(c, NULL);
    is_int(dnn_ckpt_open(NULL, &cfg, &other, &err), 0, "which is free afterwards");
    dnn_ckpt_close(other, NULL);
    cfg.keep = 0;
    dnn_ckpt_open(NULL, &cfg, &other, &err);
    dnn_free(want);
    want =
        dnn_format("%s: number of checkpoints to keep is 0; must be at least 1", dir);
    is_text(err.text, want, "none to keep");
    dnn_free(want);
    dnn_file_remove_tree(dir, NULL);
}

static void others_arrays(void)
{
    struct dnn_ckpt_array *a = made_arrays(8);
    struct dnn_err err = {0};
    struct dnn_ckpts *c = opened(1, true);
    int64_t step;
    char *state;

    made_fill(8, a, 1);
    dnn_ckpt_save(c, 1, 8, a, NULL, false, &err);
    a[0].shape.dim[0] = 2;
    a[3].type = DNN_BF16;
    is_int(dnn_ckpt_load(c, NULL, 7, a, &step, &state, &err), DNN_EDATA,
           "arrays that do not agree");
    char *want = dnn_format(
        "%s/ckpt-000000001.bp: does not match this run: conv_1/kernel is f32 "
        "3x3x2x8, expected f32 2x3x2x8; half is f16 5x3, expected bf16 5x3; i16 is not "
        "expected",
        dir);
    is_text(err.text, want, "are named");
    dnn_free(want);
    for (int i = 0; i < 6; i++)
        a[i].shape.dim[0]++;
    dnn_free((char *)a[7].name);
    a[7].name = dnn_strdup("another");
    dnn_ckpt_load(c, NULL, 8, a, &step, &state, &err);
    want = dnn_format(
        "%s/ckpt-000000001.bp: does not match this run: a/b/c/d//e/ is f64 "
        "17, expected f64 18; another is missing; brain half is bf16 5x3, expected "
        "bf16 6x3; conv_1/kernel:m is f32 3x3x2x8, expected f32 4x3x2x8; and 3 more",
        dir);
    is_text(err.text, want, "the first few");
    dnn_free(want);
    is_text(listed(), "ckpt-000000001.bp lock", "and the file is kept");
    dnn_ckpt_close(c, NULL);
    made_free(8, a);
    dnn_file_remove_tree(dir, NULL);
}

static void refused(void)
{
    struct dnn_ckpt_array *a = made_arrays(3);
    struct dnn_err err = {0};
    struct dnn_ckpts *c = opened(1, true);
    const char *name = a[1].name;
    char *want = dnn_format("%s: two arrays to save have the name conv_1/kernel", dir);

    a[1].name = a[0].name;
    dnn_ckpt_save(c, 1, 3, a, NULL, false, &err);
    is_text(err.text, want, "a name twice");
    dnn_free(want);
    a[1].name = "a\nb";
    dnn_ckpt_save(c, 1, 3, a, NULL, false, &err);
    want = dnn_format("%s: array 1 to save has a control character in its name", dir);
    is_text(err.text, want, "a name of two lines");
    dnn_free(want);
    a[1].name = name;
    dnn_ckpt_save(c, -1, 3, a, NULL, false, &err);
    want = dnn_format("%s: step is -1; must not be negative", dir);
    is_text(err.text, want, "a step before the first");
    dnn_free(want);
    a[0].shape = (struct dnn_shape){
        .ndim = 2, .dim = {1 << 30, 1 << 27}
    };
    is_int(dnn_ckpt_reserve(c, 1, a, &err), DNN_ENOMEM, "more memory than available");
    want = dnn_format("%s: a copy of the arrays to save needs 512.0 PiB of memory for "
                      "1 array (0 B allocated), which is not available; without "
                      "background writing no copy is needed",
                      dir);
    is_text(err.text, want, "its message");
    dnn_free(want);
    is_int(dnn_ckpt_reserve(c, 2, a + 1, &err), 0, "available memory");
    dnn_ckpt_close(c, NULL);
    made_free(3, a);
    dnn_file_remove_tree(dir, NULL);
}

static void verified(void)
{
    struct dnn_ckpt_array *a = made_arrays(2);
    struct dnn_err err = {0};
    struct dnn_ckpts *c = opened(1, true);
    char *text = NULL, *path = dnn_format("%s/ckpt-000000012.bp", dir);
    size_t len;

    made_fill(2, a, 12);
    dnn_ckpt_save(c, 12, 2, a, "{\"epoch\": 3}", false, &err);
    dnn_ckpt_wait(c, &err);
    FILE *where = open_memstream(&text, &len);
    is_int(dnn_ckpt_verify(path, where, &err), 0, "verify");
    fclose(where);
    char *want = dnn_format("%s: step 12, 2 arrays, 1.1 KiB, 12 bytes of state\n"
                            "name             type  shape             checksum\n"
                            "conv_1/kernel    f32   3x3x2x8           "
                            "SUM ok\n"
                            "conv_1/kernel:m  f32   3x3x2x8           "
                            "SUM ok\n"
                            "complete: all checksums are correct\n",
                            path);
    for (char *at = text; (at = strstr(at, " ok\n")) != NULL; at += 4) {
        memmove(at - 13, at, strlen(at) + 1); /* 16 digits become SUM */
        at -= 13;
        memcpy(at - 3, "SUM", 3);
    }
    is_text(text, want, "its table and result");
    free(text);
    dnn_free(want);

    double held, all;
    dnn_ckpt_times(c, &held, &all);
    ok(held > 0 && all >= held, "times");
    struct dnn_ckpt_file *file = NULL;
    is_int(dnn_ckpt_file_open(path, &file, &err), 0, "opened by itself");
    is_int(dnn_ckpt_file_count(file), 2, "arrays");
    is_text(dnn_ckpt_file_array(file, 1)->name, "conv_1/kernel:m", "a name");
    is_text(dnn_ckpt_file_state(file), "{\"epoch\": 3}", "the state");
    memset(a[1].data, 0, made_bytes(&a[1]));
    ok(dnn_ckpt_file_read(file, 1, a[1].data, &err) == 0 && made_is(2, a, 12),
       "an array");
    dnn_ckpt_file_close(file);
    dnn_ckpt_close(c, NULL);
    is_int(dnn_ckpt_file_open(dir, &file, &err), DNN_EDATA, "a directory of them");
    made_free(2, a);
    dnn_free(path);
    dnn_file_remove_tree(dir, NULL);
}

/* A background error is returned by the next call, once. */
static void failing(void)
{
    struct dnn_ckpt_array *a = made_arrays(3);
    struct dnn_err err = {0};
    struct dnn_ckpts *c = opened(2, true);
    int64_t step;
    char *state;

    made_fill(3, a, 1);
    dnn_ckpt_save(c, 1, 3, a, NULL, true, &err);
    is_int(dnn_ckpt_wait(c, &err), 0, "a first one");
    /* A directory where a link should be. */
    char *in = dnn_format("%s/.best.part", dir);
    mkdir(in, 0777);
    made_fill(3, a, 2);
    is_int(dnn_ckpt_save(c, 2, 3, a, NULL, true, &err), 0, "a save is started");
    is_int(dnn_ckpt_save(c, 3, 3, a, NULL, false, &err), DNN_EIO,
           "the next call returns its error");
    char *want = dnn_format(
        "%s/ckpt-000000002.bp: %s/.best.part: cannot be created: Is a directory", dir,
        dir);
    is_text(err.text, want, "and its message");
    is_int(dnn_ckpt_wait(c, &err), 0, "once");
    rmdir(in);
    is_text(listed(), "best.bp ckpt-000000001.bp lock", "no files of it are left");
    ok(dnn_ckpt_load(c, "best", 3, a, &step, &state, &err) == 0 && step == 1 &&
           made_is(3, a, 1),
       "the earlier one is unchanged");
    dnn_free(state);
    dnn_ckpt_save(c, 4, 3, a, NULL, false, &err);
    is_int(dnn_ckpt_close(c, &err), 0, "and it continues");
    dnn_free(want);
    dnn_free(in);
    made_free(3, a);
    dnn_file_remove_tree(dir, NULL);
}

int main(void)
{
    struct dnn_err err = {0};

    if (mkdtemp(top) == NULL) return 1;
    snprintf(dir, sizeof dir, "%s/a/b", top);
    dnn_log_levels("error", &err);
    there_and_back(MADE, "{\"step\": 7, \"lr\": 0.1}", true, "all kinds of arrays");
    there_and_back(MADE, "{}", false, "not in the background");
    there_and_back(0, "{\"only\": \"state\"}", true, "no arrays");
    there_and_back(0, NULL, true, "no arrays, no state");
    there_and_back(3, "", true, "no state");
    there_and_back(1000, "{}", true, "a thousand arrays");
    staying();
    again();
    leftovers();
    taken();
    others_arrays();
    refused();
    verified();
    failing();
    dnn_file_remove_tree(top, NULL);
    return done();
}
