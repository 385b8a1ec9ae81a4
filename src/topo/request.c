/* request.c - the granted CPUs and requested threads of a rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "topo/topo_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct dnn_choice dnn_topo_policies[] = {
    {"auto",    DNN_BIND_AUTO   },
    {"inherit", DNN_BIND_INHERIT},
    {"off",     DNN_BIND_OFF    },
    {NULL,      0               },
};

/* OMP_NUM_THREADS may be a list, one number per nesting level. */
static int openmp_threads(const char *text, int *out, struct dnn_err *err)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text || (*end != '\0' && *end != ',') || n < 1 || n > DNN_TOPO_THREADS)
        return dnn_fail(err, DNN_EUSAGE, "OMP_NUM_THREADS is \"%s\"; must be 1 to %d",
                        text, DNN_TOPO_THREADS);
    *out = (int)n;
    return 0;
}

/* Set want and threads of the request. */
static int set_threads(int threads, struct dnn_env env, const struct dnn_slurm *slurm,
                       struct dnn_topo_request *request, struct dnn_err *err)
{
    const char *openmp = env.get(env.arg, "OMP_NUM_THREADS");
    int n = 0;

    if (threads > DNN_TOPO_THREADS)
        return dnn_fail(err, DNN_EUSAGE,
                        "%d threads requested, at most %d per rank allowed", threads,
                        DNN_TOPO_THREADS);
    if (threads > 0) {
        request->want = DNN_WANT_THREADS;
        request->threads = threads;
    } else if (openmp != NULL && *openmp != '\0') {
        DNN_TRY(openmp_threads(openmp, &n, err));
        request->want = DNN_WANT_THREADS;
        request->threads = n;
    } else if (slurm->where == DNN_SLURM_STEP && slurm->cpus_per_task > 0) {
        request->want = DNN_WANT_CPUS;
        request->threads = slurm->cpus_per_task;
    }
    return 0;
}

int dnn_topo_make_request(const struct dnn_topo *topo, enum dnn_topo_policy policy,
                          int threads, struct dnn_env env,
                          const struct dnn_slurm *slurm,
                          struct dnn_topo_request *request, struct dnn_err *err)
{
    /* Clear all bytes, also padding, because requests are sent as bytes. */
    memset(request, 0, sizeof *request);
    gethostname(request->host, sizeof request->host - 1);
    request->policy = policy;
    request->granted = topo->granted;
    dnn_topo_visible_gpus(topo, slurm->visible, request);
    return set_threads(threads, env, slurm, request, err);
}
