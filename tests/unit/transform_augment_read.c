/* transform_augment_read.c - lists of transforms: both forms of parameters, tables, and
 * error messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "transform_augment.h"

static const int64_t volume[3] = {9, 11, 10}, plane[2] = {12, 9};

/* Errors of the list. */
static void refuses(const char *text, const char *want)
{
    struct dnn_err err = {0};
    struct dnn_augment *a = read_lists(text, &err);

    is_text(a == NULL ? err.text : "(read)", want, want);
    dnn_augment_free(a);
}

/* Errors for columns, and the same for a sample. */
static void cannot(int nspace, const char *list, const char *want)
{
    struct dnn_err err = {0}, again = {0};
    struct dnn_augment *a = read_both(list, &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    struct place p = place_make(nspace, nspace == 3 ? volume : plane);
    struct dnn_column col[3];
    int rc = a == NULL ? 1 : dnn_augment_columns(a, 3, p.col, col, &err);

    is_text(rc < 0 ? err.text : "(accepted)", want, want);
    if (a != NULL) {
        rc = dnn_augment_apply(a, 3, p.col, 0, 0, 0, &p.sample, NULL, s, &again);
        is_text(rc < 0 ? again.text : "(applied)", want, "the same for the sample");
    }
    place_free(&p);
    dnn_augment_scratch_free(s);
    dnn_augment_free(a);
}

/* Two equal lists. */
static void alike(const char *one, const char *two)
{
    struct dnn_err err = {0};
    struct dnn_augment *a = read_both(one, &err), *b = read_both(two, &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    struct place p = place_make(3, volume), q = place_make(3, volume);
    bool good =
        a != NULL && b != NULL &&
        dnn_augment_apply(a, 3, p.col, 0, 1, 2, &p.sample, NULL, s, &err) == 0 &&
        dnn_augment_apply(b, 3, q.col, 0, 1, 2, &q.sample, NULL, s, &err) == 0 &&
        same_sample(&p.sample, &q.sample);

    if (!ok(good, "%s is %s", one, two)) printf("# %s\n", err.text);
    place_free(&p);
    place_free(&q);
    dnn_augment_scratch_free(s);
    dnn_augment_free(a);
    dnn_augment_free(b);
}

static void forms(void)
{
    alike("[{'resize': 8}]", "[{'resize': {'size': [8, 8, 8]}}]");
    alike("[{'rotate': 30}]", "[{'rotate': {'angle': [30], 'fill': 0}}]");
    alike("['random_horizontal_flip']", "[{'random_horizontal_flip': 0.5}]");
    alike("['random_flip']", "[{'random_flip': {'axes': [0, 1, 2]}}]");
    alike("['normalize']", "[{'normalize': {'mean': [0, 0, 0, 0], 'std': 1}}]");
    alike("[{'noise': 1}]", "[{'noise': {'std': 1, 'p': 1}}]");
    alike("[{'jitter_crop': 0.5}]", "[{'jitter_crop': {'amount': 0.5}}]");

    struct dnn_err err = {0};
    struct dnn_augment *a = read_lists("{}", &err);
    struct place p = place_make(2, plane);
    struct dnn_column col[3];
    ok(a != NULL && !dnn_augment_random(a) && !dnn_augment_mixes(a) &&
           dnn_augment_columns(a, 3, p.col, col, &err) == 0 &&
           dnn_shape_equal(&col[0].shape, &p.col[0].shape),
       "no lists: nothing changes");
    dnn_augment_free(a);
    a = read_both("[{'resize': [4, 4]}, {'normalize': {'std': 2}}]", &err);
    ok(a != NULL && !dnn_augment_random(a), "deterministic transforms are not random");
    dnn_augment_free(a);
    place_free(&p);
}

static void tables(void)
{
    const char *name, *params, *help;
    struct dnn_err err = {0};
    int n = 0;

    for (; (name = dnn_augment_info(n, &params, &help)) != NULL; n++) {
        err.text[0] = '\0';
        int rc = dnn_field_check(dnn_augment_fields(n), &err);

        if (!ok(rc == 0 && params[0] != '\0' && help[0] != '\0', "%s: valid", name))
            printf("# %s\n", err.text);
    }
    is_int(n, 20, "twenty transforms");
    ok(dnn_augment_info(-1, NULL, NULL) == NULL && dnn_augment_fields(n) == NULL,
       "and no more");
}

static void messages(void)
{
    refuses("{'transforms': {'resize': 3}}",
            "train.json:1: transforms: must be a list of transforms, not an object");
    refuses(
        "{'transforms': [3]}",
        "train.json:1: transforms[0]: must be an object with one key, the name of a "
        "transform, not 3");
    refuses(
        "{'transforms': [{'resize': 3, 'rotate': 4}]}",
        "train.json:1: transforms[0]: must be an object with one key, the name of a "
        "transform, not an object with no key or several");
    refuses(
        "{'input_transforms': [{'random_rotat': 3}]}",
        "train.json:1: input_transforms[0]: unknown transform \"random_rotat\"; did "
        "you mean \"random_rotate\"?; known: resize, center_crop, jitter_crop, "
        "random_crop, random_horizontal_flip, random_vertical_flip, random_flip, "
        "random_zoom, rotate, random_rotate, elastic, convert_color, normalize, "
        "gamma, brightness, contrast, noise, cutout, random_patches, mixup");
    refuses(
        "{'transforms': ['resize']}",
        "train.json:1: transforms[0]: resize needs parameters: {\"resize\": [H, W] or "
        "[D, H, W]}");
    refuses("{'transforms': [{'normalize': 3}]}",
            "train.json:1: transforms[0].normalize: must be an object: {\"mean\": 0.5, "
            "\"std\": 0.5}");
    refuses("{'transforms': [{'resize': [3, 'x']}]}",
            "train.json:1: transforms[0].resize[1]: must be a whole number, not \"x\"");
    refuses(
        "{'transforms': [{'resize': {'size': 0}}]}",
        "train.json:1: transforms[0].resize.size: must be between 1 and 1073741824, "
        "not 0");
    refuses(
        "{'transforms': [\n{'random_vertical_flip': 2}]}",
        "train.json:2: transforms[0].random_vertical_flip: must be between 0 and 1, "
        "not 2");
    refuses(
        "{'transforms': [{'convert_color': 'BGR2LAB'}]}",
        "train.json:1: transforms[0].convert_color: must be one of BGR2RGB, RGB2BGR, "
        "RGB2GRAY, BGR2GRAY, GRAY2RGB, GRAY2BGR, RGBA2RGB, BGRA2BGR, RGBA2BGR, "
        "BGRA2RGB, RGB2RGBA, BGR2BGRA, RGBA2GRAY, BGRA2GRAY, RGB2HSV, BGR2HSV, "
        "HSV2RGB, HSV2BGR, not \"BGR2LAB\"; did you mean \"BGR2RGB\"?");
    refuses(
        "{'transforms': [{'random_patches': {'number': 3, 'sise': 2}}]}",
        "train.json:1: transforms[0].random_patches.sise: unknown key; did you mean "
        "\"size\"?");
    refuses(
        "{'transforms': ['mixup', {'mixup': 1}]}",
        "train.json:1: transforms[1].mixup: mixup is listed twice: remove one of them");
}

static void impossible(void)
{
    cannot(3, "[{'resize': [3, 4]}]",
           "train.json:1: transforms[0].resize: 'input' has 3 spatial axes; give one "
           "number for all or one per axis, not 2");
    cannot(2, "[{'center_crop': [3, 40]}]",
           "train.json:1: transforms[0].center_crop: 'input' has size 9 along axis 1, "
           "smaller than the crop size 40");
    cannot(2, "[{'random_crop': 10}]",
           "train.json:1: transforms[0].random_crop: 'input' has size 9 along axis 1, "
           "smaller than the crop size 10; \"pad\": true pads with zeros");
    cannot(2, "[{'rotate': [1, 2, 3]}]",
           "train.json:1: transforms[0].rotate: 'input' has 2 spatial axes; give one "
           "angle, not 3");
    cannot(
        2, "[{'random_flip': {'axes': [0, 2]}}]",
        "train.json:1: transforms[0].random_flip: 'input' has no spatial axis 2, only "
        "0 to 1");
    cannot(
        2, "[{'normalize': {'mean': [1, 2]}}]",
        "train.json:1: transforms[0].normalize: 'input' has 4 channels; mean must be "
        "one number or one per channel, not 2");
    cannot(2, "[{'normalize': {'std': 0}}]",
           "train.json:1: transforms[0].normalize: std must be more than 0, not 0");
    cannot(
        2, "[{'convert_color': 'RGB2GRAY'}]",
        "train.json:1: transforms[0].convert_color: 'input' has 4 channels; RGB2GRAY "
        "needs 3");
    cannot(2, "[{'gamma': {'low': 2, 'high': 1}}]",
           "train.json:1: transforms[0].gamma: low (2) is greater than high (1)");
    cannot(2, "[{'cutout': {'size': [13, 2]}}]",
           "train.json:1: transforms[0].cutout: 'input' has size 12 along axis 0, "
           "smaller than the box size 13");
}

/* Columns that a transform cannot be applied to. */
static void missing(void)
{
    static const struct {
        const char *lists, *want;
        enum dnn_kind kind;
    } row[] = {
        {"{'transforms': [{'rotate': 3}]}",
         "train.json:1: transforms[0].rotate: there is no image or mask to apply it to", DNN_KIND_VALUES},
        {"{'transforms': [{'noise': 3}]}",
         "train.json:1: transforms[0].noise: there is no image to apply it to",          DNN_KIND_MASK  },
        {"{'transforms': [{'random_patches': {'number': 1, 'size': 1}}]}",
         "train.json:1: transforms[0].random_patches: there is no target for the "
         "patches",                                                                      DNN_KIND_IMAGE },
        {"{'transforms': [{'random_crop': {'size': 2, 'foreground': 1}}]}",
         "train.json:1: transforms[0].random_crop: \"foreground\" needs a mask target",  DNN_KIND_IMAGE },
        {"{'input_transforms': [{'random_crop': {'size': 2, 'foreground': 1}}]}",
         "train.json:1: input_transforms[0].random_crop: with \"foreground\", list it "
         "under \"transforms\", for inputs and targets together",                        DNN_KIND_IMAGE },
        {"{'input_transforms': [{'random_patches': {'number': 1, 'size': 1}}]}",
         "train.json:1: input_transforms[0].random_patches: list it under "
         "\"transforms\", for inputs and targets together: it makes targets of inputs",  DNN_KIND_IMAGE },
        {"{'input_transforms': ['mixup']}",
         "train.json:1: input_transforms[0]: mixup: list it under \"transforms\", for "
         "inputs and targets together: it mixes whole samples",                          DNN_KIND_IMAGE },
        {"{'transforms': ['mixup']}",
         "train.json:1: transforms[0]: mixup: 'input' contains class numbers, but the "
         "number of classes is unknown",                                                 DNN_KIND_LABEL },
    };
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        struct dnn_err err = {0};
        struct dnn_augment *a = read_lists(row[k].lists, &err);
        struct place p = place_make(2, plane);
        struct dnn_column col = p.col[0], out;

        col.kind = row[k].kind;
        int rc = a == NULL ? -1 : dnn_augment_columns(a, 1, &col, &out, &err);
        is_text(rc < 0 ? err.text : "(accepted)", row[k].want,
                "columns that are refused");
        place_free(&p);
        dnn_augment_free(a);
    }
}

static void masks(void)
{
    struct dnn_err err = {0};
    struct dnn_augment *a =
        read_lists("{'target_transforms': [{'normalize': {'std': 0.0039}}]}", &err);
    struct place p = place_make(2, plane);
    struct dnn_column col[3];

    ok(a != NULL && dnn_augment_columns(a, 1, p.col, col, &err) == 0,
       "target transforms are ignored without targets");
    if (a != NULL) dnn_augment_columns(a, 3, p.col, col, &err);
    is_text(err.text,
            "train.json:1: target_transforms[0].normalize: 'target' is a mask; class "
            "numbers are not normalized (nor divided by 255)",
            "a mask is not normalized");
    dnn_augment_free(a);
    place_free(&p);
}

int main(void)
{
    forms();
    tables();
    messages();
    impossible();
    missing();
    masks();
    return done();
}
