/* select_cache.c - the file measured choices are kept in.
 *
 * Text: a first line that names the machine and the libraries, then one line per
 * choice, the algo's name, a tab, and the step's key; the last line says how many there
 * are.  It is a cache: what cannot be read or does not fit is as good as absent.
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

enum { LIMIT = 16 << 20 }; /* bytes: more is no file of ours */

/* The first "model name" of the system's list, or the machine's kind where it has
 * none. */
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
    return model != NULL ? model : dnn_strdup("a CPU without a name");
}

char *dnn_cpu_tuned_header(const struct dnn_dev *dev)
{
    char version[32];
    char *model = cpu_model();
    char *header = dnn_format("dnn choices 2: %s; %s; %d threads; oneDNN %s; %s", model,
                              dnn_direct_isa(), dev->threads,
                              dnn_cpu_onednn_version(version, sizeof version),
                              openblas_get_config());

    dnn_free(model);
    for (char *at = header; *at != '\0'; at++)
        if (*at == '\n') *at = ' ';
    return header;
}

/* The next line of a text, ended in place; NULL: none that ends with a newline. */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');

    if (end == NULL) return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* Whether the text is whole: our first line, and as many choices as the last says. */
static bool whole(const char *text, const char *header)
{
    size_t len = strlen(header), lines = 0;
    const char *last = NULL;
    char want[40];

    if (strncmp(text, header, len) != 0 || text[len] != '\n') return false;
    for (const char *at = text + len + 1; *at != '\0'; lines++) {
        const char *end = strchr(at, '\n');
        if (end == NULL) return false;
        last = at;
        at = end + 1;
    }
    if (lines == 0) return false;
    snprintf(want, sizeof want, "%zu choices\n", lines - 1);
    return strcmp(last, want) == 0;
}

void dnn_cpu_tuned_read(struct cpu_tuned *choices, const char *path)
{
    char *text;

    if (dnn_file_read_text(path, LIMIT, &text, NULL) < 0) return;
    if (whole(text, choices->header)) {
        char *at = text, *line;
        bool changed = choices->changed;

        next_line(&at);
        while ((line = next_line(&at)) != NULL) {
            char *tab = strchr(line, '\t');
            if (tab == NULL) continue;
            *tab = '\0';
            if (dnn_cpu_tuned_find(choices, tab + 1) == NULL)
                dnn_cpu_tuned_set(choices, tab + 1, line);
        }
        choices->changed = changed;
    }
    dnn_free(text);
}

int dnn_cpu_tuned_write(struct cpu_tuned *choices, const char *path,
                        struct dnn_err *err)
{
    struct dnn_buf text = {0};

    dnn_cpu_tuned_read(choices, path);
    dnn_buf_add(&text, "%s\n", choices->header);
    for (size_t i = 0; i < choices->count; i++)
        dnn_buf_add(&text, "%s\t%s\n", choices->at[i].algo, choices->at[i].key);
    dnn_buf_add(&text, "%zu choices\n", choices->count);
    int rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    if (rc == 0) choices->changed = false;
    return rc;
}
