/* step_print.c - the figures of a step, for people and for programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <string.h>

static const char *const side_name[DNN_BENCH_SIDES] = {"training step", "inference"};

/* Four digits that matter, in s or ms. */
static const char *duration(char out[32], double seconds)
{
    if (seconds < 1)
        snprintf(out, 32, "%.4g ms", seconds * 1e3);
    else
        snprintf(out, 32, "%.4g s", seconds);
    return out;
}

/* A number in so many columns, or a dash. */
static void cell(FILE *where, int width, const char *fmt, double x)
{
    char text[32] = "-";

    if (x > 0) snprintf(text, sizeof text, fmt, x);
    fprintf(where, "  %*s", width, text);
}

static void print_layers(const struct dnn_bench_step *cfg,
                         const struct dnn_bench_side *side, FILE *where)
{
    struct dnn_measure_row *row;
    int n = dnn_measure_rows(side->model->prog, side->op_seconds, false, &row),
        wide = 5;
    int shown = n < cfg->rows ? n : (int)cfg->rows;

    if (shown == 0) {
        dnn_free(row);
        return;
    }
    for (int i = 0; i < shown; i++)
        if (row[i].name != NULL && (int)strlen(row[i].name) > wide)
            wide = (int)strlen(row[i].name);
    fprintf(where, "  %-*s  %8s  %8s  %8s  %8s  %8s  %6s  %8s\n", wide, "layer",
            "forward", "data", "weights", "update", "all ms", "share", "GFLOP/s");
    for (int i = 0; i < shown; i++) {
        fprintf(where, "  %-*s", wide, row[i].name == NULL ? "-" : row[i].name);
        for (int p = 0; p < DNN_PARTS; p++)
            cell(where, 8, "%.3f", row[i].seconds[p] * 1e3);
        cell(where, 8, "%.3f", row[i].all * 1e3);
        fprintf(where, "  %4.1f %%", 100 * row[i].all / side->seconds);
        cell(where, 8, "%.1f", row[i].all > 0 ? row[i].flops / row[i].all / 1e9 : 0);
        fputc('\n', where);
    }
    if (n > shown) fprintf(where, "  and %d more\n", n - shown);
    dnn_free(row);
}

static void print_kinds(const struct dnn_bench_side *side, FILE *where)
{
    struct dnn_measure_row *row;
    int n = dnn_measure_rows(side->model->prog, side->op_seconds, true, &row);

    fprintf(where, "  %-10s  %-19s  %5s  %9s  %6s  %8s  %7s\n", "op", "pass", "ops",
            "all ms", "share", "GFLOP/s", "GB/s");
    for (int i = 0; i < n; i++) {
        double t = row[i].all;

        fprintf(where, "  %-10s  %-19s  %5d", row[i].name,
                dnn_op_pass_name(row[i].pass), row[i].ops);
        cell(where, 9, "%.3f", t * 1e3);
        fprintf(where, "  %4.1f %%", 100 * t / side->seconds);
        cell(where, 8, "%.1f", t > 0 ? row[i].flops / t / 1e9 : 0);
        cell(where, 7, "%.1f", t > 0 ? row[i].bytes / t / 1e9 : 0);
        fputc('\n', where);
    }
    dnn_free(row);
}

static void print_memory(const struct dnn_bench_side *side, FILE *where)
{
    char a[32], b[32];

    fprintf(where, "  memory    %s predicted",
            dnn_text_bytes(a, sizeof a, side->predicted));
    if (side->measured > 0)
        fprintf(where, ", %s measured (%+.1f %%)",
                dnn_text_bytes(b, sizeof b, side->measured),
                100 * (side->measured / side->predicted - 1));
    fputc('\n', where);
}

static void print_rivals(const struct dnn_bench_side *side, FILE *where)
{
    char text[32];

    if (side->rival_format == NULL) return;
    for (int r = 0; r < DNN_RIVALS; r++)
        fprintf(where, "  PyTorch   %s, %s\n", duration(text, side->rival_each[r]),
                dnn_rival_formats[r]);
    if (side->rival_bytes > 0)
        fprintf(where, "            %s, by which its process grew\n",
                dnn_text_bytes(text, sizeof text, side->rival_bytes));
    fprintf(where,
            "  ratio     %.2f: ours is so many times as fast as its better format\n",
            side->rival_seconds / side->seconds);
}

void dnn_bench_print_side(const struct dnn_bench_step *cfg, int which,
                          const struct dnn_bench_side *side, double sgemm, FILE *where)
{
    char text[32];

    fprintf(where, "%s%s\n", which == 0 ? "" : "\n", side_name[which]);
    fprintf(where, "  time      %s, the median of %ld\n", duration(text, side->seconds),
            cfg->reps);
    fprintf(where, "  speed     %.1f GFLOP/s of %.3f GFLOP, %.0f %% of sgemm's %.1f\n",
            side->flops / side->seconds / 1e9, side->flops / 1e9,
            100 * side->flops / side->seconds / sgemm, sgemm / 1e9);
    print_memory(side, where);
    print_rivals(side, where);
    print_layers(cfg, side, where);
    print_kinds(side, where);
}

void dnn_bench_print_json(const struct dnn_bench_step *cfg,
                          const struct dnn_bench_side side[DNN_BENCH_SIDES],
                          double sgemm, FILE *where)
{
    const struct dnn_bench_side *train = &side[DNN_BENCH_TRAIN];
    const struct dnn_bench_side *infer = &side[DNN_BENCH_INFER];

    fprintf(where,
            "{\"train_s\": %.6g, \"infer_s\": %.6g, \"train_gflops\": %.5g, "
            "\"infer_gflops\": %.5g, \"sgemm_gflops\": %.5g, "
            "\"memory_predicted\": %.0f, \"memory_measured\": %.0f",
            train->seconds, infer->seconds, train->flops / train->seconds / 1e9,
            infer->flops / infer->seconds / 1e9, sgemm / 1e9, train->predicted,
            train->measured);
    if (cfg->against == DNN_AGAINST_TORCH)
        fprintf(where,
                ", \"torch_train_s\": %.6g, \"torch_infer_s\": %.6g, "
                "\"torch_memory\": %.0f, \"torch_format\": \"%s\", "
                "\"ratio_train\": %.4g, \"ratio_infer\": %.4g",
                train->rival_seconds, infer->rival_seconds, train->rival_bytes,
                train->rival_format, train->rival_seconds / train->seconds,
                infer->rival_seconds / infer->seconds);
    fprintf(where, "}\n");
}
