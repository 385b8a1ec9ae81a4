/* generate_impl.h - functions shared by the generators.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_GENERATE_GENERATE_IMPL_H
#define DNN_GENERATE_GENERATE_IMPL_H

#include "base/draw.h"
#include "base/field.h"
#include "base/mem.h"
#include "generate/generate.h"
#include "sample/source.h"

struct dnn_generator;

/* The first member of the struct of every generator. */
struct dnn_gen {
    struct dnn_source source;
    const struct dnn_generator *kind;
    struct dnn_arena *arena; /* of options and tables */
    uint64_t seed;
};

struct dnn_generator {
    const char *help;
    const struct dnn_field *fields; /* keys of the options                            */
    size_t size;                    /* of its struct                                  */
    size_t opts;                    /* offset of the options                          */
    struct dnn_source_type type;
    /* Check the options, which are set, and make tables and columns.  Errors name the
     * keys of obj. */
    int (*make)(struct dnn_gen *gen, const struct dnn_jobj *obj, struct dnn_err *err);
};

extern const struct dnn_generator dnn_gen_fractals3d, dnn_gen_blobs3d,
    dnn_gen_diffusivity2d, dnn_gen_diffusivity3d, dnn_gen_burgers, dnn_gen_seismic3d;

/* Random streams: of the dataset, of a sample, of the noise of its points. */
enum {
    DNN_GEN_SET = 0x67656e00,
    DNN_GEN_SAMPLE,
    DNN_GEN_NOISE,
};

/* ---- gen.c ---- */

void dnn_gen_close(struct dnn_source *source);

/* Add a column "input" (f32 image, one channel) or "target" (u8 mask). */
int dnn_gen_input(struct dnn_gen *gen, int nspace, const int64_t *extent,
                  struct dnn_err *err);
int dnn_gen_mask(struct dnn_gen *gen, int nspace, const int64_t *extent,
                 int64_t classes, struct dnn_err *err);
/* Allocate the arrays of all columns. */
int dnn_gen_arrays(const struct dnn_source *source, struct dnn_sample *out,
                   struct dnn_err *err);

/* Set extents from a list of one number for all axes, or one per axis. */
int dnn_gen_extents(const struct dnn_jobj *obj, const char *key,
                    const struct dnn_list *list, int nspace, int64_t *extent,
                    struct dnn_err *err);
/* Check that a list of two numbers is [low, high] with low <= high. */
int dnn_gen_range_int(const struct dnn_jobj *obj, const char *key,
                      const struct dnn_list *list, struct dnn_err *err);
int dnn_gen_range_real(const struct dnn_jobj *obj, const char *key,
                       const struct dnn_list *list, struct dnn_err *err);

/* The random numbers of sample i. */
struct dnn_draw dnn_gen_draw(const struct dnn_gen *gen, int64_t i);
/* A random integer from [low, high]. */
int64_t dnn_gen_pick(struct dnn_draw *draw, const struct dnn_list *range);
/* A random rotation, uniformly distributed. */
void dnn_gen_rotation(struct dnn_draw *draw, double out[3][3]);
/* Set each point to the level of its class in the mask and add normal noise.  The level
 * of class c of n is 1 - contrast * (n - c) / n, of the background 0. */
void dnn_gen_intensity(const struct dnn_gen *gen, int64_t i, const uint8_t *mask,
                       int64_t count, int64_t nclasses, double contrast, double noise,
                       float *out);
/* Add normal noise with standard deviation std to the points of sample i. */
void dnn_gen_noise(const struct dnn_gen *gen, int64_t i, double std, float *x,
                   int64_t count);

/* ---- sobol.c ---- */

enum { DNN_SOBOL_DIMS = 64 };

/* Coordinate dim (below DNN_SOBOL_DIMS) of point number index (below 2^32) of Sobol's
 * sequence, in [0, 1), in Gray code's order; point 0 is the origin. */
double dnn_sobol(int dim, uint32_t index);

/* ---- diffusivity.c ---- */

/* Root number i (from 1) of (eta^2 a^2 - 1) sin a = 2 eta a cos a, a > 0. */
double dnn_diffusivity_root(double eta, int64_t i);

/* Do not fuse multiplications and additions: files that include this header compute the
 * same bits on processors with and without FMA. */
#if defined __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__
#pragma GCC optimize("fp-contract=off")
#endif

#endif
