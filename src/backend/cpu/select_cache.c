/* select_cache.c - the cache file of autotuned kernels.
 *
 * A text file: the first line describes the machine and the libraries; then one line
 * per step with the name of the kernel, a tab and the key of the step; the last line is
 * the number of entries. A file that cannot be read or is from another machine is
 * ignored.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/select_impl.h"

#include "backend/cpu/direct.h"
#include "backend/cpu/onednn_impl.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>

enum { LIMIT = 16 << 20 }; /* maximum bytes of a file */

/* The first "model name" of /proc/cpuinfo. */
static char *cpu_model(void)
{
    static const char field[] = "model name";
    char *text = NULL, *model = NULL;
    size_t len;

    if (dnn_file_read("/proc/cpuinfo", LIMIT, &text, &len, NULL) == 0) {
        char *at = strstr(text, field);
        char *colon = at == NULL ? NULL : strchr(at, ':');
        if (colon != NULL) {
            colon += 1 + strspn(colon + 1, " ");
            model = dnn_strndup(colon, strcspn(colon, "\n"));
        }
    }
    dnn_free(text);
    return model != NULL ? model : dnn_strdup("unknown CPU");
}

char *dnn_cpu_tuned_header(const struct dnn_dev *dev)
{
    char version[32];
    char *model = cpu_model();
    char *header = dnn_format("dnn kernels 3: %s; %s; %d threads; oneDNN %s; %s", model,
                              dnn_direct_isa(), dev->threads,
                              dnn_cpu_onednn_version(version, sizeof version),
                              openblas_get_config());

    dnn_free(model);
    for (char *at = header; *at != '\0'; at++)
        if (*at == '\n') *at = ' ';
    return header;
}

/* The next line of a text; its newline is replaced by '\0'. NULL: no complete line. */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');

    if (end == NULL) return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* Whether the file is valid and complete: it has this header, and as many entries as
 * the last line specifies. */
static bool is_complete(const char *text, const char *header)
{
    size_t len = strlen(header), lines = 0;
    const char *last = NULL;
    char expected[40];

    if (strncmp(text, header, len) != 0 || text[len] != '\n') return false;
    for (const char *at = text + len + 1; *at != '\0'; lines++) {
        const char *end = strchr(at, '\n');
        if (end == NULL) return false;
        last = at;
        at = end + 1;
    }
    if (lines == 0) return false;
    snprintf(expected, sizeof expected, "%zu kernels\n", lines - 1);
    return strcmp(last, expected) == 0;
}

void dnn_cpu_tuned_read(struct cpu_tuned *tuned, const char *path)
{
    char *text;

    if (dnn_file_read_text(path, LIMIT, &text, NULL) < 0) return;
    if (is_complete(text, tuned->header)) {
        char *at = text, *line;
        bool changed = tuned->changed;

        next_line(&at);
        while ((line = next_line(&at)) != NULL) {
            char *tab = strchr(line, '\t');
            if (tab == NULL) continue;
            *tab = '\0';
            if (dnn_cpu_tuned_find(tuned, tab + 1) == NULL)
                dnn_cpu_tuned_set(tuned, tab + 1, line);
        }
        tuned->changed = changed;
    }
    dnn_free(text);
}

int dnn_cpu_tuned_write(struct cpu_tuned *tuned, const char *path, struct dnn_err *err)
{
    struct dnn_buf text = {0};

    dnn_cpu_tuned_read(tuned, path);
    dnn_buf_add(&text, "%s\n", tuned->header);
    for (size_t i = 0; i < tuned->count; i++)
        dnn_buf_add(&text, "%s\t%s\n", tuned->at[i].algo, tuned->at[i].key);
    dnn_buf_add(&text, "%zu kernels\n", tuned->count);
    int rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    if (rc == 0) tuned->changed = false;
    return rc;
}
