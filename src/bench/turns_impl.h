/* turns_impl.h - what is needed to measure in turns with somebody else's program.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_TURNS_IMPL_H
#define DNN_BENCH_TURNS_IMPL_H

#include "base/err.h"

#include <stdbool.h>

/* ---- peak.c ---- */

/* The middle one; sorts its argument. */
double dnn_bench_median(double *seconds, int n);

/* ---- against.c: the same in PyTorch ---- */

/* The directory this program is in; out is returned. */
enum { DNN_BENCH_PATH = 4096 };
const char *dnn_bench_here(char out[DNN_BENCH_PATH]);
/* Where a script of the rival is: beside the program, installed or built, or in
 * DNN_PEER_DIR.  The caller's, dnn_free(); NULL: nowhere. */
char *dnn_rival_script(const char *name, struct dnn_err *err);

/* A process of it. */
struct dnn_rival;

/* Local.  Start a script with arguments (ends with NULL), and wait for its first line,
 * of which the numbers of up to two keys are taken. */
int dnn_rival_open(const char *script, const char *const *args,
                   const char *const key[2], double number[2], struct dnn_rival **out,
                   struct dnn_err *err);
/* Local.  Say a word (NULL: none), and take two numbers from the answer. */
int dnn_rival_ask(struct dnn_rival *rival, const char *word, const char *const key[2],
                  double number[2], struct dnn_err *err);

struct dnn_rival_opts {
    const char *layers; /* a Keras file                                   */
    const char *format; /* "contiguous", "channels_last"; must outlive it */
    long batch;
    int threads;
};

/* Local.  Start one in a memory format and wait until it has taken a few training
 * steps. Start it before this process is large: what the system counts as its memory
 * begins with ours. */
int dnn_rival_start(const struct dnn_rival_opts *opts, struct dnn_rival **out,
                    struct dnn_err *err);
/* Local.  One training step or inference: seconds, as it says. */
int dnn_rival_run(struct dnn_rival *rival, bool training, double *seconds,
                  struct dnn_err *err);
/* Local.  By how much it has grown at most since it had loaded PyTorch. */
int dnn_rival_memory(struct dnn_rival *rival, double *bytes, struct dnn_err *err);
void dnn_rival_stop(struct dnn_rival *rival); /* NULL is fine */

#endif
