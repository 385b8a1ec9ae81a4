/* config_job.c - what a job says, what it leaves unsaid, and printing it back.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "config/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct dnn_err err;
static char path[] = "/tmp/config_job_XXXXXX";

static int read_job(const char *text, struct dnn_job *job)
{
    *job = (struct dnn_job){0};
    if (dnn_file_write(path, text, strlen(text), &err) < 0) return DNN_EIO;
    return dnn_job_read(path, job, &err);
}

static void unsaid(void)
{
    struct dnn_job job;

    is_int(read_job("{\"layers\": {\"zoo\": \"simplecnn\"}}", &job), 0,
           "layers are enough");
    is_int(job.batch_size, 1, "a batch of one");
    is_int(job.threads, 0, "threads as usual");
    is_int(job.loss, DNN_OP_MSE, "squared differences");
    is_int(job.optimizer.rule, DNN_UPDATE_ADAM, "Adam");
    ok(job.optimizer.rate == 0.001 && job.optimizer.beta2 == 0.999,
       "with its own numbers");
    is_int(job.recompute, DNN_RECOMPUTE_CHEAP, "what is cheap is computed again");
    is_int(job.memory_limit, 0, "no limit");
    ok(job.backend == NULL, "the fastest backend");
    is_text(job.net.graph->name, "simplecnn", "the network");
    ok(job.net.text != NULL, "and its text");
    dnn_job_free(&job);
}

static const char *const said[] = {
    "{\"layers\": {\"zoo\": \"unet2d\", \"base\": 4}, \"batch_size\": 3, \"loss\": "
    "\"MSE\", \"optimizer\": {\"name\": \"SGD\", \"momentum\": 0.5}, \"recompute\": "
    "\"Auto\", \"memory_limit\": \"2KiB\", \"backend\": \"ref\", \"threads\": 2, "
    "\"input\": [32, 16, 2]}",
    "{\"neural_network\": {\"layers\": {\"zoo\": \"unet2d\", \"base\": 4, \"input\": "
    "[32, 16, 2]}, \"data\": {\"batch_size\": 3, \"input_path\": \"x\"}, \"loss\": "
    "{\"function\": \"mse\"}, \"optimizer\": {\"name\": \"sgd\", \"momentum\": 0.5}, "
    "\"recompute\": \"auto\", \"memory_limit\": 2048, \"backend\": \"ref\", "
    "\"threads\": 2, \"num_epochs\": 7, \"outfile\": \"out.txt\"}}",
    NULL};

static void check(const struct dnn_job *job, const char *what)
{
    const struct dnn_shape *in = &job->net.graph->node[job->net.graph->input[0]].out;

    ok(job->batch_size == 3 && job->threads == 2 && job->memory_limit == 2048 &&
           job->loss == DNN_OP_MSE && job->recompute == DNN_RECOMPUTE_AUTO &&
           job->optimizer.rule == DNN_UPDATE_SGD && job->optimizer.momentum == 0.5 &&
           job->optimizer.rate == 0.01 && strcmp(job->backend, "ref") == 0,
       "%s: every key", what);
    ok(in->dim[1] == 32 && in->dim[2] == 16 && in->dim[3] == 2, "%s: the data", what);
}

/* Both forms say the same, and so does what is printed. */
static void everything(void)
{
    for (int i = 0; said[i] != NULL; i++) {
        struct dnn_job job, back;
        char *text = NULL;
        size_t size;

        if (!ok(read_job(said[i], &job) == 0, "form %d", i)) {
            printf("# %s\n", err.text);
            continue;
        }
        check(&job, "read");
        FILE *to = open_memstream(&text, &size);
        dnn_job_print(&job, to);
        fclose(to);
        if (ok(read_job(text, &back) == 0, "what is printed is a job"))
            check(&back, "read back");
        else
            printf("# %s\n%s\n", err.text, text);
        dnn_job_free(&back);
        dnn_job_free(&job);
        dnn_free(text);
    }
}

static void sizes(void)
{
    struct dnn_zoo_opts opts = dnn_zoo_defaults("unet3d");
    struct dnn_net net;

    opts.base = 2;
    opts.depth = 1;
    is_int(dnn_net_zoo(&opts, &(struct dnn_net_size){"8", 0}, &net, &err), 0,
           "one extent for all axes");
    const struct dnn_shape *in = &net.graph->node[net.graph->input[0]].out;
    ok(in->dim[1] == 8 && in->dim[3] == 8 && in->dim[4] == 1, "8x8x8x1");
    dnn_net_free(&net);
    is_int(dnn_net_zoo(&opts, &(struct dnn_net_size){"4x6x10", 5}, &net, &err), 0,
           "one for each");
    in = &net.graph->node[net.graph->input[0]].out;
    ok(in->dim[1] == 4 && in->dim[3] == 10 && in->dim[4] == 5, "4x6x10x5");
    dnn_net_free(&net);
    static const char *const bad[] = {"8x8", "", "8x", "0", "8x8x8x8", "x", "-8", NULL};
    for (int i = 0; bad[i] != NULL; i++)
        ok(dnn_net_zoo(&opts, &(struct dnn_net_size){bad[i], 0}, &net, &err) < 0,
           "\"%s\" is none: %s", bad[i], err.text);
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0) return 99;
    close(fd);
    ok(dnn_field_check(dnn_job_fields, &err) == 0, "the table of keys is sound");
    unsaid();
    everything();
    sizes();
    unlink(path);
    return done();
}
