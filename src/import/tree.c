/* tree.c - lists of files: of a directory, or from a text file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/import_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { LINES_LIMIT = 1 << 30 };

void dnn_import_list_free(struct dnn_import_list *list)
{
    dnn_free(list->file);
    dnn_arena_free(list->arena);
    *list = (struct dnn_import_list){0};
}

static void list_add(struct dnn_import_list *list, const char *path, const char *name)
{
    if (list->arena == NULL) list->arena = dnn_arena_make();
    list->file = dnn_grow(list->file, &list->cap, list->n + 1, sizeof *list->file);
    struct dnn_import_file *file = &list->file[list->n++];
    file->path = dnn_arena_strdup(list->arena, path);
    /* A name is usually the end of the path; then it shares its memory. */
    size_t len = strlen(path), tail = strlen(name);
    if (tail <= len && strcmp(path + len - tail, name) == 0)
        file->name = file->path + len - tail;
    else
        file->name = dnn_arena_strdup(list->arena, name);
    file->class_of = -1;
}

/* ---- files of a directory ---- */

static int by_name(const void *a, const void *b)
{
    const struct dnn_import_file *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);

    return n > k && strcasecmp(text + n - k, end) == 0;
}

struct walk {
    struct dnn_import_list *list;
    const char *stop;
    size_t top; /* bytes of the directory and its slash, not part of names     */
    bool flat;  /* without subdirectories                                      */
};

static int walk(const struct walk *w, const char *dir, int depth, struct dnn_err *err);

/* type is d_type of the directory entry; stat() is used for links and if the file
 * system does not report it. */
static int walk_entry(const struct walk *w, const char *path, int type, int depth,
                      struct dnn_err *err)
{
    bool is_dir = type == DT_DIR, is_file = type == DT_REG;
    struct stat st;

    if (!is_dir && !is_file) {
        if (stat(path, &st) != 0)
            return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path,
                            strerror(errno));
        is_dir = S_ISDIR(st.st_mode);
        is_file = S_ISREG(st.st_mode);
    }
    if (is_dir && (w->stop == NULL || !ends_with(path, w->stop)))
        return w->flat ? 0 : walk(w, path, depth + 1, err);
    if (is_file || is_dir) list_add(w->list, path, path + w->top);
    return 0;
}

static int walk(const struct walk *w, const char *dir, int depth, struct dnn_err *err)
{
    struct dirent *entry;
    DIR *d;
    int rc = 0;

    /* A link to a parent directory would be an endless loop. */
    if (depth > DNN_TREE_DEPTH)
        return dnn_fail(err, DNN_EDATA, "%s: more than %d directory levels", dir,
                        DNN_TREE_DEPTH);
    d = opendir(dir);
    if (d == NULL)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", dir, strerror(errno));
    while (rc == 0) {
        errno = 0;
        entry = readdir(d);
        if (entry == NULL) {
            if (errno != 0)
                rc = dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", dir,
                              strerror(errno));
            break;
        }
        if (entry->d_name[0] == '.') continue;
        char *path = dnn_format("%s/%s", dir, entry->d_name);
        rc = walk_entry(w, path, entry->d_type, depth, err);
        dnn_free(path);
    }
    closedir(d);
    return rc;
}

static int list_files(const char *dir, const char *stop, bool flat,
                      struct dnn_import_list *list, struct dnn_err *err)
{
    size_t len = strlen(dir);

    while (len > 1 && dir[len - 1] == '/')
        len--;
    char *top = dnn_strndup(dir, len);
    struct walk w = {list, stop, len + 1, flat};
    int rc = walk(&w, top, 0, err);
    dnn_free(top);
    if (rc == 0 && list->n > 0) qsort(list->file, list->n, sizeof *list->file, by_name);
    return rc;
}

int dnn_import_tree(const char *dir, const char *stop, struct dnn_import_list *list,
                    struct dnn_err *err)
{
    return list_files(dir, stop, false, list, err);
}

int dnn_import_dir(const char *dir, struct dnn_import_list *list, struct dnn_err *err)
{
    return list_files(dir, NULL, true, list, err);
}

/* ---- files of a list ---- */

int dnn_import_lines(const char *path, struct dnn_import_list *list,
                     struct dnn_err *err)
{
    char *text, *rest, *line;
    size_t dir = (size_t)(dnn_import_base(path) - path);

    DNN_TRY(dnn_file_read_text(path, LINES_LIMIT, &text, err));
    for (rest = text; (line = strsep(&rest, "\n")) != NULL;) {
        size_t len = strlen(line);

        while (len > 0 && strchr(" \t\r", line[len - 1]) != NULL)
            line[--len] = '\0';
        line += strspn(line, " \t");
        if (line[0] == '\0' || line[0] == '#') continue;
        char *full = line[0] == '/' ? dnn_strdup(line)
                                    : dnn_format("%.*s%s", (int)dir, path, line);
        list_add(list, full, line);
        dnn_free(full);
    }
    dnn_free(text);
    if (list->n == 0)
        return dnn_fail(err, DNN_EDATA, "%s: the list contains no files", path);
    return 0;
}

/* ---- names ---- */

const char *dnn_import_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

void dnn_import_key(const char *name, char out[DNN_SAMPLE_NAME])
{
    size_t len = strlen(name);
    const char *tail = name + len, *base, *dot;

    if (len > 0 && name[len - 1] == ']' && strrchr(name, '[') != NULL)
        tail = strrchr(name, '[');
    snprintf(out, DNN_SAMPLE_NAME, "%.*s", (int)(tail - name), name);
    base = dnn_import_base(out);
    dot = strrchr(base, '.');
    if (dot != NULL && dot > base && strcasecmp(dot, ".gz") == 0) {
        out[dot - out] = '\0';
        dot = strrchr(base, '.');
    }
    len = dot != NULL && dot > base ? (size_t)(dot - out) : strlen(out);
    snprintf(out + len, DNN_SAMPLE_NAME - len, "%s", tail);
}
