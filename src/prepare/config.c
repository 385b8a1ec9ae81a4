/* config.c - read the configuration of a preparation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <math.h>
#include <string.h>

#define AT(f) offsetof(struct dnn_prepare, f)
#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}
#define OTHER(key, def, help) {key, DNN_F_OTHER, 0, def, 0, 0, NULL, help, NULL}
const struct dnn_field dnn_prepare_fields[] = {
    OTHER("from", "null", "input files: a path, or an object (below)"),
    OTHER("target", "null", "path of the targets, if \"from\" is a path"),
    OTHER("generate", "null",
          "generate samples instead of reading files: {\"type\": \"fractals3d\", ...}"),
    OTHER("sources", "[]",
          "several sources instead of \"from\" and \"generate\": a list of objects "
          "with split and from, target or generate"),
    {"to",        DNN_F_TEXT, AT(to),        NULL,    0, 0,        NULL, "output dataset: NAME.bp",    NULL},
    {"seed",      DNN_F_INT,  AT(seed),      "0",     0, INFINITY, NULL, "seed of the random numbers",
       NULL                                                                                                  },
    {"scale",     DNN_F_REAL, AT(scale),     "0",     0, INFINITY, NULL,
       "scale factor of integer images when they are read; 0: 1/255 for u8, 1 for others",
       NULL                                                                                                  },
    {"shuffle",   DNN_F_BOOL, AT(shuffle),   "false", 0, 0,        NULL,
       "shuffle the samples instead of keeping the order of the files",                                  NULL},
    {"allow_nan", DNN_F_BOOL, AT(allow_nan), "false", 0, 0,        NULL,
       "accept NaN and infinite values",                                                                 NULL},
    {"checksums", DNN_F_BOOL, AT(checksums), "true",  0, 0,        NULL,
       "store a checksum of every input file",                                                           NULL},
    {"compress",  DNN_F_TEXT, AT(compress),  "null",  0, 0,        NULL,
       "compression: an ADIOS2 operator, optionally with parameters: \"bzip2\", "
     "\"blosc:compressor=zstd,clevel=5\"",                                                               NULL},
    OTHER("chunk", "4MiB", "approximate chunk size: bytes stored and read together"),
    OTHER("piece", "64MiB", "approximate number of bytes a rank processes at once"),
    OTHER("steps", "[]", "preparation steps, in this order (below)"),
    END,
};
#undef AT

/* An element of "sources". */
const struct dnn_field dnn_prepare_source_fields[] = {
    {"split", DNN_F_TEXT, offsetof(struct dnn_origin_cfg, split), "null", 0, 0, NULL,
     "split of these samples; null: as the files say", NULL},
    OTHER("from", "null", "as above"),
    OTHER("target", "null", "as above"),
    OTHER("generate", "null", "as above"),
    END,
};

/* ---- where samples come from ---- */

/* "from" is a path: all other keys of the import have their defaults. */
static int read_paths(const struct dnn_jobj *at, struct dnn_arena *arena,
                      struct dnn_import *how, struct dnn_err *err)
{
    static const char text[] = "{\"input_path\": \"\"}";
    struct dnn_jobj from = dnn_json_sub(at, "from"),
                    target = dnn_json_sub(at, "target");
    struct dnn_json *json = NULL;

    DNN_TRY(dnn_json_text("defaults", text, sizeof text - 1, &json, err));
    struct dnn_jobj top = dnn_json_top(json);
    int rc = dnn_field_fill(&top, dnn_import_fields, arena, how, err);
    dnn_json_free(json);
    if (rc < 0) return rc;
    const char *path;
    DNN_TRY(dnn_json_string(&from, &path, err));
    how->input.path = dnn_arena_strdup(arena, path);
    if (dnn_json_type(&target) == DNN_J_ABSENT || dnn_json_type(&target) == DNN_J_NULL)
        return 0;
    DNN_TRY(dnn_json_string(&target, &path, err));
    how->target.path = dnn_arena_strdup(arena, path);
    return 0;
}

static int read_origin(const struct dnn_jobj *at, struct dnn_arena *arena,
                       struct dnn_origin_cfg *out, struct dnn_err *err)
{
    struct dnn_jobj from = dnn_json_sub(at, "from"),
                    target = dnn_json_sub(at, "target");
    struct dnn_jobj generate = dnn_json_sub(at, "generate");
    bool has_from = dnn_json_type(&from) != DNN_J_ABSENT;
    bool has_generate = dnn_json_type(&generate) != DNN_J_ABSENT;

    if (has_from == has_generate)
        return dnn_json_fail(has_from ? &generate : at, err,
                             has_from ? "give either \"from\" or \"generate\", not both"
                                      : "\"from\" or \"generate\" is missing");
    out->generated = has_generate;
    if (dnn_json_type(&target) != DNN_J_ABSENT && dnn_json_type(&from) != DNN_J_TEXT)
        return dnn_json_fail(
            &target, err,
            "needs a path under \"from\"; an object there has \"target_path\"");
    if (has_generate) return 0;
    if (dnn_json_type(&from) == DNN_J_OBJECT)
        return dnn_field_fill(&from, dnn_import_fields, arena, &out->how, err);
    return read_paths(at, arena, &out->how, err);
}

static int read_sources(const struct dnn_jobj *top, struct dnn_arena *arena,
                        struct dnn_prepare *p, struct dnn_err *err)
{
    struct dnn_jobj list = dnn_json_sub(top, "sources");
    struct dnn_jobj from = dnn_json_sub(top, "from");
    struct dnn_jobj generate = dnn_json_sub(top, "generate");
    char quote[DNN_JSON_QUOTE];

    if (dnn_json_type(&list) == DNN_J_ABSENT) {
        p->norigins = 1;
        p->origin = dnn_arena_alloc(arena, sizeof *p->origin);
        p->origin[0].index = -1;
        return read_origin(top, arena, &p->origin[0], err);
    }
    if (dnn_json_type(&list) != DNN_J_LIST || dnn_json_count(&list) == 0)
        return dnn_json_fail(&list, err, "must be a list of objects, not %s",
                             dnn_json_quote(quote, &list));
    if (dnn_json_type(&from) != DNN_J_ABSENT ||
        dnn_json_type(&generate) != DNN_J_ABSENT)
        return dnn_json_fail(&list, err,
                             "give either \"sources\", or \"from\" or \"generate\"");
    p->origin = dnn_arena_alloc(arena, dnn_json_count(&list) * sizeof *p->origin);
    for (struct dnn_jobj it = dnn_json_first(&list); it.val != NULL;
         it = dnn_json_next(&it)) {
        struct dnn_origin_cfg *o = &p->origin[p->norigins];

        DNN_TRY(dnn_field_fill(&it, dnn_prepare_source_fields, arena, o, err));
        if (o->split != NULL &&
            (*o->split == '\0' || strlen(o->split) > 31 ||
             strspn(
                 o->split,
                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
                 strlen(o->split)))
            return dnn_json_fail(&it, err,
                                 "split must be a name of 1 to 31 letters, digits, _ "
                                 "and -, not \"%s\"",
                                 o->split);
        DNN_TRY(read_origin(&it, arena, o, err));
        o->index = p->norigins++;
    }
    return 0;
}

/* ---- the rest ---- */

static int read_size(const struct dnn_jobj *top, const char *key, int64_t def,
                     int64_t *out, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, key);
    char quote[DNN_JSON_QUOTE];
    unsigned long long bytes;
    const char *text;

    *out = def;
    if (dnn_json_type(&at) == DNN_J_ABSENT) return 0;
    if (dnn_json_type(&at) == DNN_J_NUMBER) {
        DNN_TRY(dnn_json_int(&at, out, err));
    } else {
        DNN_TRY(dnn_json_string(&at, &text, err));
        *out = dnn_text_size(text, &bytes) && bytes <= INT64_MAX ? (int64_t)bytes : 0;
    }
    if (*out > 0) return 0;
    return dnn_json_fail(&at, err, "must be a size such as \"4MiB\", not %s",
                         dnn_json_quote(quote, &at));
}

/* Remembers the steps of which there may be only one. */
static int note_step(const struct dnn_jobj *at, struct dnn_prepare *p, int i,
                     struct dnn_err *err)
{
    const struct dnn_prepare_step *step = &p->step[i];
    bool twice = false;

    if (step->type == &dnn_prepare_step_split) {
        twice = p->split != NULL;
        p->split = step->cfg;
    } else if (step->type == &dnn_prepare_step_balance) {
        twice = p->balance != NULL;
        p->balance = step->cfg;
    } else if (step->type == &dnn_prepare_step_slice) {
        twice = p->slice >= 0;
        p->slice = i;
    }
    if (!twice) return 0;
    return dnn_json_fail(at, err, "the step \"%s\" may appear only once",
                         step->type->name);
}

int dnn_prepare_read_steps(const struct dnn_jobj *top, struct dnn_arena *arena,
                           struct dnn_prepare *p, struct dnn_err *err)
{
    struct dnn_jobj list = dnn_json_sub(top, "steps");
    char quote[DNN_JSON_QUOTE];

    p->slice = -1;
    if (dnn_json_type(&list) == DNN_J_ABSENT) return 0;
    if (dnn_json_type(&list) != DNN_J_LIST)
        return dnn_json_fail(&list, err, "must be a list of steps, not %s",
                             dnn_json_quote(quote, &list));
    if (dnn_json_count(&list) > DNN_PREPARE_STEPS)
        return dnn_json_fail(&list, err, "at most %d steps are possible",
                             DNN_PREPARE_STEPS);
    for (struct dnn_jobj it = dnn_json_first(&list); it.val != NULL;
         it = dnn_json_next(&it)) {
        DNN_TRY(dnn_prepare_step_read(&it, arena, &p->step[p->nsteps], err));
        DNN_TRY(note_step(&it, p, p->nsteps++, err));
    }
    return 0;
}

static int check_compress(const struct dnn_jobj *top, const struct dnn_prepare *p,
                          struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "compress");

    if (p->compress == NULL) return 0;
    char *name = dnn_strndup(p->compress, strcspn(p->compress, ":"));
    bool built = dnn_bp_operator(name);
    int rc = 0;
    if (!built)
        rc = dnn_json_fail(&at, err, "the installed ADIOS2 has no operator \"%s\"",
                           name);
    dnn_free(name);
    return rc;
}

/* The names of temporary files next to the dataset are derived from its name. */
static bool good_name(const char *to)
{
    size_t len = strlen(to);

    return len > 3 && strcmp(to + len - 3, ".bp") == 0 && to[len - 4] != '/';
}

static int check_to(const struct dnn_jobj *top, const struct dnn_prepare *p,
                    struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "to");

    if (good_name(p->to)) return 0;
    return dnn_json_fail(&at, err, "must be a name that ends in .bp, not \"%s\"",
                         p->to);
}

int dnn_prepare_to(struct dnn_prepare *prepare, const char *to, struct dnn_err *err)
{
    if (!good_name(to))
        return dnn_fail(err, DNN_EUSAGE,
                        "the dataset must have a name that ends in .bp, not \"%s\"",
                        to);
    prepare->to = dnn_arena_strdup(dnn_json_arena(prepare->file), to);
    return 0;
}

static int read_all(struct dnn_prepare *p, struct dnn_err *err)
{
    struct dnn_jobj top = dnn_json_top(p->file);
    struct dnn_arena *arena = dnn_json_arena(p->file);
    char quote[DNN_JSON_QUOTE];

    if (dnn_json_type(&top) != DNN_J_OBJECT)
        return dnn_json_fail(&top, err, "must be an object, not %s",
                             dnn_json_quote(quote, &top));
    DNN_TRY(dnn_field_fill(&top, dnn_prepare_fields, arena, p, err));
    DNN_TRY(check_to(&top, p, err));
    DNN_TRY(read_sources(&top, arena, p, err));
    DNN_TRY(read_size(&top, "chunk", 4 << 20, &p->chunk, err));
    DNN_TRY(read_size(&top, "piece", 64 << 20, &p->piece, err));
    DNN_TRY(check_compress(&top, p, err));
    return dnn_prepare_read_steps(&top, arena, p, err);
}

static int finish(struct dnn_json *file, struct dnn_prepare **out, struct dnn_err *err)
{
    struct dnn_prepare *p = dnn_alloc(sizeof *p);

    p->file = file;
    int rc = read_all(p, err);
    if (rc < 0) {
        dnn_prepare_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

int dnn_prepare_read(const char *path, struct dnn_prepare **out, struct dnn_err *err)
{
    struct dnn_json *file = NULL;

    DNN_TRY(dnn_json_read(path, &file, err));
    return finish(file, out, err);
}

int dnn_prepare_text(const char *name, const char *text, struct dnn_prepare **out,
                     struct dnn_err *err)
{
    struct dnn_json *file = NULL;

    DNN_TRY(dnn_json_text(name, text, strlen(text), &file, err));
    return finish(file, out, err);
}

void dnn_prepare_free(struct dnn_prepare *prepare)
{
    if (prepare == NULL) return;
    for (int i = 0; i < prepare->nsteps; i++)
        dnn_prepare_step_free(&prepare->step[i]);
    dnn_json_free(prepare->file);
    dnn_free(prepare);
}
