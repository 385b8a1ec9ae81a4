/* base_memory.c - memory of the machine and of control groups.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/memory.h"
#include "base/file.h"
#include "base/mem.h"
#include "tap.h"

#include <stdlib.h>

static char root[] = "/tmp/base_memory.XXXXXX";

/* A file below root. */
static void put(const char *name, const char *text)
{
    char *path = dnn_format("%s/%s", root, name), *slash = strrchr(path, '/');

    *slash = '\0';
    dnn_file_make_dirs(path, NULL);
    *slash = '/';
    dnn_file_write(path, text, strlen(text), NULL);
    dnn_free(path);
}

static void is(long long total, long long available, const char *what)
{
    struct dnn_memory m = dnn_memory_below(root);

    is_int((long long)m.total, total, what);
    is_int((long long)m.available, available, "and what is available of it");
}

int main(void)
{
    if (!ok(mkdtemp(root) != NULL, "a directory to write to")) return done();
    is(-1, -1, "unknown");
    put("proc/meminfo", "MemTotal:    1000 kB\nMemFree: 1 kB\nMemAvailable:  800 kB\n");
    is(1024000, 819200, "the machine");
    put("proc/self/cgroup", "1:name=systemd:/x\n0::/job/step\n");
    put("sys/fs/cgroup/job/step/memory.max", "max\n");
    put("sys/fs/cgroup/job/step/memory.current", "900000\n");
    is(1024000, 819200, "no limit");
    put("sys/fs/cgroup/job/memory.max", "500000\n");
    put("sys/fs/cgroup/job/memory.current", "400000\n");
    is(500000, 100000, "a limit of the job");
    put("sys/fs/cgroup/job/memory.stat",
        "anon 5\nfile 9\ninactive_anon 7\ninactive_file 60000\nactive_file 30000\n");
    is(500000, 190000, "files in memory can be given up");
    put("sys/fs/cgroup/memory.max", "300000\n");
    put("sys/fs/cgroup/memory.current", "310000\n");
    is(300000, 0, "a limit of a container");
    ok(dnn_memory_total() >= dnn_memory_available() && dnn_memory_available() > 0,
       "memory here");
    dnn_file_remove_tree(root, NULL);
    return done();
}
