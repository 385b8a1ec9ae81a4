/* generate_impl.h - what the generators share.
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

/* What every generator's own struct starts with. */
struct dnn_gen {
    struct dnn_source source;
    const struct dnn_generator *kind;
    struct dnn_arena *arena; /* options and tables live here */
    uint64_t seed;
};

struct dnn_generator {
    const char *help;
    const struct dnn_field *fields; /* its own keys                                   */
    size_t size;                    /* of its struct                                  */
    size_t opts;                    /* where in it the options are                    */
    struct dnn_source_type type;
    /* With the options filled: check them, make tables and columns.  What is wrong is
     * reported on obj's keys. */
    int (*make)(struct dnn_gen *gen, const struct dnn_jobj *obj, struct dnn_err *err);
};

extern const struct dnn_generator dnn_gen_fractals3d, dnn_gen_blobs3d,
    dnn_gen_diffusivity2d, dnn_gen_diffusivity3d, dnn_gen_burgers, dnn_gen_seismic3d;

/* What numbers are drawn for: of the set, of a sample, of its points. */
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
/* Room for the arrays of all columns. */
int dnn_gen_arrays(const struct dnn_source *source, struct dnn_sample *out,
                   struct dnn_err *err);

/* One extent for all axes, or one for each of them. */
int dnn_gen_extents(const struct dnn_jobj *obj, const char *key,
                    const struct dnn_list *list, int nspace, int64_t *extent,
                    struct dnn_err *err);
/* A list of two must not fall: [low, high]. */
int dnn_gen_range_int(const struct dnn_jobj *obj, const char *key,
                      const struct dnn_list *list, struct dnn_err *err);
int dnn_gen_range_real(const struct dnn_jobj *obj, const char *key,
                       const struct dnn_list *list, struct dnn_err *err);

/* The cursor for what sample i is made of. */
struct dnn_draw dnn_gen_draw(const struct dnn_gen *gen, int64_t i);
/* A whole number from a range of two. */
int64_t dnn_gen_pick(struct dnn_draw *draw, const struct dnn_list *range);
/* Every rotation as likely as any other. */
void dnn_gen_rotation(struct dnn_draw *draw, double out[3][3]);
/* Each class's level where the mask has it, background 0, and normal noise over all:
 * class c of n has 1 - contrast * (n - c) / n. */
void dnn_gen_intensity(const struct dnn_gen *gen, int64_t i, const uint8_t *mask,
                       int64_t count, int64_t nclasses, double contrast, double noise,
                       float *out);
/* Add normal noise of so large a standard deviation to sample i's points. */
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

/* A compiler that fuses a product and the sum it goes into changes last bits, and only
 * on processors that can.  What includes this file has the same bits on all. */
#if defined __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__
#pragma GCC optimize("fp-contract=off")
#endif

#endif
