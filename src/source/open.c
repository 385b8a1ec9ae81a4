/* open.c - opens files and generators as set in the configuration.
 *
 * They are wrapped in a source that selects the samples of one part (training or
 * validation) and converts the grey levels of masks that are images to classes.  Slices
 * are cut before (slice.c).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "source/source_impl.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "generate/generate.h"
#include "package/package.h"
#include "prepare/apply.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SHUFFLE = 0x76616c }; /* a stream that no epoch uses */

struct view {
    struct dnn_source base;
    struct dnn_source_type type;
    struct dnn_source *from; /* owned */
    double scale, shift;     /* of masks; 0: as they are */
    bool selects;            /* only some samples of from */
    struct dnn_perm order;   /* of from's samples, if selects */
    int64_t first;           /* position in order of sample 0 */
};

static const struct view *view_of(const struct dnn_source *source)
{
    return (const struct view *)source;
}

/* The number in from of sample i of this part. */
static int64_t source_number(const struct view *s, int64_t i)
{
    if (!s->selects) return i;
    return (int64_t)dnn_rng_perm_at(&s->order, (uint64_t)(s->first + i));
}

/* ---- masks ---- */

static int make_classes(const struct view *s, int64_t i, struct dnn_array *mask,
                        struct dnn_err *err)
{
    char name[DNN_SAMPLE_NAME];
    int64_t n = dnn_array_count(mask);
    int32_t *value;

    DNN_TRY(dnn_array_convert(mask, DNN_I32, true, err));
    value = mask->data;
    for (int64_t k = 0; k < n; k++) {
        double class = nearbyint(value[k] * s->scale + s->shift);

        if (class < 0 || class > INT32_MAX) {
            dnn_source_label(s->from, i, name);
            return dnn_fail(err, DNN_EDATA,
                            "the mask of %s: grey level %" PRId32
                            " becomes class %g, which is out of range; masks are "
                            "divided by 255 and then normalised",
                            name, value[k], class);
        }
        value[k] = (int32_t)class;
    }
    return 0;
}

static bool is_mask(const struct dnn_column *col)
{
    return col->role == DNN_ROLE_TARGET && col->kind == DNN_KIND_MASK;
}

/* ---- the source ---- */

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    const struct view *s = view_of(source);
    int64_t at = source_number(s, i);

    DNN_TRY(dnn_source_read(s->from, at, out, err));
    for (int c = 0; s->scale != 0 && c < source->ncols; c++)
        if (is_mask(&source->col[c])) DNN_TRY(make_classes(s, at, &out->col[c], err));
    return 0;
}

static int shape_of(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_shape *out, struct dnn_err *err)
{
    const struct view *s = view_of(source);

    return dnn_source_try_shape(s->from, source_number(s, i), c, out, err);
}

static int read_box(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    const struct view *s = view_of(source);
    int64_t at = source_number(s, i);
    int rc = dnn_source_try_box(s->from, at, c, start, extent, out, err);

    if (rc != 0 || s->scale == 0 || !is_mask(&source->col[c])) return rc;
    return make_classes(s, at, out, err);
}

static int position(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_position *out, struct dnn_err *err)
{
    const struct view *s = view_of(source);

    return dnn_source_position(s->from, source_number(s, i), c, out, err);
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct view *s = view_of(source);

    dnn_source_label(s->from, source_number(s, i), out);
}

static void group(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct view *s = view_of(source);

    s->from->type->group(s->from, source_number(s, i), out);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    const struct view *s = view_of(source);

    return s->from->type->class_of(s->from, source_number(s, i));
}

static void close_view(struct dnn_source *source)
{
    dnn_source_close(((struct view *)source)->from);
    dnn_free(source);
}

/* Holds out samples for validation: at least one, and at least one remains. */
static int hold_out(struct view *s, const struct dnn_config *config,
                    const struct dnn_config_origin *origin, struct dnn_err *err)
{
    int64_t all = s->from->count;
    int64_t held_out = (int64_t)floor((double)all * origin->held_out);

    if (origin->held_out <= 0) return 0;
    if (held_out < 1) held_out = 1;
    if (all < 2)
        return dnn_fail(
            err, DNN_EDATA,
            "data.validation: there is only one sample, so none can be held "
            "out");
    s->selects = true;
    s->order = dnn_rng_perm((uint64_t)config->seed, SHUFFLE, (uint64_t)all);
    s->first = origin->part == DNN_PART_VALIDATION ? 0 : held_out;
    s->base.count = origin->part == DNN_PART_VALIDATION ? held_out : all - held_out;
    return 0;
}

/* Number of classes of the network; 0: not known, or some classes are ignored. */
static int64_t classes_of(const struct dnn_config *config)
{
    const struct dnn_graph *graph = config->net.graph;

    if (graph == NULL || graph->noutputs != 1 || dnn_config_ignores(config)) return 0;
    const struct dnn_shape *out = &graph->node[graph->output[0]].out;
    int64_t channels = out->dim[out->ndim - 1];
    return channels < 1 ? 0 : channels == 1 ? 2 : channels;
}

/* Takes ownership of from, also on failure. */
static int make_view(struct dnn_source *from, const struct dnn_config *config,
                     const struct dnn_config_origin *origin, struct dnn_source **out,
                     struct dnn_err *err)
{
    struct view *s = dnn_alloc(sizeof *s);

    s->from = from;
    s->base = dnn_source_like(from, &s->type);
    s->type = (struct dnn_source_type){
        .name = from->type->name,
        .read = read_sample,
        .label = label,
        .group = from->type->group == NULL ? NULL : group,
        .class_of = from->type->class_of == NULL ? NULL : class_of,
        .close = close_view,
        .shape = shape_of,
        .read_box = read_box,
        .position = position};
    s->scale = origin->mask_scale;
    s->shift = origin->mask_shift;
    for (int c = 0; s->scale != 0 && c < s->base.ncols; c++)
        if (is_mask(&s->base.col[c])) {
            s->base.col[c].type = DNN_I32;
            s->base.col[c].classes = 0;
            s->base.col[c].class_name = NULL;
        }
    for (int c = 0; c < s->base.ncols; c++)
        if (is_mask(&s->base.col[c]) && s->base.col[c].classes == 0)
            s->base.col[c].classes = classes_of(config);
    int rc = hold_out(s, config, origin, err);
    if (rc < 0) {
        close_view(&s->base);
        return rc;
    }
    *out = &s->base;
    return 0;
}

/* ---- generators ---- */

/* rmldnn's generator of initial conditions, made with our generator.  Test samples
 * differ from training samples. */
static int open_pde(const struct dnn_config *config, bool test, struct dnn_source **out,
                    struct dnn_err *err)
{
    const struct dnn_config_data *data = config->data;
    struct dnn_buf text = {0};
    struct dnn_json *file = NULL;

    dnn_buf_add(&text, "{\"type\": \"burgers\", \"samples\": %" PRId64,
                test ? data->num_test_examples : data->num_examples);
    dnn_buf_add(&text, ", \"seed\": %" PRId64 ", \"domain_size\": %" PRId64,
                config->seed + (test ? 1 : 0), data->domain_size);
    dnn_buf_add(&text, ", \"bc_frequency\": [%.17g, %.17g], \"bc_type\": ",
                data->bc_frequency.reals[0], data->bc_frequency.reals[1]);
    dnn_json_quoted(&text, data->bc_type);
    dnn_buf_add(&text, ", \"terms\": %" PRId64 "}", data->bc_terms);
    int rc = dnn_json_text("data", text.text, text.len, &file, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_generate_open(&top, out, err);
    }
    dnn_json_free(file);
    dnn_buf_free(&text);
    return rc;
}

static int open_generator(const struct dnn_config *config, bool test,
                          struct dnn_source **out, struct dnn_err *err)
{
    const char *text = test ? config->data->test_generate : config->data->generate;
    struct dnn_config_at at;

    if (text == NULL) return open_pde(config, test, out, err);
    dnn_config_find(config, &at);
    struct dnn_jobj obj = dnn_json_sub(&at.data, test ? "test_generate" : "generate");
    return dnn_generate_open(&obj, out, err);
}

/* ---- files ---- */

static const struct dnn_column *of_role(const struct dnn_source *source,
                                        enum dnn_column_role role)
{
    for (int c = 0; c < source->ncols; c++)
        if (source->col[c].role == role) return &source->col[c];
    return NULL;
}

/* Whether an array assumed to be channels-first has no channels: it has as many axes as
 * the slices have sizes, or it is a mask with one axis less than its input. */
static bool lacks_channels(const struct dnn_config_data *data,
                           const struct dnn_column *col, const struct dnn_column *input)
{
    const struct dnn_slicer *slicer = data->slicers.objects;

    if (col == NULL || col->shape.ndim < 2) return false;
    if (data->slicers.count > 0) return col->shape.ndim == slicer[0].sizes.count;
    return input != NULL && col->shape.ndim == input->shape.ndim - 1 &&
           col->kind != DNN_KIND_VALUES && col->kind != DNN_KIND_LABEL;
}

/* Arrays without channels are opened again as such, unless the configuration sets their
 * layout. */
static int open_files(const struct dnn_config *config,
                      const struct dnn_config_origin *origin, struct dnn_source **out,
                      struct dnn_err *err)
{
    const struct dnn_config_data *data = config->data;
    struct dnn_import how = origin->files;
    struct dnn_err why = {0};
    bool again = false;
    int rc = dnn_import_open(&how, out, err == NULL ? &why : err);

    if (!how.whole) return rc;
    /* Opening fails for a mask whose first axis is not the channels. */
    if (rc < 0 && how.target.path != NULL && how.target.layout == DNN_LAYOUT_FIRST &&
        data->target_layout == DNN_LAYOUT_AUTO) {
        how.target.layout = DNN_LAYOUT_NONE;
        if (dnn_import_open(&how, out, &why) < 0) return rc;
        rc = 0;
    }
    DNN_TRY(rc);
    const struct dnn_column *input = of_role(*out, DNN_ROLE_INPUT);
    const struct dnn_column *target = of_role(*out, DNN_ROLE_TARGET);
    if (how.input.layout == DNN_LAYOUT_FIRST && data->input_layout == DNN_LAYOUT_AUTO &&
        lacks_channels(data, input, NULL)) {
        how.input.layout = DNN_LAYOUT_NONE;
        again = true;
    }
    if (how.target.layout == DNN_LAYOUT_FIRST &&
        data->target_layout == DNN_LAYOUT_AUTO && lacks_channels(data, target, input)) {
        how.target.layout = DNN_LAYOUT_NONE;
        again = true;
    }
    if (!again) return 0;
    dnn_source_close(*out);
    *out = NULL;
    return dnn_import_open(&how, out, err);
}

const struct dnn_source_slices *dnn_source_sliced(const struct dnn_source *source)
{
    if (source == NULL || source->type->read != read_sample) return NULL;
    return dnn_source_slices(view_of(source)->from);
}

/* Apply the preparation of a model's training data.  Takes ownership of from. */
static int prepare(const struct dnn_config *config, struct dnn_source *from,
                   struct dnn_source **out, struct dnn_err *err)
{
    const char *path = dnn_config_path(config, config->data->test_preparation);
    struct dnn_package *model = NULL;
    int rc = dnn_package_open_network(path, &model, err);

    if (rc < 0) {
        dnn_source_close(from);
        return rc;
    }
    const char *record = dnn_package_info(model)->preparation;
    *out = from;
    if (record != NULL) rc = dnn_prepare_apply(record, strlen(record), from, out, err);
    dnn_package_close(model);
    return rc < 0 ? dnn_prefix(err, "data.test_preparation: %s: ", path) : 0;
}

int dnn_source_open(const struct dnn_config *config,
                    const struct dnn_config_origin *origin, struct dnn_source **out,
                    struct dnn_err *err)
{
    struct dnn_source *from = NULL;

    *out = NULL;
    switch (origin->from) {
    case DNN_FROM_FILES:
        DNN_TRY(open_files(config, origin, &from, err));
        break;
    case DNN_FROM_GENERATOR:
        DNN_TRY(open_generator(config, origin->part == DNN_PART_TEST, &from, err));
        break;
    default:
        return dnn_fail(err, DNN_ECONFIG,
                        "the configuration names neither files nor a generator");
    }
    if (origin->part == DNN_PART_TEST && origin->from == DNN_FROM_FILES &&
        config->data->test_preparation != NULL)
        DNN_TRY(prepare(config, from, &from, err));
    if (config->data->slicers.count > 0)
        DNN_TRY(dnn_source_slice(from, config->data, &from, err));
    return make_view(from, config, origin, out, err);
}
