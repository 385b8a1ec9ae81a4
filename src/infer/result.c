/* result.c - where the outputs of samples go: files, and an evaluation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/infer_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/* ---- activations ---- */

/* The activation of an output, by the key inference.activation. */
static enum dnn_probability activation_of(const struct dnn_config *config,
                                          enum dnn_probability of_loss)
{
    switch ((enum dnn_infer_activation)config->infer->activation) {
    case DNN_ACTIVATION_SOFTMAX:
        return DNN_PROBABILITY_SOFTMAX;
    case DNN_ACTIVATION_SIGMOID:
        return DNN_PROBABILITY_SIGMOID;
    case DNN_ACTIVATION_NONE:
        return DNN_PROBABILITY_NONE;
    case DNN_ACTIVATION_AUTO:
        break;
    }
    /* rmldnn writes the outputs of the network as they are. */
    return config->wrapped || of_loss == DNN_PROBABILITY_GIVEN ? DNN_PROBABILITY_NONE
                                                               : of_loss;
}

int dnn_infer_result_make(struct infer_result *r, const struct dnn_config *config,
                          struct dnn_session *session, const struct dnn_model *model,
                          struct dnn_err *err)
{
    const struct dnn_graph *graph = model->graph;
    enum dnn_probability of_loss;

    *r = (struct infer_result){.config = config,
                               .session = session,
                               .model = model,
                               .noutputs = graph->noutputs};
    if (graph->noutputs > INFER_OUTPUTS)
        return dnn_fail(err, DNN_ECONFIG,
                        "the network has %d outputs; dnn-infer supports up to %d",
                        graph->noutputs, INFER_OUTPUTS);
    for (int k = 0; k < r->noutputs; k++) {
        bool *bounded = &r->bounded[k];

        DNN_TRY(dnn_stage_probability(config->loss, graph, k, &of_loss, bounded, err));
        r->name[k] = graph->node[graph->output[k]].name;
        r->activation[k] = activation_of(config, of_loss);
        *bounded = *bounded || r->activation[k] != DNN_PROBABILITY_NONE;
        r->changes = r->changes || r->activation[k] != DNN_PROBABILITY_NONE;
        if (k == 0) r->logits = !*bounded && of_loss != DNN_PROBABILITY_GIVEN;
    }
    return 0;
}

static void softmax(float *x, int64_t channels)
{
    float max = x[0], sum = 0;

    for (int64_t c = 1; c < channels; c++)
        if (x[c] > max) max = x[c];
    for (int64_t c = 0; c < channels; c++)
        sum += x[c] = expf(x[c] - max);
    for (int64_t c = 0; c < channels; c++)
        x[c] /= sum;
}

void dnn_infer_activate(const struct infer_result *r, int k, float *value, int64_t n,
                        int64_t channels)
{
    enum dnn_probability how = r->activation[k];

    if (how == DNN_PROBABILITY_NONE) return;
#pragma omp parallel for schedule(static) if (n * channels > 1 << 14)
    for (int64_t i = 0; i < n; i++) {
        float *x = value + i * channels;

        if (how == DNN_PROBABILITY_SOFTMAX) softmax(x, channels);
        for (int64_t c = 0; c < channels && how != DNN_PROBABILITY_SOFTMAX; c++)
            x[c] = how == DNN_PROBABILITY_EXP ? expf(x[c]) : 1 / (1 + expf(-x[c]));
    }
}

/* ---- files ---- */

static unsigned set_of(const struct dnn_list *list)
{
    unsigned set = 0;

    for (int64_t i = 0; i < list->count; i++)
        set |= (unsigned)list->enums[i];
    return set;
}

/* The formats to write; 0: none. */
static unsigned formats_of(const struct dnn_config *config, bool classifier,
                           bool evaluated)
{
    const struct dnn_config_data *d = config->data;

    if (config->infer->formats.count > 0) return set_of(&config->infer->formats);
    if (config->wrapped || d->test_output_path != NULL || d->hdf5_outfile != NULL)
        return evaluated && d->test_output_path == NULL && d->hdf5_outfile == NULL
                   ? 0
                   : DNN_OUTPUT_HDF5;
    return classifier ? DNN_OUTPUT_CSV : DNN_OUTPUT_NPY;
}

/* ---- settings ---- */

static void add_file(struct dnn_buf *text, const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0)
        dnn_buf_add(text, "%" PRId64 " %" PRId64 ".%09ld\n", (int64_t)st.st_size,
                    (int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

/* Size and time of the files of the inputs, or of the targets. */
static void add_files(const struct infer_samples *samples, bool targets,
                      struct dnn_buf *text)
{
    const struct dnn_source *source = samples->source;

    for (int64_t i = 0; source != NULL && i < source->nfiles; i++)
        if (targets == (source->ninputs > 0 && i >= source->ninputs))
            add_file(text, source->file[i]);
    if (samples->dataset == NULL || targets) return;
    char *inside = dnn_format("%s/md.idx", samples->dataset);
    add_file(text, inside);
    dnn_free(inside);
}

static int add_weights(const struct dnn_model *model, struct dnn_buf *text,
                       struct dnn_err *err)
{
    const struct dnn_prog *prog = model->prog;

    for (int i = 0; i < prog->nvalues; i++) {
        float *copy = NULL;
        int64_t n;

        if (prog->value[i].role != DNN_WEIGHT && prog->value[i].role != DNN_STATE)
            continue;
        DNN_TRY(dnn_shape_count(dnn_prog_shape(prog, i), &n, err));
        const float *value = dnn_exec_view(model->exec, i, &copy, err);
        if (value == NULL) return err->code;
        dnn_buf_add(text, "%016" PRIx64 "\n",
                    (uint64_t)XXH3_64bits(value, (size_t)n * sizeof *value));
        free(copy);
    }
    return 0;
}

/* The sections data and inference, except how samples are read and what is written,
 * which may change; without targets, except the evaluation, too. */
static void add_sections(const struct dnn_config *config, bool targets,
                         struct dnn_buf *text)
{
    struct dnn_config_data data = *config->data;
    struct dnn_config_infer infer = *config->infer;
    char *printed = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&printed, &size);

    data.batch_size = data.batch_size_per_rank = 0;
    data.window = data.memory = data.threads = data.ahead = 0;
    data.shuffle = data.preload = data.verify = false;
    data.test_output_path = data.hdf5_outfile = NULL;
    infer.formats.count = infer.contents.count = 0;
    infer.names = infer.gzip = false;
    infer.memory = infer.top_k = 0;
    if (!targets) {
        data.target_path = data.test_target_path = NULL;
        data.target_transforms = data.test_target_transforms = NULL;
        infer.surfaces = false;
        infer.bins = infer.worst = infer.background = 0;
    }
    if (to != NULL) {
        dnn_field_print(dnn_config_data_fields, &data, to);
        dnn_field_print(dnn_config_infer_fields, &infer, to);
        fclose(to);
    }
    dnn_buf_add(text, "%s", printed == NULL ? "" : printed);
    free(printed);
}

/* The network, and what else changes its outputs. */
static int add_network(const struct infer_result *r, struct dnn_buf *text,
                       struct dnn_err *err)
{
    const struct dnn_config *c = r->config;
    const struct dnn_graph *graph = c->net.graph;
    char *network = NULL, shape[DNN_SHAPE_TEXT];

    DNN_TRY(dnn_config_network(c, &network, err));
    dnn_buf_add(text, "%s\n%s %d %d %d %d %" PRId64 " %s %s\n", network,
                r->model->backend.name, c->precision, c->fuse, c->deterministic,
                c->wrapped, c->seed, c->loss_text,
                c->kernels->conv == NULL ? "" : c->kernels->conv);
    dnn_free(network);
    for (int i = 0; i < graph->ninputs; i++)
        dnn_buf_add(
            text, "%s\n",
            dnn_shape_text(shape, sizeof shape, &graph->node[graph->input[i]].out));
    return add_weights(r->model, text, err);
}

static void checksum(const struct dnn_buf *text, char out[33])
{
    XXH128_hash_t hash = XXH3_128bits(text->text, text->len);

    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
}

/* On rank 0. */
static int find_settings(struct infer_result *r, const struct infer_samples *samples,
                         struct dnn_err *err)
{
    struct dnn_buf text = {0};
    int rc = add_network(r, &text, err);

    add_sections(r->config, false, &text);
    add_files(samples, false, &text);
    checksum(&text, r->settings);
    add_sections(r->config, true, &text);
    add_files(samples, true, &text);
    dnn_buf_add(&text, "%s", r->config->metrics_text);
    checksum(&text, r->evaluated);
    dnn_buf_free(&text);
    return rc;
}

/* Collective. */
static int share_settings(struct infer_result *r, const struct infer_samples *samples,
                          struct dnn_err *err)
{
    struct dnn_comm *comm = r->session->comm;
    int rc = 0;

    if (!samples->resume) return 0;
    if (dnn_comm_rank(comm) == 0) rc = find_settings(r, samples, err);
    DNN_TRY(dnn_comm_agree(comm, rc, err));
    DNN_TRY(dnn_comm_bcast(comm, "checksum of the settings", r->settings,
                           sizeof r->settings, 0, err));
    return dnn_comm_bcast(comm, "checksum of the settings", r->evaluated,
                          sizeof r->evaluated, 0, err);
}

/* ---- files ---- */

static char *without_slashes(const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    return dnn_format("%.*s", (int)len, path);
}

/* The directory that names are relative to: that of the inputs, or the one that all
 * files of a list are in. */
static char *names_from(const char *path, const struct dnn_source *source)
{
    if (path == NULL) return NULL;
    if (source == NULL || source->nfiles == 0 ||
        strncmp(source->file[0], path, strlen(path)) == 0)
        return dnn_strdup(path);
    const char *first = source->file[0];
    int64_t n = source->ninputs > 0 ? source->ninputs : source->nfiles;
    size_t len = strlen(first);

    for (int64_t i = 1; i < n; i++) {
        size_t same = 0;

        while (same < len && first[same] == source->file[i][same])
            same++;
        len = same;
    }
    while (len > 0 && first[len - 1] != '/')
        len--;
    return dnn_format("%.*s", len == 0 ? 0 : (int)len - 1, first);
}

int dnn_infer_result_open(struct infer_result *r, const struct dnn_infer_opts *opts,
                          const struct infer_samples *samples, struct dnn_err *err)
{
    static const int precisions[] = {[DNN_HDF5_SINGLE] = DNN_OUTPUT_SINGLE,
                                     [DNN_HDF5_HALF] = DNN_OUTPUT_HALF,
                                     [DNN_HDF5_DOUBLE] = DNN_OUTPUT_DOUBLE};
    const struct dnn_config *config = r->config;
    const struct dnn_config_data *d = config->data;
    const struct dnn_config_infer *how = config->infer;
    unsigned contents = set_of(&how->contents);
    char name[64];

    r->dir = without_slashes(d->test_output_path != NULL
                                 ? dnn_config_path(config, d->test_output_path)
                                 : dnn_config_dir(config));
    r->from = names_from(samples->from, samples->source);
    snprintf(name, sizeof name, "output_%" PRId64, samples->number);
    DNN_TRY(share_settings(r, samples, err));
    const struct dnn_output_options options = {
        .dir = r->dir,
        .name = config->wrapped || d->test_output_path != NULL ? name : NULL,
        .hdf5_path = dnn_config_path(config, d->hdf5_outfile),
        .formats = formats_of(config, samples->classifier, r->evaluation != NULL),
        .contents = contents == 0 ? DNN_OUTPUT_VALUES : contents,
        .precision = precisions[d->hdf5_precision],
        .gzip = how->gzip,
        .names = how->names,
        .top_k = how->top_k,
        .threshold = 0.5,
        .noutputs = r->noutputs,
        .output_name = r->name,
        .class_name = opts->class_name,
        .nclass_names = opts->nclasses,
        .from = r->from,
        .input = samples->dataset != NULL  ? &samples->dataset
                 : samples->source != NULL ? samples->source->file
                                           : NULL,
        .ninputs = samples->dataset != NULL  ? 1
                   : samples->source != NULL ? samples->source->nfiles
                                             : 0,
        .nsamples = samples->count,
        .describe = samples->describe,
        .arg = samples->arg,
        .settings = samples->resume ? r->settings : NULL};

    if (options.formats == 0) return 0;
    int rc = 0;
    if ((options.formats & DNN_OUTPUT_OVERLAY) && samples->overlay != NULL)
        rc = dnn_fail(err, DNN_ECONFIG, "inference.formats: overlay %s",
                      samples->overlay);
    DNN_TRY(dnn_comm_agree(r->session->comm, rc, err));
    DNN_TRY(dnn_output_open(r->session->comm, &options, &r->files, err));
    r->resumes = samples->resume;
    for (int i = 0; dnn_output_path(r->files, i) != NULL; i++)
        if (i == 0 ||
            strcmp(dnn_output_path(r->files, i), dnn_output_path(r->files, i - 1)))
            dnn_log(DNN_INFO, "infer", "writing outputs to %s",
                    dnn_output_path(r->files, i));
    return 0;
}

int dnn_infer_result_commit(struct infer_result *r, struct dnn_err *err)
{
    return r->files == NULL ? 0 : dnn_output_commit(r->files, err);
}

int dnn_infer_result_close(struct infer_result *r, int rc, struct dnn_err *err)
{
    if (rc == DNN_ESTOP && !r->resumes) {
        rc = dnn_fail(err, DNN_ELOST,
                      "stopped before all samples were computed; this run cannot be "
                      "resumed: the same command starts from the beginning, so give it "
                      "more time or more ranks");
        err->everywhere = true;
    }
    if (rc == 0)
        dnn_output_close(r->files);
    else
        dnn_output_abandon(r->files);
    dnn_evaluate_close(r->evaluation);
    dnn_infer_resume_free(r->resume);
    dnn_free(r->dir);
    dnn_free(r->from);
    *r = (struct infer_result){0};
    return rc;
}

/* ---- evaluation ---- */

int dnn_infer_result_evaluate(struct infer_result *r, const struct dnn_infer_opts *opts,
                              const struct dnn_column *column, int64_t channels,
                              int ndim, struct dnn_err *err)
{
    const struct dnn_config_infer *how = r->config->infer;
    bool classes = column->kind == DNN_KIND_LABEL || column->kind == DNN_KIND_MASK;
    int64_t count = !classes ? channels : channels == 1 ? 2 : channels;
    struct dnn_evaluate_cfg cfg = {
        .task = !classes   ? DNN_EVALUATE_VALUES
                : ndim > 0 ? DNN_EVALUATE_MASKS
                           : DNN_EVALUATE_LABELS,
        .classes = count,
        .channels = channels,
        .class_name = opts->class_name != NULL && opts->nclasses >= count
                          ? opts->class_name
                      : column->classes >= count ? column->class_name
                                                 : NULL,
        .ignore = dnn_config_ignored(r->config),
        .background = how->background,
        .surfaces = how->surfaces,
        .ndim = ndim,
        .bins = (int)how->bins,
        .worst = (int)how->worst};

    /* Scores that are not known to be probabilities cannot be calibrated, but their
     * order is the same after a softmax or sigmoid. */
    r->task = cfg.task;
    r->classes = cfg.classes;
    r->class_name = cfg.class_name;
    cfg.logits = classes && r->logits;
    return dnn_evaluate_open(&cfg, &r->evaluation, err);
}
