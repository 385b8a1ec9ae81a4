/* io_print.c - print the results of dnn-bench io, as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"

#include "base/text.h"

#include <inttypes.h>

static void print_set(const struct dnn_bench_io *cfg, const struct dnn_io_all *all,
                      const struct dnn_io_set *set, FILE *where)
{
    static const char *const from[DNN_IO_PEERS] = {"a mapped .npy", "PNG files"};
    char shape[DNN_SHAPE_TEXT], each[32], bytes[32], memory[32], text[DNN_TORCH_TEXT];
    double rate = dnn_values_median(&set->rate), feed = dnn_values_median(&set->feed);
    double plain = dnn_values_median(&set->plain);

    fprintf(where, "%s\n", set->name);
    fprintf(where, "  data         %" PRId64 " samples of %s, %s each, %s in total\n",
            set->count, dnn_shape_text(shape, sizeof shape, &set->shape),
            dnn_text_bytes(each, sizeof each, set->sample),
            dnn_text_bytes(bytes, sizeof bytes, set->bytes));
    fprintf(where, "  batch        %" PRId64 ", %d threads, %s of memory\n", set->batch,
            all->threads, dnn_text_bytes(memory, sizeof memory, set->memory));
    fprintf(where, "  compute      %.4g ms per batch: %s\n", set->compute * 1e3,
            set->why);
    fprintf(where, "  utilisation  %.1f %% of the time after the first batch\n",
            100 * dnn_values_median(&set->utilisation));
    fprintf(where,
            "  speed        %.3f GB/s as stored; converted to f32 %.0f samples/s, %.3f "
            "GB/s in batches; median of %ld%s\n",
            feed / 1e9, rate, rate * set->made / 1e9, cfg->reps,
            all->cached < 0 ? "" : ", cold");
    fprintf(where, "  plain read   %.3f GB/s; as stored we read %.2f times as fast\n",
            plain / 1e9, feed / plain);
    for (int i = 0; i < DNN_IO_PEERS; i++) {
        double torch = dnn_values_median(&set->torch[i]);

        if (set->torch[i].n > 0 && i == 0)
            fprintf(where, "  against      %s\n", dnn_torch_text(text, &all->info));
        if (set->torch[i].n > 0)
            fprintf(where,
                    "  PyTorch      %.0f samples/s from %s with 2 workers; we are %.2f "
                    "times as fast\n",
                    torch, from[i], rate / torch);
    }
}

static void print_json(const struct dnn_io_all *all, FILE *where)
{
    static const char *const key[DNN_IO_PEERS] = {"npy", "png"};

    fputc('{', where);
    for (int i = 0; i < DNN_IO_SETS; i++) {
        const struct dnn_io_set *s = &all->set[i];
        double rate = dnn_values_median(&s->rate), feed = dnn_values_median(&s->feed);
        double plain = dnn_values_median(&s->plain);

        fprintf(where,
                "\"%s\": {\"samples\": %" PRId64
                ", \"bytes\": %.0f, \"batch\": %" PRId64
                ", \"memory\": %.0f, \"compute_s\": %.6g, \"utilisation\": %.5g, "
                "\"read_gbs\": %.5g, \"batch_gbs\": %.5g, \"plain_gbs\": %.5g, "
                "\"ratio_plain\": %.4g, \"samples_s\": %.6g",
                s->name, s->count, s->bytes, s->batch, s->memory, s->compute,
                dnn_values_median(&s->utilisation), feed / 1e9, rate * s->made / 1e9,
                plain / 1e9, feed / plain, rate);
        for (int k = 0; k < DNN_IO_PEERS; k++)
            if (s->torch[k].n > 0)
                fprintf(where, ", \"torch_%s_samples_s\": %.6g, \"ratio_%s\": %.4g",
                        key[k], dnn_values_median(&s->torch[k]), key[k],
                        rate / dnn_values_median(&s->torch[k]));
        fprintf(where, "}, ");
    }
    if (all->info.version[0] != '\0')
        fprintf(where, "\"torch\": \"%s\", ", all->info.version);
    fprintf(where, "\"threads\": %d", all->threads);
    if (all->cached >= 0) fprintf(where, ", \"still_cached\": %.4g", all->cached);
    if (all->opened.n > 0)
        fprintf(where, ", \"open_million_s\": %.4g", dnn_values_median(&all->opened));
    fprintf(where, "}\n");
}

void dnn_io_print(const struct dnn_bench_io *cfg, const struct dnn_io_all *all,
                  FILE *where)
{
    if (cfg->json) {
        print_json(all, where);
        return;
    }
    for (int i = 0; i < DNN_IO_SETS; i++) {
        if (i > 0) fputc('\n', where);
        print_set(cfg, all, &all->set[i], where);
    }
    if (all->cached > 0.01)
        fprintf(where,
                "\nnot cold: up to %.0f %% of a dataset stayed in the page cache\n",
                100 * all->cached);
    if (all->opened.n > 0)
        fprintf(where, "\na million samples open in %.3f s\n",
                dnn_values_median(&all->opened));
}
