/* losses.c - the list of losses, and reading them from JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/losses_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define LOSSES(X)                                                                      \
    X(mse)                                                                             \
    X(mae)                                                                             \
    X(mape)                                                                            \
    X(huber)                                                                           \
    X(poisson_nll)                                                                     \
    X(hinge)                                                                           \
    X(hinge_embedding)                                                                 \
    X(soft_margin)                                                                     \
    X(bce)                                                                             \
    X(bce_logits)                                                                      \
    X(nll)                                                                             \
    X(cross_entropy)                                                                   \
    X(kl_divergence)                                                                   \
    X(focal)                                                                           \
    X(dice)                                                                            \
    X(jaccard)                                                                         \
    X(tversky)                                                                         \
    X(lovasz)                                                                          \
    X(categorical_hinge)                                                               \
    X(multi_margin)                                                                    \
    X(multilabel_margin)                                                               \
    X(margin_ranking)                                                                  \
    X(cosine_embedding)                                                                \
    X(triplet_margin)

#define DECLARE(name) extern const struct loss_kind dnn_loss_##name;
LOSSES(DECLARE)

#define NUMBER(name) LOSS_IS_##name,
enum { LOSSES(NUMBER) LOSS_KINDS };

#define ENTRY(name) &dnn_loss_##name,
static const struct loss_kind *const table[] = {LOSSES(ENTRY)};

#define CHOICE(name) {#name, LOSS_IS_##name},
const struct dnn_choice dnn_loss_names[] = {
    LOSSES(CHOICE){"xent", LOSS_IS_cross_entropy},
    {NULL,   0                    }
};

const struct dnn_choice dnn_loss_sources[] = {
    {"auto",        LOSS_AUTO       },
    {"none",        LOSS_NONE       },
    {"softmax",     LOSS_SOFTMAX    },
    {"log_softmax", LOSS_LOG_SOFTMAX},
    {"sigmoid",     LOSS_SIGMOID    },
    {NULL,          0               }
};

const char *dnn_loss_info(int index, const char **help, const struct dnn_field **fields)
{
    if (index < 0 || index >= LOSS_KINDS) return NULL;
    *help = table[index]->help;
    *fields = table[index]->fields;
    return table[index]->name;
}

const char *dnn_loss_alias(int index, const char **name)
{
    for (int i = 0; i < LOSS_KINDS; i++)
        for (int k = 0; k < LOSS_ALIASES && table[i]->alias[k] != NULL; k++)
            if (index-- == 0) {
                *name = table[i]->name;
                return table[i]->alias[k];
            }
    return NULL;
}

static int find(const char *name, const struct loss_kind **out, struct dnn_err *err)
{
    const char *alias, *known;
    int which;

    for (int i = 0; (alias = dnn_loss_alias(i, &known)) != NULL; i++)
        if (strcasecmp(alias, name) == 0) name = known;
    DNN_TRY(dnn_choice_find(dnn_loss_names, name, &which, err));
    *out = table[which];
    return 0;
}

/* ---- reading ---- */

static int read_name(const struct dnn_jobj *at, const struct loss_kind **out,
                     struct dnn_err *err)
{
    struct dnn_err why;
    const char *text;

    DNN_TRY(dnn_json_string(at, &text, err));
    if (find(text, out, &why) == 0) return 0;
    return dnn_json_fail(at, err, "%s", why.text);
}

static int read_ignore(const struct dnn_jobj *obj, struct loss_term *term,
                       struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(obj, "ignore_index");
    int64_t n;

    if (dnn_json_type(&at) == DNN_J_ABSENT || dnn_json_type(&at) == DNN_J_NULL)
        return 0;
    DNN_TRY(dnn_json_int(&at, &n, err));
    if (n < INT32_MIN || n > INT32_MAX)
        return dnn_json_fail(&at, err,
                             "must be a class number between %" PRId32 " and %" PRId32
                             ", not %" PRId64,
                             INT32_MIN, INT32_MAX, n);
    term->ignores = true;
    term->ignore = (int32_t)n;
    return 0;
}

/* The defaults of a kind. */
static int fill_defaults(const struct loss_kind *kind, struct dnn_arena *arena,
                         struct loss_term *term, struct dnn_err *err)
{
    struct dnn_json *file;

    DNN_TRY(dnn_json_text(kind->name, "{}", 2, &file, err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_field_fill(&top, kind->fields, arena, term, err);
    dnn_json_free(file);
    term->kind = kind;
    return rc;
}

static int read_term(const struct dnn_jobj *at, struct dnn_arena *arena,
                     struct loss_term *term, struct dnn_err *err)
{
    const struct loss_kind *kind;

    if (dnn_json_type(at) == DNN_J_TEXT) {
        DNN_TRY(read_name(at, &kind, err));
        return fill_defaults(kind, arena, term, err);
    }
    if (dnn_json_type(at) != DNN_J_OBJECT) {
        char quote[DNN_JSON_QUOTE];

        return dnn_json_fail(
            at, err,
            "must be the name of a loss such as \"NLL\", an object with "
            "\"function\", or a list of these, not %s",
            dnn_json_quote(quote, at));
    }
    struct dnn_jobj function = dnn_json_sub(at, "function");
    if (dnn_json_type(&function) == DNN_J_ABSENT)
        return dnn_json_fail(at, err,
                             "\"function\" is missing: give the name of a loss");
    DNN_TRY(read_name(&function, &kind, err));
    DNN_TRY(dnn_field_fill(at, kind->fields, arena, term, err));
    term->kind = kind;
    return read_ignore(at, term, err);
}

static struct dnn_loss *make(int nterms)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_loss *loss = dnn_arena_alloc(arena, sizeof *loss);

    loss->arena = arena;
    loss->nterms = nterms;
    loss->term = dnn_arena_alloc(arena, (size_t)nterms * sizeof *loss->term);
    return loss;
}

static int finish(struct dnn_loss *loss, int rc, struct dnn_loss **out)
{
    if (rc < 0)
        dnn_loss_free(loss);
    else
        *out = loss;
    return rc;
}

int dnn_loss_read(const struct dnn_jobj *obj, struct dnn_loss **out,
                  struct dnn_err *err)
{
    bool list = dnn_json_type(obj) == DNN_J_LIST;
    size_t n = list ? dnn_json_count(obj) : 1;
    int rc = 0, i = 0;

    if (dnn_json_type(obj) == DNN_J_ABSENT) return dnn_loss_make("mse", out, err);
    if (n == 0) return dnn_json_fail(obj, err, "must not be empty");
    if (n > LOSS_TERMS)
        return dnn_json_fail(obj, err, "must be at most %d losses, not %zu", LOSS_TERMS,
                             n);
    struct dnn_loss *loss = make((int)n);
    if (!list) rc = read_term(obj, loss->arena, &loss->term[0], err);
    for (struct dnn_jobj it = dnn_json_first(obj); list && it.val != NULL && rc == 0;
         it = dnn_json_next(&it))
        rc = read_term(&it, loss->arena, &loss->term[i++], err);
    return finish(loss, rc, out);
}

int dnn_loss_make(const char *function, struct dnn_loss **out, struct dnn_err *err)
{
    const struct loss_kind *kind;

    DNN_TRY(find(function, &kind, err));
    struct dnn_loss *loss = make(1);
    return finish(loss, fill_defaults(kind, loss->arena, &loss->term[0], err), out);
}

void dnn_loss_free(struct dnn_loss *loss)
{
    if (loss != NULL) dnn_arena_free(loss->arena);
}

const char *const *dnn_loss_metrics(const struct dnn_loss *loss)
{
    return loss->term[0].kind->metrics;
}

/* ---- printing ---- */

/* With the fewest digits that read back as the same number. */
static void print_number(double x, FILE *where)
{
    char text[32];
    double back;

    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (dnn_text_real(text, &back) && back == x) break;
    }
    fputs(text, where);
}

static void print_field(const struct dnn_field *f, const struct loss_term *term,
                        FILE *where)
{
    const char *at = (const char *)term + f->offset;
    const struct dnn_list *list = (const void *)at;

    if (f->type == DNN_F_REAL) {
        fprintf(where, ", \"%s\": ", f->key);
        print_number(*(const double *)(const void *)at, where);
    }
    if (f->type == DNN_F_BOOL)
        fprintf(where, ", \"%s\": %s", f->key,
                *(const bool *)(const void *)at ? "true" : "false");
    if (f->type == DNN_F_ENUM)
        fprintf(where, ", \"%s\": \"%s\"", f->key,
                dnn_choice_name(f->choices, *(const int *)(const void *)at));
    if (f->type == DNN_F_REALS && list->count > 0) {
        fprintf(where, ", \"%s\": [", f->key);
        for (int64_t i = 0; i < list->count; i++) {
            if (i > 0) fputs(", ", where);
            print_number(list->reals[i], where);
        }
        fputs("]", where);
    }
    if (f->type == DNN_F_OTHER && term->ignores)
        fprintf(where, ", \"%s\": %" PRId32, f->key, term->ignore);
}

static void print_text(const char *text, FILE *where)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < 0x20)
            fprintf(where, "\\u%04x", c);
        else
            fprintf(where, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
}

static void print_term(const struct loss_term *term, FILE *where)
{
    const struct dnn_field *f = term->kind->fields;
    bool plain = term->factor == 1 && term->output == NULL;

    if (plain && f[3].key == NULL) { /* only the common keys */
        fprintf(where, "\"%s\"", term->kind->name);
        return;
    }
    fprintf(where, "{\"function\": \"%s\"", term->kind->name);
    for (; f->key != NULL; f++)
        if (f->offset != LOSS_AT(factor) || f->type != DNN_F_REAL || term->factor != 1)
            print_field(f, term, where);
    if (term->output != NULL) {
        fputs(", \"output\": \"", where);
        print_text(term->output, where);
        fputs("\"", where);
    }
    fputs("}", where);
}

void dnn_loss_print(const struct dnn_loss *loss, FILE *where)
{
    if (loss->nterms > 1) fputs("[", where);
    for (int i = 0; i < loss->nterms; i++) {
        if (i > 0) fputs(", ", where);
        print_term(&loss->term[i], where);
    }
    if (loss->nterms > 1) fputs("]", where);
}
