/* opt.h - command lines described by tables.
 *
 * One table per tool is used by the parser, --help, the manual page and the shell
 * completion, so that they are consistent.  Every tool also has --help, --version,
 * --quiet and --log, which are handled here.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_OPT_H
#define DNN_BASE_OPT_H

#include "base/choice.h"
#include "base/err.h"

#include <stddef.h>
#include <stdio.h>

enum dnn_opt_type {
    DNN_O_FLAG, /* bool: --name sets it, --no-name clears it         */
    DNN_O_INT,  /* long                                              */
    DNN_O_REAL, /* double                                            */
    DNN_O_TEXT, /* const char *, into argv                           */
    DNN_O_ENUM, /* int, one of choices                               */
    DNN_O_LIST  /* struct dnn_opt_list, may be given several times   */
};

/* The values of a DNN_O_LIST option; freed by dnn_opt_free(). */
struct dnn_opt_list {
    int count;
    const char **text; /* owned array of pointers into argv */
};

struct dnn_option {
    const char *name; /* without dashes                                    */
    char letter;      /* the short form, or 0                              */
    enum dnn_opt_type type;
    size_t offset;   /* where in the tool's struct                        */
    const char *arg; /* name of the value in the manual: "N", "FILE"; the shell
                      * completes file names for FILE and DIR             */
    const char *def; /* as the user would type it; NULL: zero             */
    double min, max; /* numbers only, inclusive                           */
    const struct dnn_choice *choices; /* DNN_O_ENUM only               */
    const char *help;                 /* one sentence, lower case, no full stop    */
};

/* A command of a tool ("dnn-bench topo"), or, with a NULL name, the tool itself. */
struct dnn_command {
    const char *name;
    const char
        *operands;    /* as in a usage line: "NODE", ""; "[--] CMD..." is the command
                       * line of another program: options after CMD are its own */
    int min, max;     /* how many operands; max -1: any number         */
    const char *help; /* one sentence                                  */
    const struct dnn_option *options; /* ends with name == NULL; or NULL       */
    const char *about; /* paragraphs for the manual, or NULL            */
    /* Run the command; opt is the tool's struct.  Returns 0, a DNN_E code, or an exit
     * status (positive). */
    int (*run)(const void *opt, int nargs, char **args, struct dnn_err *err);
};

struct dnn_tool {
    const char *name;  /* "dnn-bench"                                       */
    const char *help;  /* one sentence, "measure this machine"              */
    const char *about; /* paragraphs for the manual, separated by "\n\n"    */
    size_t size;       /* of the struct the options fill                    */
    const struct dnn_option *options;   /* of every command; or NULL           */
    const struct dnn_command *commands; /* ends with run == NULL               */
    const char *environment; /* "NAME\ttext\n" lines for the manual, or NULL */
    const char *files;       /* the same for files, or NULL                  */
    const char *examples;    /* "command\ttext\n" lines, or NULL             */
    const char *see_also;    /* "dnn-cluster(1), srun(1)", or NULL           */
};

/* The complete main() of a tool: parse, run the command, print the error if there is
 * one, and return the exit status. */
int dnn_opt_main(const struct dnn_tool *tool, int argc, char **argv);

/* Only parse: fill *out (tool->size bytes, defaults first), find the command
 * and the operands (into argv, which is not changed; *args is owned by the
 * caller, dnn_free).  --help and --version are printed to where, and *cmd is then
 * NULL. */
int dnn_opt_parse(const struct dnn_tool *tool, int argc, char **argv, FILE *where,
                  void *out, const struct dnn_command **cmd, int *nargs, char ***args,
                  struct dnn_err *err);
/* Free the lists in *out. */
void dnn_opt_free(const struct dnn_tool *tool, const struct dnn_command *cmd,
                  void *out);

/* Print the table in three forms; cmd NULL: the complete tool. */
void dnn_opt_print_help(const struct dnn_tool *tool, const struct dnn_command *cmd,
                        FILE *where);
void dnn_opt_print_man(const struct dnn_tool *tool, FILE *where);
void dnn_opt_print_bash(const struct dnn_tool *tool, FILE *where);

#endif
