/* step_print.c - print the results of dnn-bench step, as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <string.h>

static const char *const phase_name[DNN_BENCH_PHASES] = {"training step", "inference"};

const char *dnn_bench_duration(char out[32], double seconds)
{
    if (seconds < 1)
        snprintf(out, 32, "%.4g ms", seconds * 1e3);
    else
        snprintf(out, 32, "%.4g s", seconds);
    return out;
}

/* Print a number, or a dash, with this width. */
static void cell(FILE *where, int width, const char *fmt, double x)
{
    char text[32] = "-";

    if (x > 0) snprintf(text, sizeof text, fmt, x);
    fprintf(where, "  %*s", width, text);
}

static void print_layers(const struct dnn_bench_step *cfg,
                         const struct dnn_bench_phase *phase, FILE *where)
{
    struct dnn_measure_row *row;
    int n = dnn_measure_rows(phase->model->prog, phase->op_seconds, false, &row),
        width = 5;
    int shown = n < cfg->rows ? n : (int)cfg->rows;

    if (shown == 0) {
        dnn_free(row);
        return;
    }
    for (int i = 0; i < shown; i++)
        if (row[i].name != NULL && (int)strlen(row[i].name) > width)
            width = (int)strlen(row[i].name);
    fprintf(where, "  %-*s  %8s  %8s  %8s  %8s  %8s  %6s  %8s\n", width, "layer",
            "forward", "data", "weights", "update", "all ms", "share", "GFLOP/s");
    for (int i = 0; i < shown; i++) {
        fprintf(where, "  %-*s", width, row[i].name == NULL ? "-" : row[i].name);
        for (int p = 0; p < DNN_PARTS; p++)
            cell(where, 8, "%.3f", row[i].seconds[p] * 1e3);
        cell(where, 8, "%.3f", row[i].all * 1e3);
        fprintf(where, "  %4.1f %%", 100 * row[i].all / phase->seconds);
        cell(where, 8, "%.1f", row[i].all > 0 ? row[i].flops / row[i].all / 1e9 : 0);
        fputc('\n', where);
    }
    if (n > shown) fprintf(where, "  and %d more\n", n - shown);
    dnn_free(row);
}

static void print_kinds(const struct dnn_bench_phase *phase, FILE *where)
{
    struct dnn_measure_row *row;
    int n = dnn_measure_rows(phase->model->prog, phase->op_seconds, true, &row);

    fprintf(where, "  %-10s  %-19s  %5s  %9s  %6s  %8s  %7s\n", "op", "pass", "ops",
            "all ms", "share", "GFLOP/s", "GB/s");
    for (int i = 0; i < n; i++) {
        double t = row[i].all;

        fprintf(where, "  %-10s  %-19s  %5d", row[i].name,
                dnn_op_pass_name(row[i].pass), row[i].ops);
        cell(where, 9, "%.3f", t * 1e3);
        fprintf(where, "  %4.1f %%", 100 * t / phase->seconds);
        cell(where, 8, "%.1f", t > 0 ? row[i].flops / t / 1e9 : 0);
        cell(where, 7, "%.1f", t > 0 ? row[i].bytes / t / 1e9 : 0);
        fputc('\n', where);
    }
    dnn_free(row);
}

static void print_memory(const struct dnn_bench_phase *phase, FILE *where)
{
    char a[32], b[32];

    fprintf(where, "  memory    %s predicted",
            dnn_text_bytes(a, sizeof a, phase->predicted));
    if (phase->measured > 0)
        fprintf(where, ", %s measured (%+.1f %%)",
                dnn_text_bytes(b, sizeof b, phase->measured),
                100 * (phase->measured / phase->predicted - 1));
    fputc('\n', where);
}

static void print_torch(const struct dnn_bench_phase *phase,
                        const struct dnn_torch_info *info, FILE *where)
{
    char text[DNN_TORCH_TEXT];

    if (phase->best == NULL) return;
    fprintf(where, "  against   %s\n", dnn_torch_text(text, info));
    for (int i = 0; i < phase->nvariants; i++)
        fprintf(where, "  PyTorch   %s, %s, %s\n",
                dnn_bench_duration(text, phase->variant[i].seconds),
                phase->variant[i].format,
                phase->variant[i].compiled ? "torch.compile" : "eager");
    if (phase->torch_memory > 0)
        fprintf(where, "            %s of memory, eager\n",
                dnn_text_bytes(text, sizeof text, phase->torch_memory));
    fprintf(where, "  ratio     %.2f times as fast as PyTorch's best (%s, %s)\n",
            phase->best->seconds / phase->seconds, phase->best->format,
            phase->best->compiled ? "torch.compile" : "eager");
}

void dnn_bench_print_phase(const struct dnn_bench_step *cfg, int which,
                           const struct dnn_bench_phase *phase,
                           const struct dnn_torch_info *info, double sgemm, FILE *where)
{
    char text[32];

    fprintf(where, "%s%s\n", which == 0 ? "" : "\n", phase_name[which]);
    fprintf(where, "  time      %s, median of %ld\n",
            dnn_bench_duration(text, phase->seconds), cfg->reps);
    fprintf(where, "  speed     %.1f GFLOP/s of %.3f GFLOP, %.0f %% of sgemm's %.1f\n",
            phase->flops / phase->seconds / 1e9, phase->flops / 1e9,
            100 * phase->flops / phase->seconds / sgemm, sgemm / 1e9);
    print_memory(phase, where);
    print_torch(phase, info, where);
    print_layers(cfg, phase, where);
    print_kinds(phase, where);
}

void dnn_bench_print_json(const struct dnn_bench_phase phase[DNN_BENCH_PHASES],
                          const struct dnn_torch_info *info, double sgemm, FILE *where)
{
    static const char *const key[DNN_BENCH_PHASES] = {"train", "infer"};
    const struct dnn_bench_phase *train = &phase[DNN_BENCH_TRAIN];

    fprintf(where, "{");
    for (int i = 0; i < DNN_BENCH_PHASES; i++)
        fprintf(where, "\"%s_s\": %.6g, \"%s_gflops\": %.5g, ", key[i],
                phase[i].seconds, key[i], phase[i].flops / phase[i].seconds / 1e9);
    fprintf(where,
            "\"sgemm_gflops\": %.5g, \"memory_predicted\": %.0f, "
            "\"memory_measured\": %.0f",
            sgemm / 1e9, train->predicted, train->measured);
    if (train->best != NULL)
        fprintf(where,
                ", \"torch\": \"%s\", \"torch_mkl\": %s, \"torch_onednn\": \"%s\", "
                "\"torch_memory\": %.0f",
                info->version, info->mkl ? "true" : "false", info->onednn,
                train->torch_memory);
    for (int i = 0; i < DNN_BENCH_PHASES && train->best != NULL; i++) {
        const struct dnn_torch_variant *best = phase[i].best;

        fprintf(where,
                ", \"torch_%s_s\": %.6g, \"torch_%s_mode\": \"%s %s\", "
                "\"ratio_%s\": %.4g",
                key[i], best->seconds, key[i], best->format,
                best->compiled ? "compile" : "eager", key[i],
                best->seconds / phase[i].seconds);
    }
    fprintf(where, "}\n");
}
