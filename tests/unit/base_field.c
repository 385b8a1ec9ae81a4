/* base_field.c - structs filled from JSON by a table: every type, every error message.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/field.h"
#include "base/mem.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

/* A configuration with one field of each type. */
enum { SGD = 3, ADAM = 5 };
static const struct dnn_choice kinds[] = {
    {"sgd",  SGD },
    {"adam", ADAM},
    {NULL,   0   }
};

struct sched {
    double gamma;
    struct dnn_list milestones;
};
struct optim {
    int kind;
    double rate;
    int64_t every;
    struct sched *sched;
};
struct layer {
    const char *name;
    struct dnn_list size;
};
struct job {
    int64_t epochs;
    bool debug;
    const char *out, *note;
    struct optim *optim, *second;
    struct dnn_list weights, metrics, kinds, layers, maybe;
};

#define S(f) offsetof(struct sched, f)
static const struct dnn_sub one_to_3 = {NULL, 0, 1, 3, false};
static const struct dnn_field sched_fields[] = {
    {"gamma",      DNN_F_REAL, S(gamma),      "0.1", 0, 1,        NULL, "factor", NULL},
    {"milestones", DNN_F_INTS, S(milestones), NULL,  1, INFINITY, NULL, "epochs",
     &one_to_3                                                                        },
    {NULL,         0,          0,             NULL,  0, 0,        NULL, NULL,     NULL},
};
static const struct dnn_sub sched_sub = {sched_fields, sizeof(struct sched), 0, 0,
                                         false};

#define O(f) offsetof(struct optim, f)
static const struct dnn_field optim_fields[] = {
    {"type",          DNN_F_ENUM,   O(kind),  NULL,    0, 0,   kinds, "update rule",        NULL      },
    {"learning_rate", DNN_F_REAL,   O(rate),  "0.001", 0, 10,  NULL,  "step size",          NULL      },
    {"every",         DNN_F_INT,    O(every), "1",     1, 1e6, NULL,  "batches per update", NULL      },
    {"lr_scheduler",  DNN_F_OBJECT, O(sched), "null",  0, 0,   NULL,  "a | b",              &sched_sub},
    {NULL,            0,            0,        NULL,    0, 0,   NULL,  NULL,                 NULL      },
};
static const struct dnn_sub optim_sub = {optim_fields, sizeof(struct optim), 0, 0,
                                         false};

#define L(f) offsetof(struct layer, f)
static const struct dnn_sub size_sub = {NULL, 0, 1, 0, true};
static const struct dnn_field layer_fields[] = {
    {"name",         DNN_F_TEXT,    L(name), NULL,                            0, 0, NULL, "its name",      NULL     },
    {"size",         DNN_F_INTS,    L(size), "[3]",                           1, 9, NULL, "of the kernel", &size_sub},
    {"trainable",    DNN_F_NEUTRAL, 0,       "true",                          0, 0, NULL, "freezing",      NULL     },
    {"regularizer",  DNN_F_NEUTRAL, 0,       NULL,                            0, 0, NULL, "penalty",       NULL     },
    {"data_format",  DNN_F_NEUTRAL, 0,       "channels_last",                 0, 0, NULL, "layout",        NULL     },
    {"dilation",     DNN_F_NEUTRAL, 0,       "[1, {\"a\": 1, \"b\": \"x\"}]", 0, 0, NULL, "d",
     NULL                                                                                                           },
    {"build_config", DNN_F_IGNORED, 0,       NULL,                            0, 0, NULL, "Keras's own",   NULL     },
    {NULL,           0,             0,       NULL,                            0, 0, NULL, NULL,            NULL     },
};
static const struct dnn_sub layer_sub = {layer_fields, sizeof(struct layer), 0, 2,
                                         true};

#define J(f) offsetof(struct job, f)
static const struct dnn_sub two = {NULL, 0, 2, 2, false};
static const struct dnn_sub at_most_2 = {NULL, 0, 0, 2, false};
static const struct dnn_field job_fields[] = {
    {"epochs",    DNN_F_INT,     J(epochs),  "10",         1,         INFINITY, NULL,  "passes over the data",
     NULL                                                                                                                },
    {"debug",     DNN_F_BOOL,    J(debug),   "false",      0,         0,        NULL,  "write more",           NULL      },
    {"out",       DNN_F_TEXT,    J(out),     "out.csv",    0,         0,        NULL,  "where to",             NULL      },
    {"note",      DNN_F_TEXT,    J(note),    "null",       0,         0,        NULL,  "for people",           NULL      },
    {"optimizer", DNN_F_OBJECT,  J(optim),   NULL,         0,         0,        NULL,  "how to update",
     &optim_sub                                                                                                          },
    {"second",    DNN_F_OBJECT,  J(second),  "null",       0,         0,        NULL,  "the other",            &optim_sub},
    {"weights",   DNN_F_REALS,   J(weights), "[0.5, 1]",   -INFINITY, 9,        NULL,  "of losses",
     &two                                                                                                                },
    {"metrics",   DNN_F_TEXTS,   J(metrics), "[\"loss\"]", 0,         0,        NULL,  "to write",
     &at_most_2                                                                                                          },
    {"kinds",     DNN_F_ENUMS,   J(kinds),   "[]",         0,         0,        kinds, "to try",               NULL      },
    {"layers",    DNN_F_OBJECTS, J(layers),  "[]",         0,         0,        NULL,  "in order",             &layer_sub},
    {"maybe",     DNN_F_INTS,    J(maybe),   "null",       0,         0,        NULL,  "or not",               NULL      },
    {"loss",      DNN_F_OTHER,   0,          "",           0,         0,        NULL,  "the losses",           NULL      },
    {NULL,        0,             0,          NULL,         0,         0,        NULL,  NULL,                   NULL      },
};

static struct dnn_json *parsed(const char *text)
{
    struct dnn_err err = {0};
    struct dnn_json *file = NULL;

    if (dnn_json_text("train.json", text, strlen(text), &file, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return file;
}

static const char full[] =
    "{\"epochs\": 3.0, \"debug\": true, \"out\": \"a\\tb\", \"note\": null,\n"
    " \"optimizer\": {\"type\": \"ADAM\", \"learning_rate\": 1e-3, \"every\": 4,\n"
    "   \"lr_scheduler\": {\"milestones\": [5, 1e1, 30]}},\n"
    " \"weights\": [-1, 0.25], \"metrics\": [\"x\", \"y\"], \"kinds\": [\"adam\", "
    "\"sgd\"],\n"
    " \"layers\": [{\"name\": \"one\", \"size\": [1, 2]}, {\"name\": \"two\", "
    "\"size\": 7,\n"
    "   \"trainable\": true, \"regularizer\": null, \"data_format\": "
    "\"channels_last\",\n"
    "   \"dilation\": [1.0, {\"b\": \"x\", \"a\": 1}], \"build_config\": {\"z\": "
    "[1]}}],\n"
    " \"loss\": \"mse\"}";

/* With an arena, also valid after the file is freed. */
static void test_full(bool own_arena)
{
    struct dnn_json *file = parsed(full);
    struct dnn_jobj top = dnn_json_top(file);
    struct dnn_arena *arena = own_arena ? dnn_arena_make() : NULL;
    struct dnn_err err = {0};
    struct job job;

    memset(&job, 0xee, sizeof job);
    is_int(dnn_field_fill(&top, job_fields, arena, &job, &err), 0,
           "a full configuration is read");
    if (own_arena) dnn_json_free(file);
    ok(job.epochs == 3 && job.debug, "whole number (written 3.0) and bool");
    is_text(job.out, "a\tb", "text");
    ok(job.note == NULL, "null where null is the default");
    ok(job.optim->kind == ADAM && job.optim->rate == 1e-3 && job.optim->every == 4,
       "object");
    const struct sched *s = job.optim->sched;
    ok(s->gamma == 0.1 && s->milestones.count == 3 && s->milestones.ints[1] == 10,
       "an object in an object");
    ok(job.second == NULL, "an absent object");
    ok(job.weights.count == 2 && job.weights.reals[0] == -1 &&
           job.weights.reals[1] == 0.25,
       "list of numbers");
    ok(job.metrics.count == 2 && strcmp(job.metrics.texts[1], "y") == 0,
       "list of strings");
    ok(job.kinds.count == 2 && job.kinds.enums[0] == ADAM && job.kinds.enums[1] == SGD,
       "list of enums");
    const struct layer *layers = job.layers.objects;
    ok(job.layers.count == 2 && strcmp(layers[1].name, "two") == 0, "list of objects");
    ok(layers[0].size.count == 2 && layers[0].size.ints[1] == 2 &&
           layers[1].size.count == 1 && layers[1].size.ints[0] == 7,
       "a list, and a single value as a list");
    if (!own_arena) dnn_json_free(file);
    dnn_arena_free(arena);
}

static void test_defaults(void)
{
    struct dnn_json *file = parsed("{\"optimizer\": {\"type\": \"sgd\"}, \"layers\":"
                                   " {\"name\": \"alone\"}}");
    struct dnn_jobj top = dnn_json_top(file);
    struct dnn_err err = {0};
    struct job job;

    memset(&job, 0xee, sizeof job);
    is_int(dnn_field_fill(&top, job_fields, NULL, &job, &err), 0,
           "the smallest configuration is read");
    ok(job.epochs == 10 && !job.debug && strcmp(job.out, "out.csv") == 0 &&
           job.note == NULL,
       "defaults of single values");
    ok(job.optim->rate == 0.001 && job.optim->every == 1 && job.optim->sched == NULL,
       "of those in an object");
    ok(job.weights.count == 2 && job.weights.reals[0] == 0.5 &&
           job.metrics.count == 1 && strcmp(job.metrics.texts[0], "loss") == 0 &&
           job.kinds.count == 0 && job.maybe.count == 0 && job.maybe.ints == NULL,
       "of lists");
    const struct layer *alone = job.layers.objects;
    ok(job.layers.count == 1 && strcmp(alone->name, "alone") == 0 &&
           alone->size.ints[0] == 3,
       "a single object as a list of one");
    dnn_json_free(file);
}

/* What is added to a valid configuration, and the whole message. */
static const struct {
    const char *text, *message;
} wrong[] = {
    {"\"epoch\": 3",                                                                 "train.json:2: epoch: unknown key; did you mean \"epochs\"?"                },
    {"\"zzz\": 3",                                                                   "train.json:2: zzz: unknown key"                                            },
    {"\"epochs\":\n0",                                                               "train.json:2: epochs: must be at least 1, not 0"                           },
    {"\"epochs\": 2.5",                                                              "train.json:2: epochs: must be a whole number, not 2.5"                     },
    {"\"epochs\": null",                                                             "train.json:2: epochs: must be a whole number, not null"                    },
    {"\"debug\": 1",                                                                 "train.json:2: debug: must be true or false, not 1"                         },
    {"\"out\": null",                                                                "train.json:2: out: must be a string, not null"                             },
    {"\"note\": 5",                                                                  "train.json:2: note: must be a string, not 5"                               },
    {"\"second\":\n{\"type\": \"adm\"}",
     "train.json:3: second.type: must be one of sgd, "
     "adam, not \"adm\"; did you mean \"adam\"?"                                                                                                                 },
    {"\"second\": {\"type\": 3}",
     "train.json:2: second.type: must be one of sgd, adam, not 3"                                                                                                },
    {"\"second\": {}",                                                               "train.json:2: second: the key \"type\" is missing"                         },
    {"\"second\": 5",                                                                "train.json:2: second: must be an object, not 5"                            },
    {"\"second\": {\"type\": \"sgd\",\n\"learning_rate\": -3}",
     "train.json:3: second.learning_rate: must be between 0 and 10, not -3"                                                                                      },
    {"\"second\": {\"type\": \"sgd\",\n\"learning_rate\": \"0.1\"}",
     "train.json:3: second.learning_rate: must be a number, not \"0.1\"; remove the "
     "quotes"                                                                                                                                                    },
    {"\"second\": {\"type\": \"sgd\", \"lr\": 1}",
     "train.json:2: second.lr: unknown key"                                                                                                                      },
    {"\"second\": {\"type\": \"sgd\", \"lr_schedule\": 1}",
     "train.json:2: second.lr_schedule: unknown key; did you mean \"lr_scheduler\"?"                                                                             },
    {"\"second\": {\"type\": \"sgd\",\n\"lr_scheduler\": {\"milestones\": "
     "[1,\n2,\n0]}}",                                                           "train.json:5: second.lr_scheduler.milestones[2]: must be at least 1, not 0"},
    {"\"second\": {\"type\": \"sgd\", \"lr_scheduler\": {\"milestones\": []}}",
     "train.json:2: second.lr_scheduler.milestones: must have 1 to 3 elements, not 0"                                                                            },
    {"\"weights\": [1, 2, 3]",                                                       "train.json:2: weights: must have 2 elements, not 3"                        },
    {"\"weights\": [1,\n10]",                                                        "train.json:3: weights[1]: must be at most 9, not 10"                       },
    {"\"weights\": 1",                                                               "train.json:2: weights: must be a list, not 1"                              },
    {"\"weights\": {\"a\": 1}",                                                      "train.json:2: weights: must be a list, not an object"                      },
    {"\"metrics\": [\"a\", \"b\", \"c\"]",
     "train.json:2: metrics: must have at most 2 elements, not 3"                                                                                                },
    {"\"metrics\": [\"a\", 5]",                                                      "train.json:2: metrics[1]: must be a string, not 5"                         },
    {"\"kinds\": [\"adam\", \"sdg\"]",                                               "train.json:2: kinds[1]: must be one of sgd, "
                                       "adam, not \"sdg\"; did you mean \"sgd\"?"                                          },
    {"\"layers\": [{\"name\": \"a\"},\n{\"size\": 3}]",
     "train.json:3: layers[1]: the key \"name\" is missing"                                                                                                      },
    {"\"layers\": [{\"name\": \"a\"},\n7]",
     "train.json:3: layers[1]: must be an object, not 7"                                                                                                         },
    {"\"layers\": 7",                                                                "train.json:2: layers: must be an object, not 7"                            },
    {"\"layers\": null",                                                             "train.json:2: layers: must be a list, not null"                            },
    {"\"layers\": [{\"name\": \"a\", \"size\": []}]",
     "train.json:2: layers[0].size: must have at least 1 element, not 0"                                                                                         },
    {"\"layers\": [{\"name\": \"a\", \"size\": 10}]",
     "train.json:2: layers[0].size: must be between 1 and 9, not 10"                                                                                             },
    {"\"layers\": [{\"name\": \"a\",\n\"trainable\": false}]",
     "train.json:3: layers[0].trainable: not supported: must be true or null, not "
     "false"                                                                                                                                                     },
    {"\"layers\": [{\"name\": \"a\", \"regularizer\": {\"l2\": 0.1}}]",
     "train.json:2: layers[0].regularizer: not supported: must be null, not an object"                                                                           },
    {"\"layers\": [{\"name\": \"a\", \"data_format\": \"channels_first\"}]",
     "train.json:2: layers[0].data_format: not supported: must be \"channels_last\" or "
     "null, not "
     "\"channels_first\""                                                                                                                                        },
    {"\"layers\": [{\"name\": \"a\", \"dilation\": [1, {\"a\": 2, \"b\": \"x\"}]}]",
     "train.json:2: layers[0].dilation: not supported: must be [1, {\"a\": 1, \"b\": "
     "\"x\"}] or "
     "null, not a list"                                                                                                                                          },
    {"\"layers\": [{\"name\": \"a\", \"dilation\": [1, {\"a\": 1, \"c\": \"x\"}]}]",
     "train.json:2: layers[0].dilation: not supported: must be [1, {\"a\": 1, \"b\": "
     "\"x\"}] or "
     "null, not a list"                                                                                                                                          },
    {"\"maybe\": 5",                                                                 "train.json:2: maybe: must be a list, not 5"                                },
};

static void test_wrong(void)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[400], what[40];
        struct dnn_err err = {0};
        struct job job;

        snprintf(text, sizeof text, "{\"optimizer\": {\"type\": \"sgd\"},\n%s}",
                 wrong[i].text);
        struct dnn_json *file = parsed(text);
        struct dnn_jobj top = dnn_json_top(file);
        snprintf(what, sizeof what, "wrong value %zu", i);
        int rc = dnn_field_fill(&top, job_fields, NULL, &job, &err);
        is_text(err.text, wrong[i].message, what);
        if (rc != DNN_ECONFIG || err.code != rc) ok(false, "its code");
        dnn_json_free(file);
    }

    static const struct {
        const char *text, *message;
    } tops[] = {
        {"{}",                    "train.json:1: the key \"optimizer\" is missing"},
        {"[]",                    "train.json:1: must be an object, not []"       },
        {"{\"optimizer\": null}",
         "train.json:1: optimizer: must be an object, not null"                   },
    };
    for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++) {
        struct dnn_json *file = parsed(tops[i].text);
        struct dnn_jobj top = dnn_json_top(file);
        struct dnn_err err = {0};
        struct job job;

        is_int(dnn_field_fill(&top, job_fields, NULL, &job, &err), DNN_ECONFIG,
               "a wrong top");
        is_text(err.text, tops[i].message, "its message");
        is_int(dnn_field_fill(&top, job_fields, NULL, &job, NULL), DNN_ECONFIG,
               "or not");
        dnn_json_free(file);
    }

    struct dnn_json *file = parsed("{\"a\":\n{}}");
    struct dnn_jobj top = dnn_json_top(file), a = dnn_json_sub(&top, "a");
    struct dnn_jobj none = dnn_json_sub(&a, "optimizer");
    struct dnn_err err = {0};
    struct optim optim;
    is_int(dnn_field_fill(&none, optim_fields, NULL, &optim, &err), DNN_ECONFIG,
           "absent");
    is_text(err.text, "train.json:1: a: the key \"optimizer\" is missing",
            "its message");
    dnn_json_free(file);
}

/* Two tables on one object. */
static void test_all(void)
{
    struct extra {
        double momentum;
    } extra;
    static const struct dnn_field more[] = {
        {"momentum", DNN_F_REAL, 0, "0.9", 0, 1, NULL, "of SGD", NULL},
        {NULL,       0,          0, NULL,  0, 0, NULL, NULL,     NULL},
    };
    struct optim optim;
    struct dnn_fill fills[] = {
        {optim_fields, &optim},
        {more,         &extra}
    };
    struct dnn_err err = {0};
    struct dnn_json *file = parsed("{\"type\": \"sgd\", \"momentum\": 0.5}");
    struct dnn_jobj top = dnn_json_top(file);

    ok(dnn_field_fill_all(&top, fills, 2, NULL, &err) == 0 && extra.momentum == 0.5 &&
           optim.kind == SGD,
       "two tables fill two structs");
    dnn_json_free(file);
    file = parsed("{\"type\": \"sgd\", \"momentun\": 0.5}");
    top = dnn_json_top(file);
    is_int(dnn_field_fill_all(&top, fills, 2, NULL, &err), DNN_ECONFIG,
           "a key of neither table");
    is_text(err.text, "train.json:1: momentun: unknown key; did you mean \"momentum\"?",
            "similar keys are searched in both");
    dnn_json_free(file);
}

static const char docs[] =
    "| key | type | default | range | meaning |\n"
    "|---|---|---|---|---|\n"
    "| `epochs` | whole number | `10` | at least 1 | passes over the data |\n"
    "| `debug` | true or false | `false` |  | write more |\n"
    "| `out` | string | `out.csv` |  | where to |\n"
    "| `note` | string | `null` |  | for people |\n"
    "| `optimizer` | object | required |  | how to update |\n"
    "| `optimizer.type` | one of `sgd`, `adam` | required |  | update rule |\n"
    "| `optimizer.learning_rate` | number | `0.001` | 0 to 10 | step size |\n"
    "| `optimizer.every` | whole number | `1` | 1 to 1000000 | batches per update |\n"
    "| `optimizer.lr_scheduler` | object | `null` |  | a \\| b |\n"
    "| `optimizer.lr_scheduler.gamma` | number | `0.1` | 0 to 1 | factor |\n"
    "| `optimizer.lr_scheduler.milestones` | list of whole numbers | required | at "
    "least 1; 1 "
    "to 3 elements | epochs |\n"
    "| `second` | object | `null` |  | the other |\n"
    "| `second.type` | one of `sgd`, `adam` | required |  | update rule |\n"
    "| `second.learning_rate` | number | `0.001` | 0 to 10 | step size |\n"
    "| `second.every` | whole number | `1` | 1 to 1000000 | batches per update |\n"
    "| `second.lr_scheduler` | object | `null` |  | a \\| b |\n"
    "| `second.lr_scheduler.gamma` | number | `0.1` | 0 to 1 | factor |\n"
    "| `second.lr_scheduler.milestones` | list of whole numbers | required | at least "
    "1; 1 to 3 "
    "elements | epochs |\n"
    "| `weights` | list of numbers | `[0.5, 1]` | at most 9; 2 elements | of losses |\n"
    "| `metrics` | list of strings | `[\"loss\"]` | 0 to 2 elements | to write |\n"
    "| `kinds` | list of `sgd`, `adam` | `[]` |  | to try |\n"
    "| `layers` | list of objects, or a single one | `[]` | 0 to 2 elements | in order "
    "|\n"
    "| `layers[].name` | string | required |  | its name |\n"
    "| `layers[].size` | list of whole numbers, or a single one | `[3]` | 1 to 9; at "
    "least 1 "
    "element | of the kernel |\n"
    "| `layers[].trainable` | only null or the default | `true` |  | freezing |\n"
    "| `layers[].regularizer` | only null or the default | `null` |  | penalty |\n"
    "| `layers[].data_format` | only null or the default | `channels_last` |  | layout "
    "|\n"
    "| `layers[].dilation` | only null or the default | `[1, {\"a\": 1, \"b\": "
    "\"x\"}]` |  | d "
    "|\n"
    "| `layers[].build_config` | anything, ignored |  |  | Keras's own |\n"
    "| `maybe` | list of whole numbers | `null` |  | or not |\n"
    "| `loss` | see below | `` |  | the losses |\n";

static const char printed[] = "{\n"
                              "    \"epochs\": 3,\n"
                              "    \"debug\": true,\n"
                              "    \"out\": \"a\\u0009b\",\n"
                              "    \"note\": null,\n"
                              "    \"optimizer\": {\n"
                              "        \"type\": \"adam\",\n"
                              "        \"learning_rate\": 0.001,\n"
                              "        \"every\": 4,\n"
                              "        \"lr_scheduler\": {\n"
                              "            \"gamma\": 0.1,\n"
                              "            \"milestones\": [5, 10, 30]\n"
                              "        }\n"
                              "    },\n"
                              "    \"second\": null,\n"
                              "    \"weights\": [-1, 0.25],\n"
                              "    \"metrics\": [\"x\", \"y\"],\n"
                              "    \"kinds\": [\"adam\", \"sgd\"],\n"
                              "    \"layers\": [{\n"
                              "        \"name\": \"one\",\n"
                              "        \"size\": [1, 2]\n"
                              "    }, {\n"
                              "        \"name\": \"two\",\n"
                              "        \"size\": [7]\n"
                              "    }],\n"
                              "    \"maybe\": null\n"
                              "}\n";

/* A text, read into a struct and printed again. */
static char *reprint(const char *text)
{
    struct dnn_json *file = parsed(text);
    struct dnn_jobj top = dnn_json_top(file);
    struct dnn_err err = {0};
    struct job job;
    char *out = NULL;
    size_t len = 0;

    if (dnn_field_fill(&top, job_fields, NULL, &job, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    FILE *where = open_memstream(&out, &len);
    dnn_field_print(job_fields, &job, where);
    fclose(where);
    dnn_json_free(file);
    return out;
}

static void test_print(void)
{
    char *out = NULL;
    size_t len = 0;
    FILE *where = open_memstream(&out, &len);

    dnn_field_docs(job_fields, where);
    fclose(where);
    is_text(out, docs, "a table as documentation");
    free(out);

    char *once = reprint(full), *twice = reprint(once);
    is_text(once, printed, "a struct as JSON");
    is_text(twice, once, "which is read as the same");
    free(once);
    free(twice);
    /* Printed numbers are read as the same bits. */
    char *odd = reprint(
        "{\"optimizer\": {\"type\": \"sgd\", \"learning_rate\": 0.30000000000000004},"
        " \"epochs\": 9223372036854775807}");
    ok(strstr(odd, "0.30000000000000004,") && strstr(odd, "9223372036854775807,"),
       "numbers are printed with all their digits");
    free(odd);
}

/* Tables with one mistake each. */
static void test_check(void)
{
    struct dnn_err err = {0};
    const struct dnn_field end = {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL};
    static const struct {
        struct dnn_field field;
        const char *message;
    } bad[] = {
        {{"a", DNN_F_INT, 0, "x", 0, 0, NULL, "h", NULL},
         "the default of \"a\": default:1:1: x is not valid JSON; strings need double "
         "quotes"                                                                          },
        {{"a", DNN_F_INT, 0, "7", 1, 5, NULL, "h", NULL},
         "the default of \"a\": default:1: must be between 1 and 5, not 7"                 },
        {{"a", DNN_F_INT, 0, "null", 0, 0, NULL, "h", NULL},
         "the default of \"a\": default:1: must be a whole number, not null"               },
        {{"a", DNN_F_ENUM, 0, "adagrad", 0, 0, kinds, "h", NULL},
         "the default of \"a\": must be one of sgd, adam, not \"adagrad\""                 },
        {{"a", DNN_F_ENUM, 0, NULL, 0, 0, NULL, "h", NULL},         "\"a\": has no choices"},
        {{"a", DNN_F_OBJECT, 0, NULL, 0, 0, NULL, "h", NULL},
         "\"a\": has no sub-table"                                                         },
        {{"a", DNN_F_OBJECT, 0, "{}", 0, 0, NULL, "h", &optim_sub},
         "the default of \"a\": default:1: the key \"type\" is missing"                    },
        {{"a", DNN_F_REAL, 0, NULL, 2, 1, NULL, "h", NULL},         "\"a\": min > max"     },
        {{"a", DNN_F_REAL, 0, NULL, 0, 0, NULL, "", NULL},          "\"a\": has no help"   },
        {{"b", DNN_F_REAL, 0, NULL, 0, 0, NULL, "h", NULL},         "\"b\": appears twice" },
    };

    is_int(dnn_field_check(job_fields, &err), 0, "a valid table");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct dnn_field table[] = {
            {"b", DNN_F_REAL, 0, NULL, 0, 0, NULL, "h", NULL},
            bad[i].field, end
        };
        const struct dnn_sub sub = {table, 64, 0, 0, false};
        const struct dnn_field outer[] = {
            {"o", DNN_F_OBJECTS, 0, "[]", 0, 0, NULL, "h", &sub},
            end
        };
        char want[200];

        is_int(dnn_field_check(table, &err), DNN_ECONFIG, "an invalid table");
        is_text(err.text, bad[i].message, "its message");
        is_int(dnn_field_check(outer, &err), DNN_ECONFIG, "also inside another table");
        snprintf(want, sizeof want, "\"o\": %s", bad[i].message);
        is_text(err.text, want, "its message");
    }
}

int main(void)
{
    test_full(false);
    test_full(true);
    test_defaults();
    test_wrong();
    test_all();
    test_print();
    test_check();
    return done();
}
