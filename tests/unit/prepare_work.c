/* prepare_work.c - the work directory: units that are stored and found again, damaged
 * units, and the lock.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare_run.h"

#include "prepare/prepare_impl.h"

#include <fcntl.h>
#include <sys/wait.h>

#define ONE "0123456789abcdef0123456789abcdef"
#define TWO "fedcba9876543210fedcba9876543210"

static char *to, *dir;

static void open_work(struct dnn_work *work, const char *print, bool restart)
{
    struct dnn_err err = {0};

    ok(dnn_work_open(work, to, print, restart, &err) == 0, "it is opened %s", err.text);
}

/* Number of units that exist. */
static int64_t there(const struct dnn_work *work, const char *pass)
{
    unsigned char done[20] = {0};
    int64_t n = 0;

    dnn_work_list(work, pass, 20, done, NULL);
    for (int i = 0; i < 20; i++)
        n += done[i];
    return n;
}

static void test_units(void)
{
    struct dnn_work work;
    struct dnn_err err = {0};
    char *bytes = NULL, *name = dnn_work_dir("a/b/set.bp");
    size_t len = 0;

    is_text(name, "a/b/.set.bp.work", "its name comes from that of the dataset");
    dnn_free(name);
    open_work(&work, ONE, false);
    is_int(there(&work, "piece"), 0, "it is empty");
    is_int(dnn_work_save(&work, "piece", 3, "abc\0d", 5, &err), 0, "a unit is stored");
    is_int(dnn_work_save(&work, "piece", 19, "", 0, &err), 0, "an empty one too");
    dnn_work_save(&work, "stats1", 3, "x", 1, &err);
    is_int(there(&work, "piece"), 2, "both are found");
    is_int(there(&work, "stats"), 0, "those of another pass are not mixed in");
    is_int(dnn_work_load(&work, "piece", 3, &bytes, &len, &err), 0, "read again");
    ok(len == 5 && memcmp(bytes, "abc\0d", 5) == 0, "the bytes are the same");
    dnn_free(bytes);
    dnn_work_close(&work, false);

    open_work(&work, ONE, false);
    is_int(there(&work, "piece"), 2, "opened again, they are still there");
    dnn_work_close(&work, false);
    open_work(&work, TWO, false);
    is_int(there(&work, "piece"), 0, "with another fingerprint they are not");
    dnn_work_save(&work, "piece", 0, "x", 1, &err);
    dnn_work_close(&work, false);
    open_work(&work, TWO, true);
    is_int(there(&work, "piece"), 0, "nor with --restart");
    dnn_work_close(&work, true);
    struct stat st;
    ok(stat(dir, &st) != 0, "at the end it is removed");
}

/* One byte of a unit changes, or some are missing. */
static void damage(const char *what, off_t at, bool cut)
{
    struct dnn_work work;
    struct dnn_err err = {0};
    char *bytes = NULL, *path = dnn_format("%s/piece-00000001", dir);
    size_t len;

    dnn_work_open(&work, to, ONE, true, &err);
    dnn_work_save(&work, "piece", 1, "some bytes", 10, &err);
    int fd = open(path, O_RDWR);
    if (cut ? ftruncate(fd, at) != 0 : pwrite(fd, "\xff", 1, at) != 1)
        ok(false, "%s cannot be damaged", path);
    close(fd);
    dnn_work_load(&work, "piece", 1, &bytes, &len, &err);
    is_text(without_scratch(err.text),
            ".set.bp.work/piece-00000001: damaged and removed; run the same command "
            "again to make it anew",
            what);
    is_int(there(&work, "piece"), 0, "it is removed");
    dnn_work_close(&work, true);
    dnn_free(path);
}

static void test_lock(void)
{
    struct dnn_work work, other;
    struct dnn_err err = {0};

    open_work(&work, ONE, false);
    dnn_work_save(&work, "piece", 1, "x", 1, &err);
    pid_t pid = fork();
    if (pid == 0) {
        /* The lock belongs to the process: a second process is refused. */
        int rc = dnn_work_open(&other, to, TWO, true, &err);
        _exit(rc == DNN_EIO &&
                      strstr(
                          err.text,
                          "another dnn-prepare is working on this dataset: process ") !=
                          NULL
                  ? 0
                  : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a second process is refused");
    is_int(there(&work, "piece"), 1, "and has changed nothing");
    dnn_work_close(&work, true);
}

int main(void)
{
    scratch_begin();
    to = dnn_format("%s/set.bp", scratch);
    dir = dnn_work_dir(to);
    test_units();
    damage("a byte of the content changed", 125, false);
    damage("a byte of the header changed", 3, false);
    damage("the end is missing", 20, true);
    damage("the last byte is missing", 129, true);
    test_lock();
    dnn_free(dir);
    dnn_free(to);
    return scratch_end();
}
