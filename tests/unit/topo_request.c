/* topo_request.c - the request of a rank: options, variables of OpenMP and Slurm.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"
#include "unit/topo_cases.h"

static const char *look(const void *arg, const char *name)
{
    return strcmp(name, "OMP_NUM_THREADS") == 0 ? arg : NULL;
}

static const struct {
    const char *what;
    int threads;
    const char *openmp;
    enum dnn_slurm_where where;
    int cpus;
    const char *want; /* "want threads", or the message */
} cases[] = {
    {"nothing set",                                      0,    NULL,                   DNN_SLURM_NONE,  -1, "cores 0"                                    },
    {"Slurm's CPUs per task",                            0,    NULL,                   DNN_SLURM_STEP,  8,  "cpus 8"                                     },
    {"not in the batch script",                          0,    NULL,                   DNN_SLURM_BATCH, 8,  "cores 0"                                    },
    {"OpenMP before Slurm",                              0,    "4",                    DNN_SLURM_STEP,  8,  "threads 4"                                  },
    {"the option before both",                           2,    "4",                    DNN_SLURM_STEP,  8,  "threads 2"                                  },
    {"one number per level",                             0,    "4,2",                  DNN_SLURM_NONE,  -1, "threads 4"                                  },
    {"an empty variable",                                0,    "",                     DNN_SLURM_NONE,  -1, "cores 0"                                    },
    {"not a number",                                     0,    "four",                 DNN_SLURM_NONE,  -1,
     "OMP_NUM_THREADS is \"four\"; must be 1 to 1024"                                                                                                    },
    {"not a whole number",                               0,    "4.5",                  DNN_SLURM_NONE,  -1,
     "OMP_NUM_THREADS is \"4.5\"; must be 1 to 1024"                                                                                                     },
    {"zero",                                             0,    "0",                    DNN_SLURM_NONE,  -1, "OMP_NUM_THREADS is \"0\"; must be 1 to 1024"},
    {"huge",                                             0,    "99999999999999999999", DNN_SLURM_NONE,  -1,
     "OMP_NUM_THREADS is \"99999999999999999999\"; must be 1 to 1024"                                                                                    },
    {"a wrong variable does not matter under an option", 2,    "four",                 DNN_SLURM_NONE,  -1,
     "threads 2"                                                                                                                                         },
    {"too many",                                         1025, NULL,                   DNN_SLURM_NONE,  -1,
     "1025 threads requested, at most 1024 per rank allowed"                                                                                             },
};

int main(void)
{
    static const char *const wishes[] = {"cores", "cpus", "threads"};
    struct dnn_topo *topo;
    struct dnn_err err = {0};

    dnn_topo_make("core:4 pu:2", &topo, &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dnn_slurm slurm = {.where = cases[i].where,
                                  .cpus_per_task = cases[i].cpus};
        struct dnn_env env = {look, cases[i].openmp};
        struct dnn_topo_request request;
        char got[64];
        int rc = dnn_topo_make_request(topo, DNN_BIND_INHERIT, cases[i].threads, env,
                                       &slurm, &request, &err);

        snprintf(got, sizeof got, "%s %d", wishes[request.want], request.threads);
        is_text(rc < 0 ? err.text : got, cases[i].want, cases[i].what);
        if (rc == 0) is_int(request.policy, DNN_BIND_INHERIT, "... with its policy");
    }
    dnn_topo_close(topo);
    return done();
}
