/* finish.c - the end of writing: close the file, flush it to disk, mark it as complete.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "bp/bp_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int sync_one(const char *path, const char *name, struct dnn_err *err)
{
    char *full = dnn_bp_file_name(path, name);
    int fd = open(full, O_RDONLY | O_CLOEXEC), rc = 0;

    if (fd < 0 || fsync(fd) < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: %s", full, strerror(errno));
    if (fd >= 0) close(fd);
    dnn_free(full);
    return rc;
}

static int sync_files(const char *path, bool all, struct dnn_err *err)
{
    DIR *dir = opendir(path);
    int rc = 0;

    if (dir == NULL) return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        if (all || strncmp(e->d_name, "data.", 5) == 0)
            rc = sync_one(path, e->d_name, err);
    }
    closedir(dir);
    return rc == 0 && all ? sync_one(path, ".", err) : rc;
}

static int end_engine(struct dnn_bp *bp, struct dnn_err *err)
{
    struct bp_capture capture;

    dnn_bp_capture_start(&capture);
    bool good = adios2_end_step(bp->engine) == 0 && adios2_close(bp->engine) == 0 &&
                adios2_finalize(bp->adios) == 0;
    bp->failed = !good;
    bp->engine = NULL;
    bp->adios = NULL;
    return dnn_bp_capture_end(&capture, good, bp->path, "closing the file", err);
}

/* The ranks of a node have written to the page cache of the node, so one rank per node
 * flushes it.  ADIOS2's profile is removed. */
static int make_durable(struct dnn_bp *bp, struct dnn_err *err)
{
    bool syncs = bp->comm == NULL || dnn_comm_local_rank(bp->comm) == 0;

    if (bp->rank == 0) {
        char *profile = dnn_bp_file_name(bp->path, "profiling.json");
        unlink(profile);
        dnn_free(profile);
    }
    return syncs ? sync_files(bp->path, bp->rank == 0, err) : 0;
}

int dnn_bp_finish(struct dnn_bp *bp, struct dnn_err *err)
{
    struct dnn_err own = {0};

    if (err == NULL) err = &own;
    if (bp->comm != NULL) dnn_comm_watch(bp->comm, bp->path, 0);
    int rc = end_engine(bp, err);
    if (rc == 0) rc = make_durable(bp, err);
    if (bp->comm != NULL) dnn_comm_unwatch(bp->comm);
    if (bp->size > 1) rc = dnn_comm_agree(bp->comm, rc, err);
    if (rc == 0) rc = dnn_bp_index_write(bp, err);
    dnn_bp_close(bp);
    return rc;
}
