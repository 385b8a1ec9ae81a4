/* ckpt_loop.c - a program that only saves checkpoints, for tests that kill it or make
 * its system calls fail.
 *
 *   ckpt_loop loop DIR     resume from the newest, save until killed
 *   ckpt_loop one DIR      resume from the newest, save one, wait
 *   ckpt_loop check DIR    check the newest and the best, print their steps
 *   ckpt_loop time DIR MB  how long a save blocks, and its whole time
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/clock.h"
#include "base/log.h"
#include "unit/ckpt_made.h"

#include <inttypes.h>
#include <sys/stat.h>

enum { N = 60 };

static struct dnn_ckpt_array *array;

static int fail(const struct dnn_err *err)
{
    fprintf(stderr, "ckpt_loop: %s\n", err->text);
    return dnn_exit_status(err->code);
}

/* Exit status if loaded arrays differ from the saved ones. */
static int load(struct dnn_ckpts *c, const char *wanted, int64_t *step)
{
    struct dnn_err err = {0};
    char *state = NULL, want[40];

    if (dnn_ckpt_load(c, wanted, N, array, step, &state, &err) < 0) return fail(&err);
    snprintf(want, sizeof want, "{\"step\": %" PRId64 "}", *step);
    bool good = *step < 0 || (made_is(N, array, *step) && strcmp(state, want) == 0);
    dnn_free(state);
    if (good) return 0;
    fprintf(stderr, "ckpt_loop: step %" PRId64 " differs from what was saved\n", *step);
    return 99;
}

static int save(struct dnn_ckpts *c, int64_t step, struct dnn_err *err)
{
    char state[40];

    made_fill(N, array, step);
    snprintf(state, sizeof state, "{\"step\": %" PRId64 "}", step);
    return dnn_ckpt_save(c, step, N, array, state, step % 3 == 0, err);
}

static int check(struct dnn_ckpts *c, const char *dir)
{
    int64_t newest = -1, best = -1;
    char *link = dnn_format("%s/best.bp", dir);
    struct stat st;
    bool there = lstat(link, &st) == 0;
    int status = load(c, NULL, &newest);

    dnn_free(link);
    if (status == 0 && there) status = load(c, "best", &best);
    printf("%" PRId64 " %" PRId64 "\n", newest, best);
    if (status == 0 && best >= 0 && best % 3 != 0) {
        fprintf(stderr, "ckpt_loop: step %" PRId64 " was not the best\n", best);
        status = 99;
    }
    return status;
}

/* Every second array has a single row. */
static void make_large(struct dnn_ckpt_array a[8], int mb)
{
    for (int i = 0; i < 8; i++) {
        int64_t rows = i % 2 == 0 ? 1000 : 1;

        a[i] = (struct dnn_ckpt_array){
            .name = dnn_format("weights_%d", i),
            .type = DNN_F32,
            .shape = {.ndim = 2, .dim = {rows, mb * (1000000 / 32) / rows}}
        };
        a[i].data = dnn_alloc(made_bytes(&a[i]));
    }
}

static int load_large(struct dnn_ckpts *c, struct dnn_ckpt_array a[8], int mb)
{
    struct dnn_err err = {0};
    double began = dnn_clock_now();
    int64_t step;
    char *state = NULL;
    bool good = true;

    for (int i = 0; i < 8; i++)
        memset(a[i].data, 0, made_bytes(&a[i]));
    if (dnn_ckpt_load(c, NULL, 8, a, &step, &state, &err) < 0) return fail(&err);
    printf("%d MB: loaded in %.3f s\n", mb, dnn_clock_now() - began);
    for (int i = 0; i < 8; i++)
        for (size_t k = 0, n = made_bytes(&a[i]) / 4; k < n; k++)
            good &= ((uint32_t *)a[i].data)[k] == (uint32_t)((size_t)i * n + k);
    dnn_free(state);
    if (!good) fprintf(stderr, "ckpt_loop: differs from what was saved\n");
    return good ? 0 : 99;
}

static int measure(struct dnn_ckpts *c, int mb)
{
    struct dnn_ckpt_array a[8];
    struct dnn_err err = {0};
    double held, all;
    int status = 0;

    make_large(a, mb);
    for (int i = 0; i < 8; i++)
        for (size_t k = 0, n = made_bytes(&a[i]) / 4; k < n; k++)
            ((uint32_t *)a[i].data)[k] = (uint32_t)((size_t)i * n + k);
    for (int i = 0; status == 0 && i < 3; i++) {
        if ((i == 0 && dnn_ckpt_reserve(c, 8, a, &err) < 0) ||
            dnn_ckpt_save(c, i, 8, a, "{}", false, &err) < 0 ||
            dnn_ckpt_wait(c, &err) < 0)
            status = fail(&err);
        dnn_ckpt_times(c, &held, &all);
        printf("%d MB: blocked for %.3f s, %.3f s in all\n", mb, held, all);
    }
    if (status == 0) status = load_large(c, a, mb);
    for (int i = 0; i < 8; i++) {
        dnn_free((char *)a[i].name);
        dnn_free(a[i].data);
    }
    return status;
}

static int run(struct dnn_ckpts *c, int argc, char **argv)
{
    struct dnn_err err = {0};
    int64_t step;

    if (strcmp(argv[1], "time") == 0) return measure(c, argc > 3 ? atoi(argv[3]) : 100);
    if (strcmp(argv[1], "check") == 0) return check(c, argv[2]);
    int status = load(c, NULL, &step);
    if (status != 0) return status;
    printf("resuming from step %" PRId64 "\n", step);
    fflush(stdout);
    do
        if (save(c, ++step, &err) < 0) return fail(&err);
    while (strcmp(argv[1], "loop") == 0);
    return dnn_ckpt_wait(c, &err) < 0 ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
    struct dnn_ckpts *c = NULL;
    struct dnn_err err = {0};

    if (argc < 3) return 2;
    struct dnn_ckpt_cfg cfg = {.dir = argv[2], .keep = 2, .background = true};
    dnn_log_levels("warn", &err);
    array = made_arrays(N);
    if (dnn_ckpt_open(NULL, &cfg, &c, &err) < 0) return fail(&err);
    int status = run(c, argc, argv);
    if (dnn_ckpt_close(c, &err) < 0 && status == 0) status = fail(&err);
    made_free(N, array);
    return status;
}
