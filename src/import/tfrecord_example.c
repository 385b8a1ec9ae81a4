/* tfrecord_example.c - select and read the features of an example.
 *
 * A feature is a list of byte strings, of floats or of integers.  A byte string is an
 * image (PNG or JPEG, detected by content) or raw data of the configured type (u8 if
 * there is none).  The shape of values is the configured one, or is given by other
 * features: NAME/shape, NAME_shape, shape; or height, width and channels (or depth),
 * each also with the prefix "image/".
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_PROTOBUFC
#include "import/tfrecord_impl.h"

#include "base/mem.h"
#include "base/text.h"
#include "import/example.pb-c.h"
#include "import/image_impl.h"

#include <string.h>

enum { SHOWN = 20 }; /* names in a message */

static const char *const inputs[] = {"image/encoded", "image_raw", "image/raw",
                                     "image",         "x",         "features",
                                     "input",         "data",      NULL};
static const char *const targets[] = {"image/class/label",
                                      "label",
                                      "labels",
                                      "y",
                                      "target",
                                      "mask",
                                      "image/segmentation/class/encoded",
                                      NULL};

int dnn_example_parse(const char *what, const void *bytes, size_t n, dnn_example **out,
                      struct dnn_err *err)
{
    *out = dnn__tf__example__unpack(NULL, n, bytes);
    if (*out == NULL)
        return dnn_fail(err, DNN_EDATA, "%s: not a tf.train.Example", what);
    if ((*out)->features != NULL && (*out)->features->n_feature > 0) return 0;
    dnn_example_free(*out);
    *out = NULL;
    return dnn_fail(err, DNN_EDATA, "%s: contains no features", what);
}

void dnn_example_free(dnn_example *example)
{
    if (example != NULL) dnn__tf__example__free_unpacked(example, NULL);
}

/* ---- selection ---- */

/* If a key occurs several times, the last entry is used, as in all protobuf maps. */
static const Dnn__Tf__Feature *find(const dnn_example *example, const char *name)
{
    const Dnn__Tf__Features *all = example->features;

    for (size_t i = all->n_feature; i-- > 0;)
        if (all->feature[i]->key != NULL && strcmp(all->feature[i]->key, name) == 0)
            return all->feature[i]->value;
    return NULL;
}

static int missing(const dnn_example *example, const struct dnn_feature *f,
                   const char *name, struct dnn_err *err)
{
    const Dnn__Tf__Features *all = example->features;
    const char **names = dnn_alloc((all->n_feature + 1) * sizeof *names);
    struct dnn_buf list = {0};
    char hint[128] = "";
    size_t n = 0;

    for (size_t i = 0; i < all->n_feature; i++) {
        if (all->feature[i]->key == NULL) continue;
        if (n < SHOWN)
            dnn_buf_add(&list, "%s%.40s", n > 0 ? ", " : "", all->feature[i]->key);
        names[n++] = all->feature[i]->key;
    }
    if (n > SHOWN) dnn_buf_add(&list, " and %zu more", n - SHOWN);
    if (list.text != NULL) dnn_text_clean(list.text);
    if (name != NULL) {
        dnn_text_hint(hint, sizeof hint, name, names);
        dnn_fail(err, DNN_EDATA, "%s: there is no feature \"%s\"%s; available: %s",
                 f->what, name, hint, list.text != NULL ? list.text : "none");
    } else {
        dnn_fail(err, DNN_EDATA,
                 "%s: several features could be the %s; set its name to one of %s",
                 f->what, f->target ? "target" : "input",
                 list.text != NULL ? list.text : "none");
    }
    dnn_buf_free(&list);
    dnn_free(names);
    return DNN_EDATA;
}

int dnn_example_choose(const dnn_example *example, struct dnn_feature *feature,
                       struct dnn_err *err)
{
    const struct dnn_import_side *side = feature->side;
    const char *const *usual = feature->target ? targets : inputs;

    feature->name = side->name;
    if (side->name != NULL)
        return find(example, side->name) != NULL
                   ? 0
                   : missing(example, feature, side->name, err);
    for (int i = 0; usual[i] != NULL && feature->name == NULL; i++)
        if (find(example, usual[i]) != NULL) feature->name = usual[i];
    if (feature->name != NULL || (feature->target && side->path == NULL)) return 0;
    return missing(example, feature, NULL, err);
}

/* ---- shapes ---- */

/* The feature PREFIXNAME with n integers (0: any number), or NULL. */
static const Dnn__Tf__Int64List *ints(const dnn_example *example, const char *prefix,
                                      const char *name, size_t n)
{
    char *full = dnn_format("%s%s", prefix, name);
    const Dnn__Tf__Feature *found = find(example, full);

    dnn_free(full);
    if (found == NULL || found->int64_list == NULL) return NULL;
    return n == 0 || found->int64_list->n_value == n ? found->int64_list : NULL;
}

static const Dnn__Tf__Int64List *extent(const dnn_example *example, const char *name)
{
    const Dnn__Tf__Int64List *found = ints(example, "image/", name, 1);

    return found != NULL ? found : ints(example, "", name, 1);
}

static int set_shape(const struct dnn_feature *f, size_t n, const int64_t *dim,
                     struct dnn_shape *out, struct dnn_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (dim[i] < 0)
            return dnn_fail(err, DNN_EDATA, "%s: %s: the shape has a dimension of %lld",
                            f->what, f->name, (long long)dim[i]);
    if (n > DNN_MAX_DIMS)
        return dnn_fail(err, DNN_EDATA, "%s: %s: the shape has more than %d axes",
                        f->what, f->name, DNN_MAX_DIMS);
    return dnn_shape_make((int)n, dim, out, err);
}

/* Determine the shape from other features.  *layout: the position of the channels, if
 * they specify it. */
static int find_shape(const dnn_example *example, const struct dnn_feature *f,
                      int64_t count, struct dnn_shape *out, int *layout, bool *varying,
                      struct dnn_err *err)
{
    const Dnn__Tf__Int64List *own = ints(example, f->name, "/shape", 0);

    *varying = true;
    if (own == NULL) own = ints(example, f->name, "_shape", 0);
    if (own == NULL && !f->target) own = ints(example, "", "shape", 0);
    if (own != NULL) return set_shape(f, own->n_value, own->value, out, err);
    const Dnn__Tf__Int64List *height = extent(example, "height");
    const Dnn__Tf__Int64List *width = extent(example, "width");
    const Dnn__Tf__Int64List *channels = extent(example, "channels");
    if (channels == NULL) channels = extent(example, "depth");
    if (height != NULL && width != NULL && count > 1) {
        int64_t dim[3] = {height->value[0], width->value[0], 1}, all = 0;
        bool first = *layout == DNN_LAYOUT_FIRST;

        if (channels != NULL && !(f->target && dim[0] * (__int128)dim[1] == count))
            dim[2] = channels->value[0];
        if (first) {
            int64_t c = dim[2];

            dim[2] = dim[1];
            dim[1] = dim[0];
            dim[0] = c;
        }
        DNN_TRY(set_shape(f, 3, dim, out, err));
        if (dnn_shape_count(out, &all, NULL) == 0 && all == count) {
            if (!first) *layout = DNN_LAYOUT_LAST;
            return 0;
        }
    }
    *varying = false;
    *out = count == 1 ? (struct dnn_shape){0}
                      : (struct dnn_shape){.ndim = 1, .dim = {count}};
    return 0;
}

/* ---- values ---- */

static int read_values(const dnn_example *example, const struct dnn_feature *f,
                       enum dnn_dtype type, const void *values, int64_t count,
                       struct dnn_axes *axes, bool *varying, struct dnn_array *out,
                       struct dnn_err *err)
{
    struct dnn_import_side side = *f->side;
    char text[DNN_SHAPE_TEXT], what[DNN_SAMPLE_NAME + 64];
    struct dnn_shape shape;
    int64_t n = 0;

    if (side.shape.count > 0) {
        *varying = false;
        DNN_TRY(set_shape(f, (size_t)side.shape.count, side.shape.ints, &shape, err));
    } else {
        DNN_TRY(find_shape(example, f, count, &shape, &side.layout, varying, err));
    }
    if (dnn_shape_count(&shape, &n, NULL) < 0 || n != count)
        return dnn_fail(err, DNN_EDATA, "%s: %s: %lld values do not match the shape %s",
                        f->what, f->name, (long long)count,
                        dnn_shape_text(text, sizeof text, &shape));
    snprintf(what, sizeof what, "%s: %.60s", f->what, f->name);
    DNN_TRY(dnn_axes_find(what, &side, f->target, type, &shape, axes, err));
    DNN_TRY(dnn_import_fits(f->how, what, type, &shape, err));
    if (dnn_array_make(out, type, &shape, err) < 0)
        return dnn_prefix(err, "%s: ", what);
    memcpy(out->data, values, dnn_array_bytes(out));
    if (axes->kind == DNN_KIND_VALUES) *varying = false;
    return dnn_axes_apply(axes, what, out, err);
}

static int read_raw(const dnn_example *example, const struct dnn_feature *f,
                    const ProtobufCBinaryData *bytes, struct dnn_axes *axes,
                    bool *varying, struct dnn_array *out, struct dnn_err *err)
{
    enum dnn_dtype type = DNN_U8;

    if (f->side->type != NULL) DNN_TRY(dnn_dtype_find(f->side->type, &type, err));
    size_t size = dnn_dtype_size(type);
    if (bytes->len % size != 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s: %zu bytes is not a multiple of the size of %s",
                        f->what, f->name, bytes->len, dnn_dtype_name(type));
    struct dnn_npy order = {.type = type, .swap = f->side->big_endian};
    unsigned char *copy = dnn_alloc(bytes->len + 1);
    if (bytes->len > 0) memcpy(copy, bytes->data, bytes->len);
    dnn_npy_swap(&order, copy, bytes->len / size);
    int rc = read_values(example, f, type, copy, (int64_t)(bytes->len / size), axes,
                         varying, out, err);
    dnn_free(copy);
    if (rc == 0 && axes->shape.ndim <= 1 && f->side->kind < 0 &&
        f->side->shape.count == 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s: not a PNG or JPEG image, and the shape of its %zu "
                        "bytes is unknown",
                        f->what, f->name, bytes->len);
    return rc;
}

/* ---- images ---- */

/* Decode an image.  A target with one channel of class numbers is a mask. */
static int read_image(const struct dnn_feature *f, const ProtobufCBinaryData *bytes,
                      struct dnn_axes *axes, bool *varying, struct dnn_array *out,
                      struct dnn_err *err)
{
    const struct dnn_import_side *side = f->side;
    char what[DNN_SAMPLE_NAME + 64];
    struct dnn_image_in in = {what, bytes->data, bytes->len, f->how, side->gray, false};
    const struct dnn_image_kind *kind =
        dnn_image_is_png(bytes->data, bytes->len) ? dnn_image_png : dnn_image_jpeg;
    struct dnn_picture about;

    snprintf(what, sizeof what, "%s: %.60s", f->what, f->name);
    if (side->kind == DNN_KIND_LABEL || side->kind == DNN_KIND_VALUES)
        return dnn_fail(
            err, DNN_ECONFIG,
            "%s: is an image; \"kind\" must be \"image\" or \"mask\", not \"%s\"", what,
            dnn_choice_name(dnn_kind_choices, side->kind));
    in.mask = side->kind == DNN_KIND_MASK;
    if (f->target && side->kind < 0 && kind != NULL) {
        DNN_TRY(kind->inspect(&in, &about, err));
        in.mask = about.classes;
    }
    if (in.mask && kind != NULL)
        DNN_TRY(kind->read(&in, &about, out, err));
    else
        DNN_TRY(dnn_image_decode(bytes->data, bytes->len, what, f->how, side->gray, out,
                                 err));
    *axes = (struct dnn_axes){.kind = in.mask ? DNN_KIND_MASK : DNN_KIND_IMAGE,
                              .type = out->type,
                              .shape = out->shape};
    *varying = true;
    if (in.mask && out->shape.dim[out->shape.ndim - 1] != 1)
        return dnn_fail(err, DNN_EDATA,
                        "%s: a mask must have one channel (the class number), not %lld",
                        what, (long long)out->shape.dim[out->shape.ndim - 1]);
    return 0;
}

int dnn_example_read(const dnn_example *example, const struct dnn_feature *feature,
                     struct dnn_axes *axes, bool *varying, struct dnn_array *out,
                     struct dnn_err *err)
{
    const Dnn__Tf__Feature *found = find(example, feature->name);

    if (found == NULL) return missing(example, feature, feature->name, err);
    if (found->float_list != NULL && found->float_list->n_value > 0)
        return read_values(example, feature, DNN_F32, found->float_list->value,
                           (int64_t)found->float_list->n_value, axes, varying, out,
                           err);
    if (found->int64_list != NULL && found->int64_list->n_value > 0)
        return read_values(example, feature, DNN_I64, found->int64_list->value,
                           (int64_t)found->int64_list->n_value, axes, varying, out,
                           err);
    size_t n = found->bytes_list == NULL ? 0 : found->bytes_list->n_value;
    if (n != 1)
        return dnn_fail(err, DNN_EDATA, "%s: %s: %s", feature->what, feature->name,
                        n == 0 ? "is empty" : "contains several strings; expected one");
    const ProtobufCBinaryData *bytes = &found->bytes_list->value[0];
    if (dnn_image_is_png(bytes->data, bytes->len) ||
        dnn_image_is_jpeg(bytes->data, bytes->len))
        return read_image(feature, bytes, axes, varying, out, err);
    return read_raw(example, feature, bytes, axes, varying, out, err);
}
#endif
