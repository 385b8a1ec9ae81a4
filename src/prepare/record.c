/* record.c - the record of how a dataset was made, and the fingerprint that identifies
 * an interrupted preparation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "prepare/prepare_impl.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Version of the format of pieces and of the record: after a change, old pieces are not
 * used, and a dataset is not up to date. */
enum { LAYOUT = 2, SHOWN = 1000 };

/* ---- files ---- */

void dnn_record_files_free(char **file, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dnn_free(file[i]);
    dnn_free(file);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int dnn_record_files(const char *path, char ***out, int64_t *n, struct dnn_err *err)
{
    struct dirent **entry;
    struct stat st;
    int found = scandir(path, &entry, NULL, by_name);

    *n = 0;
    if (found < 0 && errno == ENOTDIR) {
        *out = dnn_alloc(sizeof **out);
        (*out)[(*n)++] = dnn_strdup(path);
        return 0;
    }
    if (found < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path, strerror(errno));
    *out = dnn_alloc(((size_t)found + 1) * sizeof **out);
    for (int i = 0; i < found; i++) {
        char *file = dnn_format("%s/%s", path, entry[i]->d_name);

        if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
            (*out)[(*n)++] = file;
        else
            dnn_free(file);
        free(entry[i]);
    }
    free(entry);
    return 0;
}

/* ---- the fingerprint ---- */

/* Size and modification time of the files of a path. */
static int add_times(const char *path, struct dnn_buf *buf, struct dnn_err *err)
{
    char **file;
    int64_t n;
    int rc = 0;

    DNN_TRY(dnn_record_files(path, &file, &n, err));
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        struct stat st;

        if (stat(file[i], &st) != 0)
            rc = dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", file[i],
                          strerror(errno));
        else
            dnn_buf_add(buf, "%s %" PRId64 " %" PRId64 ".%09ld\n", file[i],
                        (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
                        st.st_mtim.tv_nsec);
    }
    dnn_record_files_free(file, n);
    return rc;
}

int dnn_record_fingerprint(const struct dnn_prepare_state *s, char out[33],
                           struct dnn_err *err)
{
    struct dnn_jobj top = dnn_json_top(s->prepare->file);
    struct dnn_buf buf = {0};
    int rc = 0;

    dnn_buf_add(&buf, "%s %d %zu\n", PACKAGE_VERSION, LAYOUT, sizeof(struct dnn_stats));
    dnn_prepare_json(&buf, &top);
    dnn_buf_add(&buf, "\n%" PRId64 "\n", s->origins.count);
    for (int64_t i = 0; rc == 0 && i < s->nfiles; i++)
        rc = add_times(s->file[i], &buf, err);
    if (rc == 0) dnn_sum_text(buf.text, buf.len, out);
    dnn_buf_free(&buf);
    return rc;
}

/* ---- the text ---- */

static int64_t lines_of(const char *text)
{
    int64_t n = 0;

    for (; text != NULL && *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

/* The first files with their checksums, and a checksum of the complete list. */
static void add_files(const struct dnn_prepare_state *s, struct dnn_buf *out)
{
    const char *line = s->files.text;
    int64_t n = line == NULL ? s->nfiles : lines_of(line);
    char sum[33];

    dnn_buf_add(out, ", \"files\": %" PRId64, n);
    if (s->nfiles == 0) return;
    if (line == NULL) {
        dnn_buf_add(out, ", \"file\": [");
        for (int64_t i = 0; i < s->nfiles && i < SHOWN; i++) {
            dnn_buf_add(out, i > 0 ? ", {\"path\": " : "{\"path\": ");
            dnn_prepare_quote(out, s->file[i]);
            dnn_buf_add(out, "}");
        }
        dnn_buf_add(out, "]");
        return;
    }
    dnn_sum_text(line, s->files.len, sum);
    dnn_buf_add(out, ", \"files_xxh128\": \"%s\", \"file\": [", sum);
    for (int64_t i = 0; i < n && i < SHOWN && *line != '\0'; i++) {
        size_t len = strcspn(line, "\n");

        if (i > 0) dnn_buf_add(out, ", ");
        dnn_buf_bytes(out, line, len);
        line += len + (line[len] == '\n');
    }
    dnn_buf_add(out, "]");
}

/* The columns of the sources, before all steps. */
static void add_columns(const struct dnn_prepare_state *s, struct dnn_buf *out)
{
    dnn_buf_add(out, ", \"columns\": [");
    for (int k = 0; k < s->origins.states.n; k++) {
        const struct dnn_column *c = &s->origins.states.state[k].column;

        dnn_buf_add(out,
                    "%s{\"name\": \"%s\", \"role\": \"%s\", \"kind\": \"%s\", "
                    "\"type\": \"%s\", \"classes\": %" PRId64 "}",
                    k > 0 ? ", " : "", c->name,
                    dnn_choice_name(dnn_role_choices, (int)c->role),
                    dnn_choice_name(dnn_kind_choices, (int)c->kind),
                    dnn_dtype_name(c->type), c->classes);
    }
    dnn_buf_add(out, "]");
}

static void add_numbers(const char *key, int n, const double *x, struct dnn_buf *out)
{
    if (key == NULL) return;
    dnn_buf_add(out, ", \"%s\": [", key);
    for (int i = 0; i < n; i++)
        if (isfinite(x[i]))
            dnn_buf_add(out, "%s%.17g", i > 0 ? ", " : "", x[i]);
        else
            dnn_buf_add(out, "%snull", i > 0 ? ", " : "");
    dnn_buf_add(out, "]");
}

/* What the steps took from statistics. */
static void add_fitted(const struct dnn_prepare *p, struct dnn_buf *out)
{
    const char *comma = "";

    dnn_buf_add(out, ", \"fitted\": [");
    for (int i = 0; i < p->nsteps; i++) {
        const struct dnn_prepare_step *step = &p->step[i];

        for (int k = 0; step->fit != NULL && k < step->before->n; k++) {
            const struct dnn_step_fit *fit = &step->fit[k];

            if (fit->n == 0) continue;
            dnn_buf_add(out, "%s{\"step\": %d, \"column\": \"%s\"", comma, i,
                        step->before->state[k].column.name);
            add_numbers(step->type->fit_name[0], fit->n, fit->first, out);
            add_numbers(step->type->fit_name[1], fit->n, fit->second, out);
            dnn_buf_add(out, "}");
            comma = ", ";
        }
    }
    dnn_buf_add(out, "]");
}

char *dnn_record_text(const struct dnn_prepare_state *s)
{
    struct dnn_jobj top = dnn_json_top(s->prepare->file);
    struct dnn_jobj steps = dnn_json_sub(&top, "steps");
    struct dnn_buf out = {0};

    dnn_buf_add(&out, "{\"command\": ");
    dnn_prepare_quote(&out, s->opts->command == NULL ? "" : s->opts->command);
    dnn_buf_add(&out, ", \"version\": ");
    dnn_prepare_quote(&out, PACKAGE_NAME " " PACKAGE_VERSION);
    dnn_buf_add(&out, ", \"seed\": %" PRId64 ", \"steps\": ", s->prepare->seed);
    if (dnn_json_type(&steps) == DNN_J_ABSENT)
        dnn_buf_add(&out, "[]");
    else
        dnn_prepare_json(&out, &steps);
    add_columns(s, &out);
    add_fitted(s->prepare, &out);
    dnn_buf_add(&out, ", \"config\": ");
    dnn_prepare_json(&out, &top);
    dnn_buf_add(&out, ", \"fingerprint\": \"%s\"", s->work.fingerprint);
    add_files(s, &out);
    dnn_buf_add(&out, "}");
    return out.text;
}
