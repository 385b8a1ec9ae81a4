/* import_bp.c - BP files as sources: prepared datasets, and arrays of other programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "dataset_made.h"
#include "import/import.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[] = "/tmp/dnn-import-bp-XXXXXX";
static char path[256];

static struct dnn_import how_of(const char *split)
{
    return (struct dnn_import){
        .input = {.path = path, .kind = -1},
          .target = {.kind = -1},
          .split = split
    };
}

static bool same_sample(const struct dnn_source *source,
                        const struct dnn_dataset_info *info, int64_t i)
{
    const struct dnn_split *s = &info->split[0];
    struct dnn_sample got = {0};
    struct dnn_err err = {0};
    bool same = dnn_source_read(source, i, &got, &err) == 0 && got.ncols == MADE_COLS;

    for (int k = 0; same && k < MADE_COLS; k++) {
        unsigned char want[2048];
        size_t bytes = made_bytes(&s->col[k]);

        made_sample(s, 0, k, i, want);
        if (k > 0) {
            same = memcmp(got.col[k].data, want, bytes) == 0;
            continue;
        }
        same = got.col[0].type == DNN_F32 && got.col[0].spacing[1] == 0.7;
        for (size_t j = 0; same && j < bytes; j++) {
            double x = want[j] * s->col[0].scale[j % 3] + s->col[0].offset[j % 3];
            same = fabs(((float *)got.col[0].data)[j] - x) < 1e-6;
        }
    }
    dnn_sample_free(&got);
    if (err.code != 0) printf("# %s\n", err.text);
    return same;
}

static void prepared(void)
{
    struct dnn_dataset_info info;
    struct dnn_source *source = NULL;
    struct dnn_err err = {0};
    struct dnn_import how = how_of("train");
    char text[DNN_SAMPLE_NAME];
    bool same = true;

    made_info(&info);
    is_int(made_write(NULL, path, NULL, NULL, &err), 0, "a dataset");
    if (!ok(dnn_import_open(&how, &source, &err) == 0, "is a source")) {
        printf("# %s\n", err.text);
        return;
    }
    is_int(source->count, MADE_TRAIN, "of the samples of its split");
    is_int(source->ncols, MADE_COLS, "and all columns");
    is_text(source->col[2].class_name[1], made_classes[1], "with names of classes");
    for (int64_t i = 0; i < source->count; i++)
        same &=
            same_sample(source, &info, i) && source->type->class_of(source, i) == i % 3;
    ok(same, "samples are the same, with scaled values");
    dnn_source_label(source, 8, text);
    is_text(text, "a/8.png", "names");
    source->type->group(source, 8, text);
    is_text(text, "p4", "groups");
    dnn_source_close(source);

    how = how_of("validation");
    is_int(dnn_import_open(&how, &source, &err), DNN_EDATA, "another split");
    char *want = dnn_format(
        "%s: there is no split \"validation\"; the first split is \"train\"", path);
    is_text(err.text, want, "does not exist");
    dnn_free(want);
    how = how_of(NULL);
    is_int(dnn_import_open(&how, &source, &err), DNN_EDATA,
           "splits with different columns");
    want = dnn_format("%s: the splits train and test have different columns; set "
                      "\"split\" to one of them",
                      path);
    is_text(err.text, want, "are not one source");
    dnn_free(want);
    dnn_file_remove_tree(path, NULL);
    made_free(&info);
}

static void of_others(void)
{
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t y[] = {2, 0, 1};
    struct dnn_shape image = {
        .ndim = 3, .dim = {3, 2, 2}
    };
    struct dnn_shape label = {.ndim = 1, .dim = {3}};
    struct dnn_bp *bp = NULL;
    struct dnn_source *source = NULL;
    struct dnn_sample got = {0};
    struct dnn_err err = {0};
    struct dnn_import how = how_of(NULL);
    int vx, vy;

    dnn_bp_create(NULL, path, NULL, &bp, &err);
    dnn_bp_define(bp, "image", DNN_F32, &image, false, &vx, &err);
    dnn_bp_define(bp, "label", DNN_I64, &label, false, &vy, &err);
    dnn_bp_put(bp, vx, 0, 3, x, &err);
    dnn_bp_put(bp, vy, 0, 3, y, &err);
    is_int(dnn_bp_finish(bp, &err), 0, "a file of another program");
    char *index = dnn_format("%s/dnn.idx", path);
    unlink(index);
    dnn_free(index);
    if (!ok(dnn_import_open(&how, &source, &err) == 0, "is a source")) {
        printf("# %s\n", err.text);
        return;
    }
    is_int(source->count, 3, "of as many samples as rows");
    is_int(source->ncols, 2, "with targets");
    is_int(dnn_source_read(source, 1, &got, &err), 0, "a row");
    ok(memcmp(got.col[0].data, x + 4, 16) == 0, "is its input");
    is_int(*(int64_t *)got.col[1].data, 0, "and its target");
    dnn_sample_free(&got);
    dnn_source_close(source);
    how.input.name = "imag";
    is_int(dnn_import_open(&how, &source, &err), DNN_EDATA, "an unknown name");
    char *want = dnn_format("%s: there is no array \"imag\"; did you mean \"image\"?; "
                            "available: image, label",
                            path);
    is_text(err.text, want, "its message");
    dnn_free(want);
    dnn_file_remove_tree(path, NULL);
}

int main(void)
{
    if (mkdtemp(dir) == NULL) return 1;
    snprintf(path, sizeof path, "%s/a.bp", dir);
    prepared();
    of_others();
    dnn_file_remove_tree(dir, NULL);
    return done();
}
