/* slurm_nodelist.c - node lists and task counts, good ones and broken ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "base/text.h"
#include "slurm/slurm.h"
#include "tap.h"

/* want is the names with spaces between, or the whole error message. */
static const struct {
    const char *list, *want;
} lists[] = {
    {"n1",                            "n1"                                                               },
    {"n1,n2",                         "n1 n2"                                                            },
    {"n[1-3,7]",                      "n1 n2 n3 n7"                                                      },
    {"gpu[008-010]-ib0",              "gpu008-ib0 gpu009-ib0 gpu010-ib0"                                 },
    {"n[1-2],gpu[001,003]-ib0,login", "n1 n2 gpu001-ib0 gpu003-ib0 login"                                },
    {"r[1-2]n[0-1]",                  "r1n0 r1n1 r2n0 r2n1"                                              },
    {"[1-2]",                         "1 2"                                                              },
    {"n[9-11]",                       "n9 n10 n11"                                                       },
    {"n[09-11]",                      "n09 n10 n11"                                                      },
    {"n[5-5]",                        "n5"                                                               },
    {"",                              "node list \"\", character 1: a name is missing here"              },
    {",n1",                           "node list \",n1\", character 1: a name is missing here"           },
    {"n1,",                           "node list \"n1,\", character 4: a name is missing here"           },
    {"n1,,n2",                        "node list \"n1,,n2\", character 4: a name is missing here"        },
    {"n[1-3",                         "node list \"n[1-3\", character 2: this bracket is never closed"   },
    {"n1-3]",                         "node list \"n1-3]\", character 5: this bracket was never opened"  },
    {"n[]",                           "node list \"n[]\", character 3: a number is missing here"         },
    {"n[1-]",                         "node list \"n[1-]\", character 5: a number is missing here"       },
    {"n[1,]",                         "node list \"n[1,]\", character 5: a number is missing here"       },
    {"n[a-b]",                        "node list \"n[a-b]\", character 3: a number is missing here"      },
    {"n[3-1]",                        "node list \"n[3-1]\", character 3: this range runs backwards"     },
    {"n[1-2-3]",
     "node list \"n[1-2-3]\", character 6: expected a comma or the closing bracket"                      },
    {"n[1[2]]",
     "node list \"n[1[2]]\", character 4: expected a comma or the closing bracket"                       },
    {"n[1-2]]",                       "node list \"n[1-2]]\", character 7: this bracket was never opened"},
    {"n 1",                           "node list \"n 1\", character 2: no node name has this character"  },
    {"n[1-9999999999]",
     "node list \"n[1-9999999999]\", character 5: this number is too large"                              },
    {"n[1-999999999]",                "node list \"n[1-999999999]\", character 15: more than 65536 "
                       "nodes; no cluster has so many"                             },
    {"n[1-1000][1-1000]",             "node list \"n[1-1000][1-1000]\", character 18: more than "
                          "65536 nodes; no cluster has so many"                 },
};

static void test_nodes(void)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct dnn_slurm_nodes nodes = {0};
        struct dnn_err err = {0};
        struct dnn_buf got = {0};
        int rc = dnn_slurm_expand_nodes(lists[i].list, &nodes, &err);

        for (int n = 0; n < nodes.count; n++)
            dnn_buf_add(&got, "%s%s", n > 0 ? " " : "", nodes.name[n]);
        is_text(rc < 0 ? err.text : got.text, lists[i].want, lists[i].list);
        if (rc < 0) is_int(rc, DNN_EUSAGE, "... is a usage error");
        dnn_buf_free(&got);
        dnn_slurm_free_nodes(&nodes);
    }
}

static void test_limits(void)
{
    struct dnn_slurm_nodes nodes = {0};
    struct dnn_err err = {0};
    char name[300];

    is_int(dnn_slurm_expand_nodes("n[1-65536]", &nodes, &err), 0, "the largest list");
    is_int(nodes.count, 65536, "... has all its nodes");
    is_text(nodes.name[65535], "n65536", "... up to the last");
    dnn_slurm_free_nodes(&nodes);

    memset(name, 'a', sizeof name);
    name[255] = '\0';
    is_int(dnn_slurm_expand_nodes(name, &nodes, &err), 0, "a name of 255 characters");
    dnn_slurm_free_nodes(&nodes);
    name[255] = 'a';
    name[256] = '\0';
    is_int(dnn_slurm_expand_nodes(name, &nodes, &err), DNN_EUSAGE, "256 are too many");
    strcpy(name + 250, "[100000-100001]");
    is_int(dnn_slurm_expand_nodes(name, &nodes, &err), DNN_EUSAGE,
           "also when a number makes it so long");
}

static const struct {
    const char *list, *want;
} counts[] = {
    {"1",            "1"                                                        },
    {"2(x3),1",      "2 2 2 1"                                                  },
    {"4,2(x2),0",    "4 2 2 0"                                                  },
    {"16(x1)",       "16"                                                       },
    {"",             "tasks per node \"\": it must look like 2(x3),1"           },
    {"2,",           "tasks per node \"2,\": it must look like 2(x3),1"         },
    {"2(3)",         "tasks per node \"2(3)\": it must look like 2(x3),1"       },
    {"2(x3",         "tasks per node \"2(x3\": it must look like 2(x3),1"       },
    {"2(x)",         "tasks per node \"2(x)\": it must look like 2(x3),1"       },
    {"2(x0)",        "tasks per node \"2(x0)\": it must look like 2(x3),1"      },
    {"2(x-1)",       "tasks per node \"2(x-1)\": it must look like 2(x3),1"     },
    {"-2",           "tasks per node \"-2\": it must look like 2(x3),1"         },
    {"2 ",           "tasks per node \"2 \": it must look like 2(x3),1"         },
    {"12345678901",  "tasks per node \"12345678901\": it must look like 2(x3),1"},
    {"1(x99999999)",
     "tasks per node \"1(x99999999)\": more than 65536 nodes; no cluster "
     "has so many"                                                              },
};

static void test_tasks(void)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct dnn_err err = {0};
        struct dnn_buf got = {0};
        int *tasks = NULL, n = 0;
        int rc = dnn_slurm_expand_tasks(counts[i].list, &tasks, &n, &err);

        for (int t = 0; t < n; t++)
            dnn_buf_add(&got, "%s%d", t > 0 ? " " : "", tasks[t]);
        is_text(rc < 0 ? err.text : got.text, counts[i].want, counts[i].list);
        dnn_buf_free(&got);
        dnn_free(tasks);
    }
}

int main(void)
{
    test_nodes();
    test_limits();
    test_tasks();
    return done();
}
