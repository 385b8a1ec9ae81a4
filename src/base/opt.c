/* opt.c - parse a command line, as described by a tool's table.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "base/opt.h"
#include "base/opt_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The state of a parse; lives on dnn_opt_parse()'s stack. */
struct parse {
    const struct dnn_tool *tool;
    const struct dnn_command *cmd; /* NULL until it is known */
    FILE *where;
    char *out;
    int argc, at;
    char **argv;
    int nargs;
    char **args;
    bool done; /* --help or --version was given and printed */
};

static const struct dnn_choice help_formats[] = {
    {"text", 0},
    {"man",  1},
    {"bash", 2},
    {NULL,   0}
};

/* Options of all tools; the offsets are not used. */
const struct dnn_option dnn_opt_common[] = {
    {"help",    'h', DNN_O_ENUM, 0, "[FORM]", NULL,   0, 0, help_formats,
     "print this help; =man and =bash print the manual page and the shell completion"},
    {"version", 'V', DNN_O_FLAG, 0, NULL,     NULL,   0, 0, NULL,
     "print the version and the libraries it was built with"                         },
    {"quiet",   'q', DNN_O_FLAG, 0, NULL,     NULL,   0, 0, NULL,
     "log only warnings and errors: the same as --log=warn"                          },
    {"log",     0,   DNN_O_TEXT, 0, "LEVELS", "info", 0, 0, NULL,
     "log level: error, warn, info, debug or trace, also for single components, such "
     "as \"warn,topo=debug\""                                                        },
    {NULL,      0,   0,          0, NULL,     NULL,   0, 0, NULL,         NULL       }
};

static const struct dnn_option *const none = &dnn_opt_common[4];

static const struct dnn_option *or_none(const struct dnn_option *options)
{
    return options == NULL ? none : options;
}

/* The option tables to search, in order; NULL past the last. */
static const struct dnn_option *table(const struct parse *p, int i)
{
    switch (i) {
    case 0:
        return dnn_opt_common;
    case 1:
        return or_none(p->tool->options);
    case 2:
        return or_none(p->cmd == NULL ? NULL : p->cmd->options);
    default:
        return NULL;
    }
}

static const struct dnn_option *by_name(const struct parse *p, const char *name,
                                        size_t len)
{
    for (int t = 0; table(p, t) != NULL; t++)
        for (const struct dnn_option *o = table(p, t); o->name != NULL; o++)
            if (strlen(o->name) == len && strncmp(o->name, name, len) == 0) return o;
    return NULL;
}

static const struct dnn_option *by_letter(const struct parse *p, char letter)
{
    for (int t = 0; table(p, t) != NULL; t++)
        for (const struct dnn_option *o = table(p, t); o->name != NULL; o++)
            if (o->letter == letter) return o;
    return NULL;
}

static int fail_unknown(const struct parse *p, const char *name, size_t len,
                        struct dnn_err *err)
{
    const char *words[64];
    int n = 0;
    char hint[96], *word = dnn_strndup(name, len);

    for (int t = 0; table(p, t) != NULL; t++)
        for (const struct dnn_option *o = table(p, t); o->name != NULL && n < 63; o++)
            words[n++] = o->name;
    words[n] = NULL;
    const char *near = dnn_text_nearest(word, words);
    if (near != NULL)
        snprintf(hint, sizeof hint, "; did you mean --%s?", near);
    else
        snprintf(hint, sizeof hint, "; %s%s%s --help lists them", p->tool->name,
                 p->cmd != NULL && p->cmd->name != NULL ? " " : "",
                 p->cmd != NULL && p->cmd->name != NULL ? p->cmd->name : "");
    int rc = dnn_fail(err, DNN_EUSAGE, "unknown option --%s%s", word, hint);
    dnn_free(word);
    return rc;
}

/* Store a number after checking its range. */
static int store_number(const struct dnn_option *o, const char *text, char *out,
                        struct dnn_err *err)
{
    long long whole = 0;
    double real = 0;
    bool is_int = o->type == DNN_O_INT;

    if (is_int ? !dnn_text_int(text, &whole) : !dnn_text_real(text, &real))
        return dnn_fail(err, DNN_EUSAGE, "--%s: must be a %snumber, not \"%s\"",
                        o->name, is_int ? "whole " : "", text);
    if (is_int) real = (double)whole;
    if (real < o->min || real > o->max)
        return dnn_fail(err, DNN_EUSAGE, "--%s: must be between %g and %g, not %s",
                        o->name, o->min, o->max, text);
    if (is_int)
        *(long *)(void *)(out + o->offset) = (long)whole;
    else
        *(double *)(void *)(out + o->offset) = real;
    return 0;
}

static int store(const struct dnn_option *o, const char *text, char *out,
                 struct dnn_err *err)
{
    void *out_value = out + o->offset;

    switch (o->type) {
    case DNN_O_FLAG:
        *(bool *)out_value = strcmp(text, "true") == 0;
        return 0;
    case DNN_O_INT:
    case DNN_O_REAL:
        return store_number(o, text, out, err);
    case DNN_O_TEXT:
        *(const char **)out_value = text;
        return 0;
    case DNN_O_ENUM:
        if (dnn_choice_find(o->choices, text, out_value, err) < 0)
            return dnn_prefix(err, "--%s: ", o->name);
        return 0;
    case DNN_O_LIST: {
        struct dnn_opt_list *list = out_value;
        size_t cap = (size_t)list->count;

        list->text = dnn_grow(list->text, &cap, cap + 1, sizeof *list->text);
        list->text[list->count++] = text;
        return 0;
    }
    }
    return 0;
}

static void print_help(struct parse *p, int form)
{
    if (form == 1)
        dnn_opt_print_man(p->tool, p->where);
    else if (form == 2)
        dnn_opt_print_bash(p->tool, p->where);
    else
        dnn_opt_print_help(p->tool, p->cmd, p->where);
    p->done = true;
}

/* Apply an option that all tools have. */
static int apply_common(struct parse *p, const struct dnn_option *o, const char *value,
                        struct dnn_err *err)
{
    int form = 0;

    switch (o - dnn_opt_common) {
    case 0:
        if (value != NULL && dnn_choice_find(help_formats, value, &form, err) < 0)
            return dnn_prefix(err, "--help: ");
        print_help(p, form);
        return 0;
    case 1:
        fprintf(p->where, "%s (%s) %s\n%s\n", p->tool->name, PACKAGE_NAME,
                PACKAGE_VERSION, DNN_BUILT_WITH);
        p->done = true;
        return 0;
    case 2:
        return dnn_log_levels("warn", err);
    default:
        return dnn_log_levels(value, err);
    }
}

static bool takes_value(const struct dnn_option *o)
{
    return o->type != DNN_O_FLAG && o != &dnn_opt_common[0];
}

/* Apply one option; value is the text after "=" or after the letter, or NULL.  If it is
 * missing or empty (rmldnn allows "--config= FILE"), it is the next argument. */
static int apply(struct parse *p, const struct dnn_option *o, const char *value,
                 bool negated, struct dnn_err *err)
{
    bool is_common = o >= dnn_opt_common && o < none;

    if (negated && (o->type != DNN_O_FLAG || is_common))
        return dnn_fail(err, DNN_EUSAGE, "--no-%s: only flags can be negated", o->name);
    if (takes_value(o) && (value == NULL || *value == '\0')) {
        if (p->at >= p->argc)
            return dnn_fail(err, DNN_EUSAGE, "--%s: a value is missing; write --%s=%s",
                            o->name, o->name, o->arg == NULL ? "VALUE" : o->arg);
        value = p->argv[p->at++];
    }
    if (o->type == DNN_O_FLAG && value != NULL)
        return dnn_fail(err, DNN_EUSAGE, "--%s: takes no value; write --%s or --no-%s",
                        o->name, o->name, o->name);
    if (is_common) return apply_common(p, o, value, err);
    return store(o, o->type == DNN_O_FLAG ? (negated ? "false" : "true") : value,
                 p->out, err);
}

static int long_option(struct parse *p, const char *word, struct dnn_err *err)
{
    const char *eq = strchr(word, '=');
    size_t len = eq == NULL ? strlen(word) : (size_t)(eq - word);
    const struct dnn_option *o = by_name(p, word, len);
    bool negated = false;

    if (o == NULL && strncmp(word, "no-", 3) == 0) {
        o = by_name(p, word + 3, len - 3);
        negated = o != NULL;
    }
    if (o == NULL) return fail_unknown(p, word, len, err);
    return apply(p, o, eq == NULL ? NULL : eq + 1, negated, err);
}

/* -q, -n2, -n 2, -qn2 */
static int short_options(struct parse *p, const char *word, struct dnn_err *err)
{
    for (const char *c = word; *c != '\0' && !p->done; c++) {
        const struct dnn_option *o = by_letter(p, *c);

        if (o == NULL)
            return dnn_fail(err, DNN_EUSAGE, "unknown option -%c; %s --help lists them",
                            *c, p->tool->name);
        if (takes_value(o)) {
            const char *value = c[1] == '\0' ? NULL : c[1] == '=' ? c + 2 : c + 1;

            return apply(p, o, value, false, err);
        }
        DNN_TRY(apply(p, o, NULL, false, err));
    }
    return 0;
}

/* Fill in the defaults of one table. */
static int defaults(const struct dnn_option *o, char *out, struct dnn_err *err)
{
    for (o = or_none(o); o->name != NULL; o++)
        if (o->def != NULL && o->type != DNN_O_LIST)
            DNN_TRY(store(o, o->def, out, err));
    return 0;
}

/* Find the command by its name, for a tool with several commands. */
static int set_command(struct parse *p, const char *word, struct dnn_err *err)
{
    const struct dnn_command *c = p->tool->commands;
    const char *words[32];
    int n = 0;
    char hint[96];

    for (; c->run != NULL && n < 31; c++) {
        if (strcmp(c->name, word) == 0) {
            p->cmd = c;
            return defaults(c->options, p->out, err);
        }
        words[n++] = c->name;
    }
    words[n] = NULL;
    if (dnn_text_nearest(word, words) == NULL)
        snprintf(hint, sizeof hint, "; %s --help lists them", p->tool->name);
    else
        dnn_text_hint(hint, sizeof hint, word, words);
    return dnn_fail(err, DNN_EUSAGE, "unknown command \"%s\"%s", word, hint);
}

static int operand(struct parse *p, char *word, struct dnn_err *err)
{
    if (p->cmd == NULL) return set_command(p, word, err);
    if (p->cmd->max >= 0 && p->nargs == p->cmd->max)
        return dnn_fail(err, DNN_EUSAGE,
                        "unexpected argument \"%s\"; usage: %s%s%s%s%s", word,
                        p->tool->name, p->cmd->name == NULL ? "" : " ",
                        p->cmd->name == NULL ? "" : p->cmd->name,
                        *p->cmd->operands == '\0' ? "" : " ", p->cmd->operands);
    p->args[p->nargs++] = word;
    return 0;
}

static int parse_arguments(struct parse *p, struct dnn_err *err)
{
    bool operands_only =
        false; /* after "--", or in the command line of another program */

    while (p->at < p->argc && !p->done) {
        char *word = p->argv[p->at++];

        if (operands_only || word[0] != '-' || word[1] == '\0') {
            DNN_TRY(operand(p, word, err));
            operands_only = operands_only ||
                            (p->nargs > 0 && strncmp(p->cmd->operands, "[--]", 4) == 0);
        } else if (strcmp(word, "--") == 0) {
            operands_only = true;
        } else if (word[1] == '-') {
            DNN_TRY(long_option(p, word + 2, err));
        } else {
            DNN_TRY(short_options(p, word + 1, err));
        }
    }
    return 0;
}

int dnn_opt_parse(const struct dnn_tool *tool, int argc, char **argv, FILE *where,
                  void *out, const struct dnn_command **cmd, int *nargs, char ***args,
                  struct dnn_err *err)
{
    struct parse p = {.tool = tool, .where = where, .out = out, .argc = argc, .at = 1};
    int rc;

    p.argv = argv;
    p.args = dnn_alloc(((size_t)argc + 1) * sizeof *p.args);
    memset(out, 0, tool->size);
    if (tool->commands[0].name == NULL) p.cmd = tool->commands;
    rc = defaults(tool->options, out, err);
    if (rc == 0 && p.cmd != NULL) rc = defaults(p.cmd->options, out, err);
    if (rc == 0) rc = parse_arguments(&p, err);
    if (rc == 0 && !p.done && p.cmd == NULL)
        rc = dnn_fail(err, DNN_EUSAGE, "a command is missing; %s --help lists them",
                      tool->name);
    if (rc == 0 && !p.done && p.nargs < p.cmd->min)
        rc = dnn_fail(err, DNN_EUSAGE, "%s is missing; usage: %s%s%s %s",
                      p.cmd->operands, tool->name, p.cmd->name == NULL ? "" : " ",
                      p.cmd->name == NULL ? "" : p.cmd->name, p.cmd->operands);
    if (rc < 0) {
        dnn_opt_free(tool, p.cmd, out);
        dnn_free(p.args);
        return rc;
    }
    *cmd = p.done ? NULL : p.cmd;
    if (p.done) dnn_opt_free(tool, p.cmd, out);
    *nargs = p.nargs;
    *args = p.args;
    return 0;
}

static void free_lists(const struct dnn_option *o, char *out)
{
    for (o = or_none(o); o->name != NULL; o++)
        if (o->type == DNN_O_LIST) {
            struct dnn_opt_list *list = (void *)(out + o->offset);

            dnn_free(list->text);
            *list = (struct dnn_opt_list){0};
        }
}

void dnn_opt_free(const struct dnn_tool *tool, const struct dnn_command *cmd, void *out)
{
    free_lists(tool->options, out);
    if (cmd != NULL) free_lists(cmd->options, out);
}

/* A launcher kills all ranks as soon as one has exited with an error.  So the rank that
 * prints the message must exit first.  SIGTERM is ignored, so that the other ranks exit
 * with their own status. */
static void wait_for_root(void)
{
    signal(SIGTERM, SIG_IGN);
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
}

int dnn_opt_main(const struct dnn_tool *tool, int argc, char **argv)
{
    const struct dnn_command *cmd = NULL;
    const char *levels = getenv("DNN_LOG");
    struct dnn_err err = {0};
    void *out = dnn_alloc(tool->size);
    char **args = NULL;
    int nargs, rc = 0;

    if (levels != NULL && (rc = dnn_log_levels(levels, &err)) < 0)
        dnn_prefix(&err, "DNN_LOG: ");
    if (rc == 0)
        rc = dnn_opt_parse(tool, argc, argv, stdout, out, &cmd, &nargs, &args, &err);
    err.everywhere = rc < 0; /* all ranks have the same arguments */
    if (rc == 0 && cmd != NULL) rc = cmd->run(out, nargs, args, &err);
    /* Output that could not be written is an error: the disk may be full. */
    if (rc >= 0 && (fflush(stdout) != 0 || ferror(stdout)))
        rc = dnn_fail(&err, DNN_EIO, "standard output: %s",
                      "the results could not be written; is the disk full?");
    if (rc < 0 && (!err.everywhere || dnn_log_is_root()))
        fprintf(stderr, "%s: %s\n", tool->name, err.text);
    else if (rc < 0)
        wait_for_root();
    if (cmd != NULL) dnn_opt_free(tool, cmd, out);
    dnn_free(args);
    dnn_free(out);
    /* Positive: an exit status of the command (dnn-cluster run returns its child's). */
    return rc > 0 ? rc : dnn_exit_status(rc);
}
