/* base_opt.c - command lines: valid ones, and error messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "base/opt.h"
#include "tap.h"

#include <stdlib.h>

struct options {
    bool json, color;
    long threads;
    double limit;
    const char *config;
    int bind;
    struct dnn_opt_list set;
};

static const struct dnn_choice binds[] = {
    {"auto", 0},
    {"off",  1},
    {NULL,   0}
};

#define AT(f) offsetof(struct options, f)
static const struct dnn_option global[] = {
    {"config", 'c', DNN_O_TEXT, AT(config), "FILE", NULL, 0, 0, NULL, "the job"},
    {NULL,     0,   0,          0,          NULL,   NULL, 0, 0, NULL, NULL     }
};
static const struct dnn_option mine[] = {
    {"json",    'j', DNN_O_FLAG, AT(json),    NULL,        NULL,   0, 0,  NULL,  "print JSON" },
    {"color",   0,   DNN_O_FLAG, AT(color),   NULL,        "true", 0, 0,  NULL,  "use colours"},
    {"threads", 't', DNN_O_INT,  AT(threads), "N",         "2",    1, 64, NULL,  "how many"   },
    {"limit",   0,   DNN_O_REAL, AT(limit),   "X",         "0.5",  0, 1,  NULL,  "how much"   },
    {"bind",    0,   DNN_O_ENUM, AT(bind),    NULL,        "auto", 0, 0,  binds, "how to bind"},
    {"set",     's', DNN_O_LIST, AT(set),     "KEY=VALUE", NULL,   0, 0,  NULL,  "override"   },
    {NULL,      0,   0,          0,           NULL,        NULL,   0, 0,  NULL,  NULL         }
};

static int nothing(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    (void)opt, (void)nargs, (void)args, (void)err;
    return 0;
}

static const struct dnn_command commands[] = {
    {"show", "[FILE]",      0, 1,  "show it", mine, NULL, nothing},
    {"run",  "[--] CMD...", 1, -1, "run it",  NULL, NULL, nothing},
    {NULL,   NULL,          0, 0,  NULL,      NULL, NULL, NULL   }
};
static const struct dnn_tool tool = {
    .name = "dnn-x",
    .help = "try options",
    .about = "Paragraph one.\n\nParagraph two.",
    .size = sizeof(struct options),
    .options = global,
    .commands = commands,
};

/* Split a line at blanks and parse it. */
static int parse(const char *line, struct options *o, const struct dnn_command **cmd,
                 int *nargs, char ***args, struct dnn_err *err)
{
    static char copy[512];
    char *argv[32], *save = NULL;
    int argc = 0;

    snprintf(copy, sizeof copy, "dnn-x %s", line);
    for (char *w = strtok_r(copy, " ", &save); w != NULL;
         w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    FILE *null = fopen("/dev/null", "w");
    int rc = dnn_opt_parse(&tool, argc, argv, null, o, cmd, nargs, args, err);
    fclose(null);
    return rc;
}

static void good(void)
{
    struct options o;
    const struct dnn_command *cmd;
    struct dnn_err err = {0};
    char **args;
    int n;

    is_int(parse("show", &o, &cmd, &n, &args, &err), 0, "only a command");
    ok(cmd == &commands[0] && n == 0 && o.threads == 2 && o.limit == 0.5 &&
           o.bind == 0 && o.color && !o.json && o.config == NULL,
       "defaults are filled in");
    dnn_free(args);
    is_int(parse("-c a.json show --threads=7 --limit 0.25 -j --no-color --bind=OFF x",
                 &o, &cmd, &n, &args, &err),
           0, "many forms");
    ok(n == 1 && strcmp(args[0], "x") == 0 && o.threads == 7 && o.limit == 0.25 &&
           o.json && !o.color && o.bind == 1 && strcmp(o.config, "a.json") == 0,
       "all are set");
    dnn_free(args);
    is_int(parse("show -jt3 -s a=1 --set b=2 -- -x", &o, &cmd, &n, &args, &err), 0,
           "combined letters, a list, a dash after --");
    ok(o.json && o.threads == 3 && o.set.count == 2 &&
           strcmp(o.set.text[1], "b=2") == 0 && n == 1 && strcmp(args[0], "-x") == 0,
       "all are set");
    dnn_opt_free(&tool, cmd, &o);
    dnn_free(args);
    is_int(parse("show --config= a.json x", &o, &cmd, &n, &args, &err), 0,
           "the value of \"--config=\" is the next argument");
    ok(strcmp(o.config, "a.json") == 0 && n == 1 && strcmp(args[0], "x") == 0,
       "both are set");
    dnn_free(args);
    is_int(parse("run srun -n2 --help", &o, &cmd, &n, &args, &err), 0,
           "a command to run");
    ok(n == 3 && strcmp(args[1], "-n2") == 0 && strcmp(args[2], "--help") == 0,
       "keeps its own options");
    dnn_free(args);
    is_int(parse("show --help", &o, &cmd, &n, &args, &err), 0, "help");
    ok(cmd == NULL, "was printed");
    dnn_free(args);
}

static void bad(void)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"",                   "a command is missing; dnn-x --help lists them"       },
        {"shwo",               "unknown command \"shwo\"; did you mean \"show\"?"    },
        {"fetch",              "unknown command \"fetch\"; dnn-x --help lists them"  },
        {"show --threds=1",    "unknown option --threds; did you mean --threads?"    },
        {"show --zzz",         "unknown option --zzz; dnn-x show --help lists them"  },
        {"show -z",            "unknown option -z; dnn-x --help lists them"          },
        {"show --threads=0",   "--threads: must be between 1 and 64, not 0"          },
        {"show --threads=two", "--threads: must be a whole number, not \"two\""      },
        {"show --threads",     "--threads: a value is missing; write --threads=N"    },
        {"show --threads=",    "--threads: a value is missing; write --threads=N"    },
        {"show --limit=many",  "--limit: must be a number, not \"many\""             },
        {"show --json=yes",    "--json: takes no value; write --json or --no-json"   },
        {"show --no-threads",  "--no-threads: only flags can be negated"             },
        {"show --bind=of",     "--bind: must be one of auto, off, not \"of\"; did you "
                           "mean \"off\"?"                 },
        {"show a b",           "unexpected argument \"b\"; usage: dnn-x show [FILE]" },
        {"run",                "[--] CMD... is missing; usage: dnn-x run [--] CMD..."},
        {"show --help=html",   "--help: must be one of text, man, bash, not \"html\""},
        {"--log=loud show",    "log level \"loud\": must be one of error, warn, info, "
                            "debug, trace, not \"loud\""  },
        {"show -s a=1 --set",  "--set: a value is missing; write --set=KEY=VALUE"    },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options o;
        const struct dnn_command *cmd;
        struct dnn_err err = {0};
        char **args;
        int n, rc = parse(cases[i].line, &o, &cmd, &n, &args, &err);

        is_int(rc, DNN_EUSAGE, cases[i].line);
        is_text(err.text, cases[i].text, "and its message");
    }
}

static void help(void)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    dnn_opt_print_help(&tool, &commands[0], f);
    fclose(f);
    is_text(
        text,
        "Usage: dnn-x show [OPTION]... [FILE]\n"
        "\nshow it\n"
        "\nOptions:\n"
        "  -j, --json              print JSON\n"
        "      --[no-]color        use colours [true]\n"
        "  -t, --threads=N         how many (1 to 64) [2]\n"
        "      --limit=X           how much (0 to 1) [0.5]\n"
        "      --bind=VALUE        how to bind: auto, off [auto]\n"
        "  -s, --set=KEY=VALUE     override (may be given several times)\n"
        "  -c, --config=FILE       the job\n"
        "  -h, --help[=FORM]       print this help; =man and =bash print the manual "
        "page\n"
        "                          and the shell completion\n"
        "  -V, --version           print the version and the libraries it was built "
        "with\n"
        "  -q, --quiet             log only warnings and errors: the same as "
        "--log=warn\n"
        "      --log=LEVELS        log level: error, warn, info, debug or trace, "
        "also\n"
        "                          for single components, such as "
        "\"warn,topo=debug\"\n"
        "                          [info]\n",
        "help of a command");
    free(text);
}

int main(void)
{
    good();
    bad();
    help();
    return done();
}
