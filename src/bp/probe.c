/* probe.c - test a BP file of another program in a separate process, which may crash.
 *
 * ADIOS2 does not validate the tables of a file.  Damage that does not change their
 * lengths is not detected by check.c, and makes ADIOS2 crash or hang.  In our own files
 * it is detected by the checksums.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "bp/bp_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT = 10, BYTES_PER_SECOND = 20 << 20, LARGE = 256 << 20 };

/* Read the first and the last row of an array. */
static bool try_rows(struct dnn_bp *bp, int var)
{
    int64_t rows = dnn_bp_var(bp, var)->shape.dim[0], bytes = bp->var[var].row_bytes;
    char *buffer = bytes > LARGE || rows == 0 ? NULL : malloc((size_t)bytes + 1);
    int64_t *first, n;

    if (dnn_bp_blocks(bp, var, &first, &n, NULL) < 0) return false;
    bool good =
        buffer == NULL || (dnn_bp_request(bp, var, 0, 1, buffer, NULL) == 0 &&
                           dnn_bp_fetch(bp, NULL) == 0 &&
                           dnn_bp_request(bp, var, rows - 1, 1, buffer, NULL) == 0 &&
                           dnn_bp_fetch(bp, NULL) == 0);
    free(buffer);
    return good;
}

static _Noreturn void try_all(const char *path, size_t md_bytes)
{
    int null = open("/dev/null", O_WRONLY);

    /* Handlers (of MPI, for example) would print messages about this process. */
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        signal(fatal[i], SIG_DFL);
    if (null >= 0) dup2(null, STDERR_FILENO);
    alarm(TIMEOUT + (unsigned)(md_bytes / BYTES_PER_SECOND));
    struct dnn_bp *bp = dnn_bp_make(NULL, path);
    bp->md_bytes = md_bytes;
    bp->threads = 1;
    bool good = dnn_bp_open_engine(bp, NULL) == 0;
    for (int i = 0; good && i < bp->nvars; i++)
        good = try_rows(bp, i);
    _exit(good ? 0 : 1);
}

int dnn_bp_probe(const char *path, size_t md_bytes, struct dnn_err *err)
{
    int status = 0;
    pid_t pid = fork();

    if (pid < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot start a process to test the file: %s",
                        path, strerror(errno));
    if (pid == 0) try_all(path, md_bytes);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return dnn_fail(err, DNN_EIO, "%s: the process that tests the file: %s",
                            path, strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    return dnn_fail(err, DNN_EDATA, "%s: damaged: ADIOS2 %s while reading it", path,
                    WIFEXITED(status)             ? "fails"
                    : WTERMSIG(status) == SIGALRM ? "hangs"
                                                  : "crashes");
}
