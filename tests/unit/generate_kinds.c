/* generate_kinds.c - every generator: bits that depend only on the number of a sample,
 * plausible content, and error messages for wrong options.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#include "base/json.h"
#include "base/mem.h"
#include "generate/generate.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* A source from JSON with ' for ", or NULL and the message. */
static struct dnn_source *open_text(const char *text, struct dnn_err *err)
{
    char *json = dnn_strdup(text);
    struct dnn_json *file = NULL;
    struct dnn_source *source = NULL;

    for (char *c = json; *c != '\0'; c++)
        if (*c == '\'') *c = '"';
    if (dnn_json_text("train.json", json, strlen(json), &file, err) == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        if (dnn_generate_open(&top, &source, err) < 0) source = NULL;
    }
    dnn_json_free(file);
    dnn_free(json);
    return source;
}

static void refuses(const char *text, const char *want)
{
    struct dnn_err err = {0};
    struct dnn_source *source = open_text(text, &err);

    is_text(source == NULL ? err.text : "(opened)", want, want);
    dnn_source_close(source);
}

/* Small ones of every kind. */
static const char *const small[] = {
    "{'type': 'fractals3d', 'samples': 5, 'seed': 7, 'size': 4}",
    "{'type': 'blobs3d', 'samples': 5, 'size': [9, 12, 10], 'classes': 2}",
    "{'type': 'blobs3d', 'samples': 5, 'space': 2, 'size': 25}",
    "{'type': 'diffusivity2d', 'samples': 5, 'size': 12, 'sampling': 'uniform'}",
    "{'type': 'diffusivity3d', 'samples': 5, 'size': [6, 7, 8], 'skip': 3}",
    ("{'type': 'burgers', 'samples': 5, 'domain_size': 33, 'terms': 3, "
     "'bc_frequency': [1, 4]}"),
    "{'type': 'seismic3d', 'samples': 5, 'size': [12, 10, 24]}",
};
enum { NSMALL = sizeof small / sizeof small[0] };

static bool same(const struct dnn_sample *a, const struct dnn_sample *b)
{
    if (a->ncols != b->ncols) return false;
    for (int c = 0; c < a->ncols; c++)
        if (!dnn_shape_equal(&a->col[c].shape, &b->col[c].shape) ||
            a->col[c].type != b->col[c].type ||
            memcmp(a->col[c].data, b->col[c].data, dnn_array_bytes(&a->col[c])) != 0)
            return false;
    return true;
}

struct job {
    const struct dnn_source *source;
    struct dnn_sample sample[5];
    bool good;
};

static void *work(void *arg)
{
    struct job *job = arg;

    job->good = true;
    for (int i = 0; i < 5; i++)
        job->good &= dnn_source_read(job->source, i, &job->sample[i], NULL) == 0;
    return NULL;
}

/* In reverse order into used memory, from another source, and from two threads. */
static void reproducible(const char *text)
{
    struct dnn_err err = {0};
    struct dnn_source *a = open_text(text, &err), *b = open_text(text, &err);
    struct job job[2] = {{.source = a}, {.source = a}};
    struct dnn_sample again = {0};
    pthread_t thread[2];
    bool equal = a != NULL && b != NULL, differ = true, columns = true;

    if (!ok(equal, "opens: %s", text)) printf("# %s\n", err.text);
    if (!equal) return;
    for (int t = 0; t < 2; t++)
        pthread_create(&thread[t], NULL, work, &job[t]);
    for (int t = 0; t < 2; t++)
        pthread_join(thread[t], NULL);
    for (int i = 4; i >= 0; i--) {
        equal &= job[0].good && job[1].good && dnn_source_read(b, i, &again, NULL) == 0;
        equal = equal && same(&again, &job[0].sample[i]) &&
                same(&job[0].sample[i], &job[1].sample[i]);
        differ = differ && (i == 4 || !same(&again, &job[0].sample[4]));
        for (int c = 0; c < a->ncols; c++)
            columns &= a->col[c].type == again.col[c].type &&
                       dnn_shape_equal(&a->col[c].shape, &again.col[c].shape);
    }
    ok(equal, "%s: the bits of a sample depend only on its number", a->type->name);
    ok(differ, "%s: samples differ", a->type->name);
    ok(columns && a->ncols >= 1 && strcmp(a->col[0].name, "input") == 0,
       "%s: samples have the declared columns", a->type->name);
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < 2; t++)
            dnn_sample_free(&job[t].sample[i]);
    dnn_sample_free(&again);
    dnn_source_close(a);
    dnn_source_close(b);
}

/* A checksum of the bits. */
static uint64_t print_of(const struct dnn_sample *sample)
{
    uint64_t h = 1469598103934665603u;

    for (int c = 0; c < sample->ncols; c++) {
        const unsigned char *p = sample->col[c].data;

        for (size_t k = 0; k < dnn_array_bytes(&sample->col[c]); k++)
            h = (h ^ p[k]) * 1099511628211u;
    }
    return h;
}

/* Masks are computed only with sums, products, quotients and roots: the same bits on
 * every IEEE 754 machine. */
static void fixed(void)
{
    struct dnn_err err = {0};
    struct dnn_source *s = open_text("{'type': 'fractals3d', 'samples': 2, 'seed': 1, "
                                     "'size': 4, 'noise': 0}",
                                     &err);
    struct dnn_source *other =
        open_text("{'type': 'fractals3d', 'samples': 2, 'seed': 2, "
                  "'size': 4, 'noise': 0}",
                  &err);
    struct dnn_sample a = {0}, b = {0};

    if (s == NULL || other == NULL || dnn_source_read(s, 1, &a, &err) < 0 ||
        dnn_source_read(other, 1, &b, &err) < 0) {
        ok(false, "%s", err.text);
    } else {
        ok(!same(&a, &b), "another seed gives another sample");
        char text[32];

        snprintf(text, sizeof text, "%016" PRIx64, print_of(&a));
        is_text(text, "71e891ab6571656a", "a sample has the recorded bits");
    }
    dnn_sample_free(&a);
    dnn_sample_free(&b);
    dnn_source_close(s);
    dnn_source_close(other);
}

/* ---- contents ---- */

/* Fractions of the classes over all samples, and the mean input of each class. */
struct shares {
    double share[256], mean[256];
    bool good;
};

static struct shares count(const char *text)
{
    struct dnn_err err = {0};
    struct dnn_source *s = open_text(text, &err);
    struct dnn_sample sample = {0};
    struct shares out = {.good = s != NULL};
    double total = 0;

    for (int64_t i = 0; out.good && i < s->count; i++) {
        out.good = dnn_source_read(s, i, &sample, &err) == 0;
        const uint8_t *mask = sample.col[1].data;
        const float *x = sample.col[0].data;

        for (int64_t k = 0; out.good && k < dnn_array_count(&sample.col[1]); k++) {
            out.share[mask[k]]++;
            out.mean[mask[k]] += x[k];
            total++;
            out.good &= isfinite(x[k]) && mask[k] < s->col[1].classes;
        }
    }
    if (!out.good) printf("# %s\n", err.text);
    for (int c = 0; c < 256; c++) {
        out.mean[c] /= out.share[c];
        out.share[c] /= total;
    }
    dnn_sample_free(&sample);
    dnn_source_close(s);
    return out;
}

static void contents(void)
{
    struct shares s = count("{'type': 'fractals3d', 'samples': 40, 'size': 5, "
                            "'classes': 4}");
    bool sane = s.good && s.share[0] > 0.7 && s.share[0] < 0.95;
    bool levels = fabs(s.mean[0]) < 0.01;

    for (int c = 1; c <= 4; c++) {
        sane &= s.share[c] > 0.01 && s.share[c] < 0.1;
        levels &= fabs(s.mean[c] - 0.25 * c) < 0.01;
    }
    ok(sane, "fractals3d: all classes and background occur");
    ok(levels, "fractals3d: every class has its intensity");

    s = count("{'type': 'fractals3d', 'samples': 4, 'contrast': 0}");
    ok(s.good && fabs(s.mean[1] - 1) < 0.01 && fabs(s.mean[5] - 1) < 0.01,
       "fractals3d: without contrast all classes have the same intensity");

    s = count("{'type': 'blobs3d', 'samples': 40, 'classes': 2}");
    ok(s.good && s.share[0] > 0.7 && s.share[1] > 0.01 && s.share[2] > 0.01 &&
           fabs(s.mean[1] - 0.5) < 0.01 && fabs(s.mean[2] - 1) < 0.01,
       "blobs3d: fractions and intensities");

    s = count("{'type': 'seismic3d', 'samples': 10, 'size': 32}");
    ok(s.good && s.share[0] > 0.1 && s.share[1] > 0.1 && s.share[2] > 0.1 &&
           s.share[3] > 0.1,
       "seismic3d: all facies occur");
}

/* Fractals are solid: most voxels of a mask have neighbours of the same class. */
static void solid(void)
{
    struct dnn_err err = {0};
    struct dnn_source *s = open_text("{'type': 'fractals3d', 'samples': 5}", &err);
    struct dnn_sample sample = {0};
    int64_t inside = 0, all = 0;

    for (int64_t i = 0; s != NULL && i < 5; i++) {
        if (dnn_source_read(s, i, &sample, &err) < 0) break;
        const uint8_t *m = sample.col[1].data;

        for (int64_t k = 32 * 33; k < 32 * 32 * 32 - 32 * 33; k++) {
            int alike = (m[k] == m[k - 1]) + (m[k] == m[k + 1]) + (m[k] == m[k - 32]) +
                        (m[k] == m[k + 32]) + (m[k] == m[k - 1024]) +
                        (m[k] == m[k + 1024]);

            all += m[k] != 0;
            inside += m[k] != 0 && alike >= 3;
        }
    }
    ok((double)inside > 0.8 * (double)all && all > 5000,
       "fractals3d: 80 %% of the voxels have half of their neighbours in the same "
       "class");
    dnn_sample_free(&sample);
    dnn_source_close(s);
}

/* A lower bound for a network: predict the class with the nearest intensity. */
static void learnable(void)
{
    struct dnn_err err = {0};
    struct dnn_source *s = open_text("{'type': 'fractals3d', 'samples': 10}", &err);
    struct dnn_sample sample = {0};
    double both[6] = {0}, either[6] = {0}, least = 1;

    for (int64_t i = 0; s != NULL && i < 10; i++) {
        if (dnn_source_read(s, i, &sample, &err) < 0) break;
        const uint8_t *m = sample.col[1].data;
        const float *x = sample.col[0].data;

        for (int64_t k = 0; k < 32 * 32 * 32; k++) {
            double near = fmin(5, fmax(0, floor(5 * (double)x[k] + 0.5)));

            both[m[k]] += m[k] == (int)near;
            either[m[k]]++;
            either[(int)near]++;
        }
    }
    for (int c = 0; c < 6; c++)
        least = fmin(least, 2 * both[c] / either[c]);
    if (!ok(least > 0.95, "fractals3d: this gives a Dice coefficient of 0.95"))
        printf("# %g %s\n", least, err.text);
    dnn_sample_free(&sample);
    dnn_source_close(s);
}

/* ---- tables and messages ---- */

static void tables(void)
{
    const struct dnn_field *fields;
    const char *help, *name;
    struct dnn_err err = {0};
    int n = 0;

    ok(dnn_field_check(dnn_generate_fields, &err) == 0, "the common table is valid");
    for (; (name = dnn_generate_info(n, &help, &fields)) != NULL; n++) {
        err.text[0] = '\0';
        int rc = dnn_field_check(fields, &err);

        is_text(rc == 0 && help[0] != '\0' ? name : err.text, name,
                "the table is valid");
        /* The list of names and the list of generators are in the same order. */
        char *text = dnn_format("{'type': '%s', 'samples': 1%s}", name,
                                strcmp(name, "burgers") == 0
                                    ? ", 'domain_size': 8, 'bc_frequency': [1, 2]"
                                    : "");
        struct dnn_source *s = open_text(text, &err);
        is_text(s == NULL ? err.text : s->type->name, name, "opens by its name");
        dnn_source_close(s);
        dnn_free(text);
    }
    is_int(n, 6, "six generators");
}

static void messages(void)
{
    refuses("[1]", "train.json:1: must be an object, not a list");
    refuses("{'samples': 1}", "train.json:1: the key \"type\" is missing");
    refuses("{'type': 3, 'samples': 1}", "train.json:1: type: must be a string, not 3");
    refuses("{'type': 'fractal3d', 'samples': 1}",
            "train.json:1: type: must be one of fractals3d, blobs3d, diffusivity2d, "
            "diffusivity3d, burgers, seismic3d, not \"fractal3d\"; did you mean "
            "\"fractals3d\"?");
    refuses("{'type': 'fractals3d'}", "train.json:1: the key \"samples\" is missing");
    refuses("{'type': 'fractals3d', 'samples': 0}",
            "train.json:1: samples: must be at least 1, not 0");
    refuses("{'type': 'fractals3d', 'samples': 1, 'clases': 3}",
            "train.json:1: clases: unknown key; did you mean \"classes\"?");
    refuses("{'type': 'fractals3d', 'samples': 1, 'size': 32}",
            "train.json:1: size: must be between 3 and 10, not 32");
    refuses("{'type': 'fractals3d', 'samples': 1,\n 'instances': [4, 2]}",
            "train.json:2: instances: must be [low, high], not [4, 2]");
    refuses("{'type': 'fractals3d', 'samples': 1, 'scale': [0.5, 0.25]}",
            "train.json:1: scale: must be [low, high], not [0.5, 0.25]");
    refuses(
        "{'type': 'blobs3d', 'samples': 1, 'size': [8, 8]}",
        "train.json:1: size: must be one number, or one for each of the 3 axes, not "
        "2 numbers");
    refuses(
        "{'type': 'diffusivity2d', 'samples': 1, 'eta': [1, 1, 1]}",
        "train.json:1: eta: must be one number, or one for each of the 2 axes, not 3 "
        "numbers");
    refuses("{'type': 'diffusivity3d', 'samples': 1, 'omega': [1, 2]}",
            "train.json:1: omega: 2 coefficients given for 4 terms");
    refuses("{'type': 'diffusivity3d', 'samples': 300, 'skip': 4294967000}",
            "train.json:1: samples: must be at most 296: the Sobol sequence has 2^32 "
            "points");
    refuses("{'type': 'diffusivity3d', 'samples': 1, 'terms': 65}",
            "train.json:1: terms: must be between 1 and 64, not 65");
    refuses("{'type': 'burgers', 'samples': 1}",
            "train.json:1: the key \"domain_size\" is missing");
    refuses(
        "{'type': 'burgers', 'samples': 2, 'domain_size': 8, 'bc_frequency': [2, 1]}",
        "train.json:1: bc_frequency: must be [low, high], not [2, 1]");
    refuses("{'type': 'burgers', 'samples': 2, 'domain_size': 8, 'bc_frequency': [1, "
            "2], 'bc_type': "
            "'fixed_uniform', 'terms': 2}",
            "train.json:1: terms: must be 1 if bc_type is fixed_uniform");
    refuses("{'type': 'seismic3d', 'samples': 1, 'faults': [0, 17]}",
            "train.json:1: faults[1]: must be between 0 and 16, not 17");
}

int main(void)
{
    for (int k = 0; k < NSMALL; k++)
        reproducible(small[k]);
    fixed();
    contents();
    solid();
    learnable();
    tables();
    messages();
    return done();
}
