/* image_dump.c - print what the importers read from files, for import_images.py.
 *
 * Each line of stdin is "SIDE KIND GRAY OUT PATH" (input or target, a kind or -, 0 or
 * 1, output file, input file); the answer is "ok NAME KIND TYPE SHAPE SPACING", more
 * columns after " | ", or "error MESSAGE".
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/import_impl.h"

#include <stdlib.h>
#include <string.h>

static void show(const struct dnn_source *source, const struct dnn_sample *sample,
                 FILE *file)
{
    for (int i = 0; i < sample->ncols; i++) {
        const struct dnn_column *col = &source->col[i];
        const struct dnn_array *a = &sample->col[i];
        char shape[DNN_SHAPE_TEXT];

        printf("%s %s %s %s %s %.9g,%.9g,%.9g", i == 0 ? "ok" : " |", col->name,
               dnn_choice_name(dnn_kind_choices, col->kind), dnn_dtype_name(col->type),
               dnn_shape_text(shape, sizeof(shape), &col->shape), a->spacing[0],
               a->spacing[1], a->spacing[2]);
        if (a->type != col->type || !dnn_shape_equal(&a->shape, &col->shape))
            printf(" but it is %s", dnn_shape_text(shape, sizeof(shape), &a->shape));
        fwrite(a->data, 1, dnn_array_bytes(a), file);
    }
    putchar('\n');
}

static int dump(const char *side, const char *kind, bool gray, const char *out,
                const char *path, struct dnn_err *err)
{
    struct dnn_import how = {.input.kind = -1, .target.kind = -1, .limit = 1 << 30};
    struct dnn_import_side *at = side[0] == 't' ? &how.target : &how.input;
    const struct dnn_importer *importer;
    struct dnn_source *source = NULL;
    struct dnn_sample sample = {0};

    if (strcmp(kind, "-") != 0)
        DNN_TRY(dnn_choice_find(dnn_kind_choices, kind, &at->kind, err));
    at->path = path;
    at->gray = gray;
    DNN_TRY(dnn_importer_find(NULL, path, &importer, err));
    if (importer->open == NULL) return dnn_importer_lacks(importer, err);
    int rc = importer->open(path, &how, at, &source, err);
    if (rc == 0) rc = dnn_source_read(source, 0, &sample, err);
    FILE *file = rc == 0 ? fopen(out, "wb") : NULL;
    if (file != NULL) {
        show(source, &sample, file);
        fclose(file);
    } else if (rc == 0) {
        rc = dnn_fail(err, DNN_EIO, "%s: %m", out);
    }
    dnn_sample_free(&sample);
    dnn_source_close(source);
    return rc;
}

int main(void)
{
    char line[8192], side[16], kind[16], out[2048], path[4096];
    int gray;

    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct dnn_err err = {0};

        if (sscanf(line, "%15s %15s %d %2047s %4095s", side, kind, &gray, out, path) !=
            5)
            return 2;
        if (dump(side, kind, gray != 0, out, path, &err) < 0)
            printf("error %s\n", err.text);
        fflush(stdout);
    }
    return 0;
}
