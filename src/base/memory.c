/* memory.c - how much memory the machine has, or the control group of this process.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/memory.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The number after key in the file dir/name. */
static bool number_in(const char *dir, const char *name, const char *key, size_t *out)
{
    char *path = dnn_format("%s/%s", dir, name), *text = NULL;
    bool found = false;

    if (dnn_file_read_text(path, 1 << 20, &text, NULL) == 0) {
        const char *at = strstr(text, key);

        found = at != NULL && sscanf(at + strlen(key), " %zu", out) == 1;
    }
    dnn_free(text);
    dnn_free(path);
    return found;
}

/* Use the limit of a control group if it is lower. */
static void limit(const char *dir, struct dnn_memory *m)
{
    size_t max, used, inactive = 0, active = 0;

    if (!number_in(dir, "memory.max", "", &max)) return; /* "max": none */
    if (max < m->total) m->total = max;
    if (!number_in(dir, "memory.current", "", &used)) return;
    /* The page cache, which the kernel gives up for other memory, is counted as used.
     */
    number_in(dir, "memory.stat", "\ninactive_file ", &inactive);
    number_in(dir, "memory.stat", "\nactive_file ", &active);
    used -= inactive + active < used ? inactive + active : used;
    size_t available = max > used ? max - used : 0;
    if (available < m->available) m->available = available;
}

/* "0::/a/b" in groups: the limits of /a/b, of /a, and of the root, which a container
 * has. */
static void limit_all(const char *root, char *groups, struct dnn_memory *m)
{
    char *name = strstr(groups, "0::/");

    if (name == NULL) return;
    name += strlen("0::");
    for (char *end = name + strcspn(name, "\n"); end != NULL;
         end = strrchr(name, '/')) {
        *end = '\0';
        char *dir = dnn_format("%s/sys/fs/cgroup%s", root, name);
        limit(dir, m);
        dnn_free(dir);
    }
}

struct dnn_memory dnn_memory_below(const char *root)
{
    struct dnn_memory m = {SIZE_MAX, SIZE_MAX};
    char *proc = dnn_format("%s/proc", root), *groups = NULL;
    char *self = dnn_format("%s/self/cgroup", proc);
    size_t kib;

    if (number_in(proc, "meminfo", "MemTotal:", &kib)) m.total = kib * 1024;
    if (number_in(proc, "meminfo", "MemAvailable:", &kib)) m.available = kib * 1024;
    if (dnn_file_read_text(self, 1 << 20, &groups, NULL) == 0)
        limit_all(root, groups, &m);
    dnn_free(groups);
    dnn_free(self);
    dnn_free(proc);
    return m;
}

size_t dnn_memory_total(void)
{
    return dnn_memory_below("").total;
}

size_t dnn_memory_available(void)
{
    return dnn_memory_below("").available;
}
