/* infer_print.c - print the results of dnn-bench infer, as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/infer_impl.h"

static const char *peer_name(const struct dnn_infer_variant *v)
{
    return v->process == DNN_INFER_ONNX ? "ONNX Runtime" : "PyTorch";
}

/* The fastest variant of PyTorch (onnx false) or ONNX Runtime; -1: none. */
static int best_of(const struct dnn_infer *w, bool onnx)
{
    int best = -1;

    for (int k = 0; k < w->nvariants; k++)
        if ((w->variant[k].process == DNN_INFER_ONNX) == onnx &&
            (best < 0 ||
             dnn_values_median(&w->times[k]) < dnn_values_median(&w->times[best])))
            best = k;
    return best;
}

static double ratio(const struct dnn_infer *w, int k)
{
    return dnn_values_median(&w->times[k]) / dnn_values_median(&w->ours);
}

static void print_row(const char *name, const char *how, const struct dnn_values *times,
                      FILE *where)
{
    char text[3][32];

    fprintf(where, "%-13s  %-22s  %10s  %10s  %10s", name, how,
            dnn_bench_duration(text[0], dnn_values_median(times)),
            dnn_bench_duration(text[1], dnn_values_min(times)),
            dnn_bench_duration(text[2], dnn_values_max(times)));
}

void dnn_infer_print(const struct dnn_infer *w, FILE *where)
{
    char text[DNN_TORCH_TEXT];

    fprintf(where, "inference: %.3f GFLOP, %.1f GFLOP/s, %ld turns\n", w->flops / 1e9,
            w->flops / dnn_values_median(&w->ours) / 1e9, w->cfg->reps);
    if (w->nvariants > 0)
        fprintf(where, "against %s\n", dnn_torch_text(text, &w->info));
    if (w->onnx[0] != '\0') fprintf(where, "against ONNX Runtime %s\n", w->onnx);
    fprintf(where, "%-13s  %-22s  %10s  %10s  %10s  %8s  %6s\n", "", "", "median",
            "fastest", "slowest", "error", "ratio");
    print_row("dnn-toolkit", "", &w->ours, where);
    fputc('\n', where);
    for (int k = 0; k < w->nvariants; k++) {
        const struct dnn_infer_variant *v = &w->variant[k];

        snprintf(text, sizeof text, "%s, %s", v->format, v->mode);
        print_row(peer_name(v), v->process == DNN_INFER_ONNX ? "" : text, &w->times[k],
                  where);
        fprintf(where, "  %8.1e  %6.2f\n", v->error, ratio(w, k));
    }
    for (int onnx = 0; onnx < 2; onnx++) {
        int k = best_of(w, onnx != 0);

        if (k >= 0)
            fprintf(where, "%.2f times as fast as %s\n", ratio(w, k),
                    peer_name(&w->variant[k]));
    }
}

static void json_times(const struct dnn_values *times, FILE *where)
{
    fprintf(where,
            "\"seconds\": %.6g, \"fastest\": %.6g, \"slowest\": %.6g, "
            "\"turns\": %d",
            dnn_values_median(times), dnn_values_min(times), dnn_values_max(times),
            times->n);
}

void dnn_infer_print_json(const struct dnn_infer *w, FILE *where)
{
    static const char *const key[2] = {"torch", "onnxruntime"};

    fputc('{', where);
    json_times(&w->ours, where);
    fprintf(where, ", \"gflops\": %.5g, \"threads\": %d",
            w->flops / dnn_values_median(&w->ours) / 1e9, w->threads);
    if (w->nvariants > 0)
        fprintf(where,
                ", \"torch\": \"%s\", \"torch_mkl\": %s, \"torch_onednn\": \"%s\", "
                "\"onnxruntime\": \"%s\", \"bound\": %.3g",
                w->info.version, w->info.mkl ? "true" : "false", w->info.onednn,
                w->onnx, w->cfg->bound);
    for (int onnx = 0; onnx < 2; onnx++) {
        int k = best_of(w, onnx != 0);

        if (k >= 0) fprintf(where, ", \"ratio_%s\": %.4g", key[onnx], ratio(w, k));
    }
    fprintf(where, ", \"peers\": [");
    for (int k = 0; k < w->nvariants; k++) {
        const struct dnn_infer_variant *v = &w->variant[k];

        fprintf(where, "%s{\"peer\": \"%s\", \"format\": \"%s\", \"mode\": \"%s\", ",
                k == 0 ? "" : ", ", key[v->process == DNN_INFER_ONNX], v->format,
                v->mode);
        json_times(&w->times[k], where);
        fprintf(where, ", \"error\": %.3g, \"ratio\": %.4g}", v->error, ratio(w, k));
    }
    fprintf(where, "]}\n");
}
