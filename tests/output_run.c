/* output_run.c - writes outputs whose values are known, for tests that stop it and that
 * compare files.  Started on any number of ranks.
 *
 *   output_run DIR KIND FORMATS CONTENTS PRECISION KILL [SETTINGS [FLAGS]]
 *
 * KIND: volumes, masks, vectors, binary, images, few, two; FORMATS and CONTENTS: names
 * with commas.  KILL: each rank kills itself after so many units; -1: never; -2: stops
 * before the commit; -3: after it.  SETTINGS: "" or absent: cannot be continued.
 * FLAGS: gzip, names, last, copy, outside.  The last line printed is the number of
 * units computed by all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "output/output.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB = 2 /* planes of a unit */ };

struct made {
    const char *name;
    int noutputs;
    int64_t nsamples;
    struct dnn_shape shape[4][2]; /* of sample i: shape[i % 4]                       */
};
static const struct made kinds[] = {
    {"volumes",
     1,            6,
     {{{4, {9, 6, 5, 3}}},
      {{4, {9, 6, 5, 3}}},
      {{4, {4, 7, 8, 3}}},
      {{4, {1, 3, 2, 3}}}}                                                   },
    {"few",     1, 2,  {{{3, {6, 5, 3}}}, {{3, {8, 9, 3}}}}                  },
    {"masks",
     1,            6,
     {{{4, {5, 6, 7, 1}}},
      {{4, {5, 6, 7, 1}}},
      {{4, {4, 7, 8, 1}}},
      {{4, {6, 3, 2, 1}}}}                                                   },
    {"vectors", 1, 40, {{{1, {4}}}, {{1, {4}}}, {{1, {4}}}, {{1, {4}}}}      },
    {"binary",  1, 9,  {{{1, {1}}}, {{1, {1}}}, {{1, {1}}}, {{1, {1}}}}      },
    {"images",
     1,            7,
     {{{3, {6, 5, 3}}}, {{3, {8, 9, 3}}}, {{3, {6, 5, 3}}}, {{3, {1, 1, 3}}}}},
    {"two",
     2,            5,
     {{{3, {6, 5, 2}}, {1, {4}}},
      {{3, {6, 5, 2}}, {1, {4}}},
      {{3, {6, 7, 2}}, {1, {4}}},
      {{3, {6, 5, 2}}, {1, {4}}}}                                            },
};
static const char *const names[] = {"scans/a.nii.gz", "scans/a.nii", "b.tif",
                                    "deep/er/c.npy",  "b.tif",       "scans/x[7]"};
static const char *const classes[] = {"cat", "dog, \"big\"", "owl", "fox"};
static const char *const outputs[] = {"mask", "label"}, *const outside[] = {
                                                            "../mask", "/./mask/.."};

static const struct made *made;
static bool channels_last;
static const char *input; /* of sample 0 */

static const struct dnn_shape *shape_of(int64_t sample, int k)
{
    return &made->shape[sample % 4][k];
}

static int64_t units_of(int64_t sample)
{
    const struct dnn_shape *s = shape_of(sample, 0);

    return s->ndim < 3 ? 1 : (s->dim[0] + SLAB - 1) / SLAB;
}

/* Exact in half precision; tests/peer/output_files.py knows it, too. */
static float value_of(int64_t sample, int k, int64_t index)
{
    return (float)((sample * 7919 + k * 1009 + index * 37) % 2003 - 1000) / 64;
}

static int describe(void *arg, int64_t sample, struct dnn_output_sample *out,
                    struct dnn_err *err)
{
    (void)arg, (void)err;
    if (sample < 6)
        snprintf(out->name, sizeof out->name, "/in/put/%s", names[sample]);
    else
        snprintf(out->name, sizeof out->name, "/in/put/n%" PRId64 ".png", sample);
    for (int k = 0; k < made->noutputs; k++)
        out->shape[k] = *shape_of(sample, k);
    out->units = units_of(sample);
    out->channels_last = channels_last;
    for (int i = 0; i < 3; i++)
        out->position.spacing[i] = 3 - 0.5 * i;
    out->input = sample == 0 ? input : NULL;
    return 0;
}

/* ---- boxes ---- */

/* Put the box of output k. */
static int put_box(struct dnn_output *out, int64_t sample, int k, const int64_t *start,
                   const int64_t *extent, struct dnn_err *err)
{
    const struct dnn_shape *s = shape_of(sample, k);
    int space = s->ndim - 1;
    int64_t channels = s->dim[space], n = 1, at[3] = {0, 0, 0};

    for (int i = 0; i < space; i++)
        n *= extent[i];
    float *value = dnn_alloc((size_t)(n * channels) * sizeof *value);
    for (int64_t p = 0; p < n; p++) {
        int64_t index = 0;

        for (int i = 0; i < space; i++)
            index = index * s->dim[i] + start[i] + at[i];
        for (int64_t c = 0; c < channels; c++)
            value[p * channels + c] = value_of(sample, k, index * channels + c);
        for (int i = space - 1; i >= 0 && ++at[i] == extent[i]; i--)
            at[i] = 0;
    }
    int rc = dnn_output_put(out, sample, k, start, extent, value, err);
    dnn_free(value);
    return rc;
}

/* The box in pieces, those at the end first. */
static int put_pieces(struct dnn_output *out, int64_t sample, int k,
                      const int64_t *start, const int64_t *extent, int axis,
                      struct dnn_err *err)
{
    int space = shape_of(sample, k)->ndim - 1;
    int64_t from[3] = {0}, n[3] = {0};

    if (axis >= space) return put_box(out, sample, k, start, extent, err);
    memcpy(from, start, (size_t)space * sizeof *from);
    memcpy(n, extent, (size_t)space * sizeof *n);
    int64_t half = extent[axis] / 3;
    from[axis] = start[axis] + half;
    n[axis] = extent[axis] - half;
    DNN_TRY(put_pieces(out, sample, k, from, n, axis + 1, err));
    from[axis] = start[axis];
    n[axis] = half;
    return half == 0 ? 0 : put_pieces(out, sample, k, from, n, axis + 1, err);
}

static int put_unit(struct dnn_output *out, int64_t sample, int64_t unit,
                    struct dnn_err *err)
{
    for (int k = 0; k < made->noutputs; k++) {
        const struct dnn_shape *s = shape_of(sample, k);
        int64_t start[3] = {0}, extent[3] = {0};

        memcpy(extent, s->dim, (size_t)(s->ndim - 1) * sizeof *extent);
        if (s->ndim >= 3) {
            start[0] = unit * SLAB;
            extent[0] = s->dim[0] - start[0] < SLAB ? s->dim[0] - start[0] : SLAB;
        }
        if (s->ndim >= 3 || unit == 0)
            DNN_TRY(put_pieces(out, sample, k, start, extent, 1, err));
    }
    return dnn_output_unit(out, sample, unit, err);
}

/* The input: one channel, value_of() of output 9. */
static int put_input(struct dnn_output *out, int64_t sample, struct dnn_err *err)
{
    struct dnn_shape s = *shape_of(sample, 0);
    int64_t n = 1, plane = -1, first = 0;

    s.dim[s.ndim - 1] = 1;
    for (int i = 0; i < s.ndim; i++)
        n *= s.dim[i];
    if (s.ndim == 4 && sample % 2 == 1) {
        plane = s.dim[0] / 2;
        n /= s.dim[0];
        first = plane * n;
    }
    float *value = dnn_alloc((size_t)n * sizeof *value);
    for (int64_t i = 0; i < n; i++)
        value[i] = value_of(sample, 9, first + i);
    int rc = dnn_output_input(out, sample, &s, plane, value, err);
    dnn_free(value);
    return rc;
}

/* ---- a run ---- */

static int put_all(struct dnn_output *out, struct dnn_comm *comm, int64_t kill,
                   int64_t *computed, struct dnn_err *err)
{
    int64_t number = 0;

    for (int64_t i = made->nsamples - 1; i >= 0; i--)
        for (int64_t u = 0; u < units_of(i); u++) {
            if (number++ % dnn_comm_size(comm) != dnn_comm_rank(comm)) continue;
            if (dnn_output_done(out, i, u)) continue;
            if (*computed == kill) raise(SIGKILL);
            if (dnn_output_wants_input(out)) DNN_TRY(put_input(out, i, err));
            DNN_TRY(put_unit(out, i, u, err));
            ++*computed;
        }
    return 0;
}

static int run(struct dnn_comm *comm, const struct dnn_output_options *options,
               int64_t kill, struct dnn_err *err)
{
    struct dnn_output *out;
    int64_t computed = 0;

    DNN_TRY(dnn_output_open(comm, options, &out, err));
    for (int i = 0; dnn_output_path(out, i) != NULL && dnn_comm_rank(comm) == 0; i++)
        printf("%s\n", dnn_output_path(out, i));
    int rc = dnn_comm_agree(comm, put_all(out, comm, kill, &computed, err), err);
    if (rc == 0)
        rc = dnn_comm_allreduce(comm, "units", &computed, 1, DNN_COMM_I64, DNN_COMM_SUM,
                                err);
    if (rc == 0 && kill != -2) rc = dnn_output_commit(out, err);
    if (rc == 0 && kill >= -1)
        dnn_output_close(out);
    else
        dnn_output_abandon(out);
    if (dnn_comm_rank(comm) == 0) printf("%" PRId64 "\n", computed);
    return rc;
}

static unsigned set_of(const struct dnn_choice *choices, char *text)
{
    unsigned set = 0;
    int value;

    for (char *word = strtok(text, ","); word != NULL; word = strtok(NULL, ","))
        if (dnn_choice_find(choices, word, &value, NULL) == 0) set |= (unsigned)value;
    return set;
}

static bool flag(const char *flags, const char *name)
{
    return flags != NULL && strstr(flags, name) != NULL;
}

int main(int argc, char **argv)
{
    struct dnn_err err = {0};
    struct dnn_comm *comm;
    const char *flags = argc > 8 ? argv[8] : NULL;
    char copy[400];

    if (argc < 7) return 2;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, argv[2]) == 0) made = &kinds[i];
    if (made == NULL || dnn_comm_open(NULL, &comm, &err) < 0) return 2;
    channels_last = flag(flags, "last");
    input = getenv("OUTPUT_LIKE");
    snprintf(copy, sizeof copy, "%s/co/py.h5", argv[1]);
    const struct dnn_output_options options = {
        .dir = argv[1],
        .name = flag(flags, "name") ? "made" : NULL,
        .hdf5_path = flag(flags, "copy") ? copy : NULL,
        .formats = set_of(dnn_output_format_choices, argv[3]),
        .contents = set_of(dnn_output_content_choices, argv[4]),
        .precision = atoi(argv[5]),
        .gzip = flag(flags, "gzip"),
        .names = flag(flags, "name"),
        .top_k = flag(flags, "top2") ? 2 : 0,
        .threshold = 0.5,
        .noutputs = made->noutputs,
        .output_name = flag(flags, "outside") ? outside : outputs,
        .class_name = flag(flags, "name") ? classes : NULL,
        .nclass_names = 4,
        .from = "/in/put",
        .nsamples = made->nsamples,
        .describe = describe,
        .settings = argc > 7 && argv[7][0] != '\0' ? argv[7] : NULL};
    int rc = run(comm, &options, atoll(argv[6]), &err);
    if (rc < 0 && dnn_comm_rank(comm) == 0) fprintf(stderr, "%s\n", err.text);
    dnn_comm_close(comm);
    return dnn_exit_status(rc);
}
