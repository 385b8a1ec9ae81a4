/* topo_bind.c - binding on this machine, checked with the kernel and not with hwloc.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"
#include "unit/topo_cases.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* The calling thread's CPUs, from the kernel. */
static struct dnn_topo_set kernel_mask(void)
{
    struct dnn_topo_set set = {{0}};
    cpu_set_t *cpus = CPU_ALLOC(DNN_TOPO_PUS);
    size_t size = CPU_ALLOC_SIZE(DNN_TOPO_PUS);

    CPU_ZERO_S(size, cpus);
    sched_getaffinity(0, size, cpus);
    for (int i = 0; i < DNN_TOPO_PUS; i++)
        if (CPU_ISSET_S(i, size, cpus)) dnn_topo_add(&set, i);
    CPU_FREE(cpus);
    return set;
}

struct helper {
    struct dnn_topo *topo;
    const struct dnn_place *place;
    struct dnn_topo_set before, after;
};

static void *help(void *arg)
{
    struct helper *h = arg;

    h->before = kernel_mask();
    dnn_topo_bind_helper(h->topo, DNN_BIND_AUTO, h->place);
    h->after = kernel_mask();
    return NULL;
}

static void is_set(struct dnn_topo_set got, struct dnn_topo_set want, const char *what)
{
    char *g = list_of(&got), *w = list_of(&want);

    is_text(g, w, what);
    dnn_free(g);
    dnn_free(w);
}

static struct dnn_place place_for(struct dnn_topo *topo, enum dnn_topo_policy policy,
                                  int threads)
{
    struct dnn_slurm slurm = {.job = -1, .cpus_per_task = -1};
    struct dnn_topo_request request;
    struct dnn_place place;
    struct dnn_err err = {0};

    dnn_topo_make_request(topo, policy, threads, dnn_slurm_env(), &slurm, &request,
                          &err);
    dnn_topo_map(topo, &request, 1, 0, &place, &err);
    return place;
}

/* off, then inherit, then auto: each narrower than the one before. */
static void test_policies(struct dnn_topo *topo, struct dnn_topo_set granted)
{
    int n = dnn_topo_count(&granted);
    struct dnn_place place = place_for(topo, DNN_BIND_OFF, n);
    struct dnn_topo_bound bound;
    struct dnn_err err = {0};

    is_int(dnn_topo_bind(topo, DNN_BIND_OFF, &place, &bound, &err), 0, "off");
    is_int(bound.requested, 0, "... requests nothing");
    is_int(omp_get_max_threads(), n, "... but sets the number of threads");
    is_set(kernel_mask(), granted, "... and does not change the mask");

    place = place_for(topo, DNN_BIND_INHERIT, n);
    is_int(dnn_topo_bind(topo, DNN_BIND_INHERIT, &place, &bound, &err), 0, "inherit");
    is_set(kernel_mask(), granted, "... keeps the mask");
    is_int(bound.pinned, n, "... for all threads");

    place = place_for(topo, DNN_BIND_AUTO, n);
    is_int(dnn_topo_bind(topo, DNN_BIND_AUTO, &place, &bound, &err), 0, "auto");
    is_set(bound.pus, granted, "... binds the process to its mask");
    is_int(bound.exact, 1, "... exactly");
    is_int(bound.pinned, n, "... and pins all threads");
}

static void test_threads(struct dnn_topo *topo, int n)
{
    struct dnn_place place = place_for(topo, DNN_BIND_AUTO, n);
    struct helper h = {.topo = topo, .place = &place};
    struct dnn_topo_set all = {{0}};
    int wrong = 0;
    pthread_t thread;

    /* A later parallel region runs on the same bound threads. */
#pragma omp parallel num_threads(n)
    {
        struct dnn_topo_set mine = kernel_mask();

#pragma omp critical
        {
            int pu = place.pu[omp_get_thread_num()];

            wrong += dnn_topo_count(&mine) != 1 || !dnn_topo_has(&mine, pu);
            dnn_topo_add(&all, pu);
        }
    }
    is_int(wrong, 0, "each thread runs on its CPU");
    is_int(dnn_topo_count(&all), n, "no two threads on one CPU");

    pthread_create(&thread, NULL, help, &h);
    pthread_join(thread, NULL);
    is_int(dnn_topo_count(&h.before), 1, "a new thread inherits one CPU");
    is_set(h.after, place.pus, "a helper gets them all back");
}

/* An OpenMP library that binds threads changes the mask of this thread before main();
 * the granted mask must still be that of the process start.  The child runs this
 * program with the argument "granted". */
static void test_openmp_binding(const char *self, struct dnn_topo_set granted)
{
    char *command = dnn_format("OMP_PROC_BIND=true '%s' granted", self);
    char *want = list_of(&granted), got[256] = "";
    FILE *child = popen(command, "r");

    if (child != NULL && fgets(got, sizeof got, child) != NULL)
        got[strcspn(got, "\n")] = '\0';
    if (child != NULL) pclose(child);
    is_text(got, want, "the grant under OMP_PROC_BIND=true");
    dnn_free(command);
    dnn_free(want);
}

static int print_granted(void)
{
    struct dnn_topo *topo;
    struct dnn_err err = {0};

    if (dnn_topo_open(&topo, &err) < 0) return 1;
    struct dnn_place place = place_for(topo, DNN_BIND_INHERIT, 1);
    char *list = list_of(&place.pus);
    puts(list);
    dnn_free(list);
    dnn_topo_close(topo);
    return 0;
}

/* Whether binding works; some sandboxes do not support it. */
static bool can_bind(void)
{
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 &&
           sched_setaffinity(0, sizeof cpus, &cpus) == 0;
}

int main(int argc, char **argv)
{
    struct dnn_topo *topo;
    struct dnn_place place;
    struct dnn_topo_bound bound;
    struct dnn_err err = {0};

    if (argc > 1) return print_granted();
    if (getenv("OMP_PROC_BIND") != NULL) { /* start again without it */
        unsetenv("OMP_PROC_BIND");
        execv(argv[0], argv);
    }
    struct dnn_topo_set granted = kernel_mask();
    test_openmp_binding(argv[0], granted);
    if (!ok(dnn_topo_open(&topo, &err) == 0, "this machine: %s", err.text))
        return done();
    place = place_for(topo, DNN_BIND_OFF, 0);
    is_set(place.pus, granted, "the granted mask is that of the kernel");
    ok(place.local_memory > 0 && place.local_memory <= place.total_memory, "memory");
    if (can_bind()) {
        test_policies(topo, granted);
        test_threads(topo, dnn_topo_count(&granted));
    } else {
        skip("binding", "this system does not let a process choose its CPUs");
    }
    dnn_topo_close(topo);

    dnn_topo_make("core:2 pu:1", &topo, &err);
    is_int(dnn_topo_bind(topo, DNN_BIND_AUTO, &place, &bound, &err), DNN_EUSAGE,
           "binding to a described machine is refused");
    is_text(err.text, "cannot bind to a recorded machine", "... its message");
    dnn_topo_close(topo);
    return done();
}
