/* opt_print.c - print a tool's table as --help, manual page and shell completion.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "base/opt.h"
#include "base/opt_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 79, COLUMN = 26 };

static bool has_commands(const struct dnn_tool *tool)
{
    return tool->commands[0].name != NULL;
}

/* "-t, --threads=N" */
static void add_name(struct dnn_buf *b, const struct dnn_option *o)
{
    if (o->letter != 0) dnn_buf_add(b, "-%c, ", o->letter);
    dnn_buf_add(b, "--%s%s", o->type == DNN_O_FLAG && o->def != NULL ? "[no-]" : "",
                o->name);
    if (o->type == DNN_O_FLAG) return;
    const char *arg = o->arg == NULL ? "VALUE" : o->arg;
    if (arg[0] == '[')
        dnn_buf_add(b, "[=%s", arg + 1);
    else
        dnn_buf_add(b, "=%s", arg);
}

/* The help sentence, followed by choices, range and default. */
static void add_help(struct dnn_buf *b, const struct dnn_option *o)
{
    dnn_buf_add(b, "%s", o->help);
    if (o->type == DNN_O_ENUM && o->arg == NULL) {
        dnn_buf_add(b, ":");
        for (int i = 0; o->choices[i].name != NULL; i++)
            dnn_buf_add(b, "%s %s", i == 0 ? "" : ",", o->choices[i].name);
    }
    if ((o->type == DNN_O_INT || o->type == DNN_O_REAL) && o->min < o->max)
        dnn_buf_add(b, " (%g to %g)", o->min, o->max);
    if (o->type == DNN_O_LIST) dnn_buf_add(b, " (may be given several times)");
    if (o->def != NULL) dnn_buf_add(b, " [%s]", o->def);
}

/* Print text from a column on, with line breaks between words. */
static void wrap(FILE *where, int column, int at, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, " \n");

        if (at > column && at + 1 + (int)len > WIDTH) {
            fprintf(where, "\n%*s", column, "");
            at = column;
        } else if (at > column) {
            fputc(' ', where);
            at++;
        }
        fprintf(where, "%.*s", (int)len, text);
        at += (int)len;
        text += len;
        while (*text == ' ' || *text == '\n')
            text++;
    }
    fputc('\n', where);
}

/* Paragraphs, separated by an empty line. */
static void paragraphs(FILE *where, const char *text)
{
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t len = end == NULL ? strlen(text) : (size_t)(end - text);
        char *one = dnn_strndup(text, len);

        fputc('\n', where);
        wrap(where, 0, 0, one);
        dnn_free(one);
        text += len;
        while (*text == '\n')
            text++;
    }
}

static void help_options(const struct dnn_option *o, FILE *where)
{
    for (; o != NULL && o->name != NULL; o++) {
        struct dnn_buf name = {0}, text = {0};

        add_name(&name, o);
        add_help(&text, o);
        int at = fprintf(where, "  %s%s", o->letter != 0 ? "" : "    ", name.text);
        if (at >= COLUMN - 1) {
            fputc('\n', where);
            at = 0;
        }
        fprintf(where, "%*s", COLUMN - at, "");
        wrap(where, COLUMN, COLUMN, text.text);
        dnn_buf_free(&name);
        dnn_buf_free(&text);
    }
}

static void usage(const struct dnn_tool *tool, const struct dnn_command *c, FILE *where)
{
    fprintf(where, "Usage: %s", tool->name);
    if (c != NULL && c->name != NULL) fprintf(where, " %s", c->name);
    if (c == NULL) fprintf(where, " COMMAND");
    fprintf(where, " [OPTION]...");
    if (c != NULL && *c->operands != '\0') fprintf(where, " %s", c->operands);
    fputc('\n', where);
}

void dnn_opt_print_help(const struct dnn_tool *tool, const struct dnn_command *cmd,
                        FILE *where)
{
    if (cmd == NULL && !has_commands(tool)) cmd = tool->commands;
    usage(tool, cmd, where);
    paragraphs(where, cmd != NULL && cmd->name != NULL ? cmd->help : tool->help);
    if (cmd != NULL && cmd->about != NULL) paragraphs(where, cmd->about);
    if (cmd == NULL) {
        fprintf(where, "\nCommands:\n");
        for (const struct dnn_command *c = tool->commands; c->run != NULL; c++) {
            int at = fprintf(where, "  %s%s%s", c->name,
                             *c->operands == '\0' ? "" : " ", c->operands);

            if (at >= COLUMN - 1) at = fprintf(where, "\n") - 1;
            fprintf(where, "%*s", COLUMN - at, "");
            wrap(where, COLUMN, COLUMN, c->help);
        }
    }
    fprintf(where, "\nOptions:\n");
    if (cmd != NULL) help_options(cmd->options, where);
    help_options(tool->options, where);
    help_options(dnn_opt_common, where);
    if (cmd == NULL)
        fprintf(where, "\n%s COMMAND --help shows the options of a command.\n",
                tool->name);
}

/* ---- manual page ---- */

/* Print text for roff, with escapes for dashes, backslashes and leading dots. */
static void roff(FILE *where, const char *text)
{
    bool start = true;

    for (; *text != '\0'; text++) {
        if (start && (*text == '.' || *text == '\'')) fputs("\\&", where);
        if (*text == '-')
            fputs("\\-", where);
        else if (*text == '\\')
            fputs("\\e", where);
        else
            fputc(*text, where);
        start = *text == '\n';
    }
}

static void man_paragraphs(FILE *where, const char *text)
{
    bool first = true; /* no .PP after a title */

    while (text != NULL && *text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t len = end == NULL ? strlen(text) : (size_t)(end - text);
        char *one = dnn_strndup(text, len);

        if (!first) fputs(".PP\n", where);
        first = false;
        roff(where, one);
        fputc('\n', where);
        dnn_free(one);
        text += len;
        while (*text == '\n')
            text++;
    }
}

static void man_item(FILE *where, const char *head, const char *text)
{
    fputs(".TP\n.B ", where);
    roff(where, head);
    fputc('\n', where);
    roff(where, text);
    fputc('\n', where);
}

static void man_options(const struct dnn_option *o, FILE *where)
{
    for (; o != NULL && o->name != NULL; o++) {
        struct dnn_buf name = {0}, text = {0};

        add_name(&name, o);
        add_help(&text, o);
        dnn_buf_add(&text, ".");
        text.text[0] = (char)toupper((unsigned char)text.text[0]);
        man_item(where, name.text, text.text);
        dnn_buf_free(&name);
        dnn_buf_free(&text);
    }
}

/* "HEAD\ttext\n" lines as a list under a title. */
static void man_list(FILE *where, const char *title, const char *lines)
{
    if (lines == NULL) return;
    fprintf(where, ".SH %s\n", title);
    while (*lines != '\0') {
        size_t len = strcspn(lines, "\n"), tab = strcspn(lines, "\t\n");
        char *head = dnn_strndup(lines, tab);
        char *text = dnn_strndup(lines + tab, len - tab);

        man_item(where, head, *text == '\t' ? text + 1 : text);
        dnn_free(head);
        dnn_free(text);
        lines += len + (lines[len] == '\n');
    }
}

static void man_command(const struct dnn_command *c, FILE *where)
{
    fputs(".SS ", where);
    roff(where, c->name);
    fputc(' ', where);
    roff(where, c->operands);
    fputc('\n', where);
    char *help = dnn_format("%c%s.", toupper((unsigned char)c->help[0]), c->help + 1);
    roff(where, help);
    dnn_free(help);
    fputc('\n', where);
    if (c->about != NULL) fputs(".PP\n", where);
    man_paragraphs(where, c->about);
    man_options(c->options, where);
}

void dnn_opt_print_man(const struct dnn_tool *tool, FILE *where)
{
    char title[64];
    size_t n = 0;
    int status;

    for (; tool->name[n] != '\0' && n < sizeof title - 1; n++)
        title[n] = (char)toupper((unsigned char)tool->name[n]);
    title[n] = '\0';
    fprintf(where, ".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n", title,
            PACKAGE_NAME, PACKAGE_VERSION);
    roff(where, tool->name);
    fputs(" \\- ", where);
    roff(where, tool->help);
    fputs("\n.SH SYNOPSIS\n.B ", where);
    roff(where, tool->name);
    fprintf(where, "\n%s[\\fIOPTION\\fR]...\n",
            has_commands(tool) ? "\\fICOMMAND\\fR " : "");
    if (!has_commands(tool)) roff(where, tool->commands[0].operands);
    fputs("\n.SH DESCRIPTION\n", where);
    man_paragraphs(where, tool->about);
    if (has_commands(tool)) {
        fputs(".SH COMMANDS\n", where);
        for (const struct dnn_command *c = tool->commands; c->run != NULL; c++)
            man_command(c, where);
    }
    fputs(".SH OPTIONS\n", where);
    if (!has_commands(tool)) man_options(tool->commands[0].options, where);
    man_options(tool->options, where);
    man_options(dnn_opt_common, where);
    fputs(".SH EXIT STATUS\n", where);
    for (int i = 0; dnn_exit_text(i, &status) != NULL; i++) {
        char head[16];

        snprintf(head, sizeof head, "%d", status);
        man_item(where, head, dnn_exit_text(i, &status));
    }
    man_list(where, "ENVIRONMENT", tool->environment);
    man_list(where, "FILES", tool->files);
    man_list(where, "EXAMPLES", tool->examples);
    if (tool->see_also != NULL) {
        fputs(".SH SEE ALSO\n", where);
        roff(where, tool->see_also);
        fputc('\n', where);
    }
}

/* ---- shell completion ---- */

static void bash_names(const struct dnn_option *o, FILE *where)
{
    for (; o != NULL && o->name != NULL; o++) {
        bool equals = o->type != DNN_O_FLAG && (o->arg == NULL || o->arg[0] != '[');

        fprintf(where, " --%s%s", o->name, equals ? "=" : "");
        if (o->type == DNN_O_FLAG && o->def != NULL)
            fprintf(where, " --no-%s", o->name);
    }
}

/* Completions of the value after "--name=". */
static void bash_values(const struct dnn_option *o, FILE *where)
{
    for (; o != NULL && o->name != NULL; o++) {
        if (o->type == DNN_O_FLAG) continue;
        fprintf(where, "        --%s)", o->name);
        if (o->type == DNN_O_ENUM) {
            fprintf(where, " COMPREPLY=($(compgen -W '");
            for (int i = 0; o->choices[i].name != NULL; i++)
                fprintf(where, "%s%s", i == 0 ? "" : " ", o->choices[i].name);
            fprintf(where, "' -- \"$cur\"))");
        } else if (o->arg != NULL && strstr(o->arg, "FILE") != NULL) {
            fprintf(where, " COMPREPLY=($(compgen -f -- \"$cur\"))");
        } else if (o->arg != NULL && strstr(o->arg, "DIR") != NULL) {
            fprintf(where, " COMPREPLY=($(compgen -d -- \"$cur\"))");
        } else {
            fprintf(where, " :");
        }
        fprintf(where, "; return ;;\n");
    }
}

void dnn_opt_print_bash(const struct dnn_tool *tool, FILE *where)
{
    char *func = dnn_format("_%s", tool->name);

    for (char *p = func; *p != '\0'; p++)
        if (*p == '-') *p = '_';
    fprintf(where, "# bash completion for %s; printed by %s --help=bash\n", tool->name,
            tool->name);
    fprintf(where, "%s()\n{\n", func);
    fprintf(where, "    local cur=${COMP_WORDS[COMP_CWORD]} key='' cmd='' words i\n");
    /* bash splits words at "=", so a value is the word after it. */
    fprintf(where, "    COMPREPLY=()\n"
                   "    if [ \"$cur\" = \"=\" ]; then\n"
                   "        key=${COMP_WORDS[COMP_CWORD-1]} cur=''\n"
                   "    elif [ \"$COMP_CWORD\" -ge 2 ] && "
                   "[ \"${COMP_WORDS[COMP_CWORD-1]}\" = \"=\" ]; then\n"
                   "        key=${COMP_WORDS[COMP_CWORD-2]}\n"
                   "    fi\n");
    fprintf(where, "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                   "        case ${COMP_WORDS[i]} in\n");
    if (has_commands(tool)) {
        fprintf(where, "        ");
        for (const struct dnn_command *c = tool->commands; c->run != NULL; c++)
            fprintf(where, "%s%s", c == tool->commands ? "" : "|", c->name);
        fprintf(where, ") cmd=${COMP_WORDS[i]}; break ;;\n");
    }
    fprintf(where, "        --) return ;;\n        esac\n    done\n");
    fprintf(where, "    case $key in\n");
    for (const struct dnn_command *c = tool->commands; c->run != NULL; c++)
        bash_values(c->options, where);
    bash_values(tool->options, where);
    bash_values(dnn_opt_common, where);
    fprintf(where, "    esac\n    words='");
    bash_names(tool->options, where);
    bash_names(dnn_opt_common, where);
    fprintf(where, "'\n    case $cmd in\n");
    for (const struct dnn_command *c = tool->commands; c->run != NULL; c++) {
        fprintf(where, "        %s) words+='", c->name == NULL ? "''" : c->name);
        bash_names(c->options, where);
        fprintf(where, "' ;;\n");
    }
    if (has_commands(tool)) {
        fprintf(where, "        *) words+='");
        for (const struct dnn_command *c = tool->commands; c->run != NULL; c++)
            fprintf(where, " %s", c->name);
        fprintf(where, "' ;;\n");
    }
    fprintf(where,
            "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
            "    case ${COMPREPLY[0]} in *=) compopt -o nospace ;; esac\n"
            "}\ncomplete -o default -F %s %s\n",
            func, tool->name);
    dnn_free(func);
}
