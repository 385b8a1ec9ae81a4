/* io_print.c - the figures of reading, for people and for programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"

#include "base/text.h"

#include <inttypes.h>

static void print_rivals(const struct dnn_io_set *set, FILE *where)
{
    static const char *const from[DNN_IO_RIVALS] = {"a mapped .npy", "PNG files"};

    for (int r = 0; r < DNN_IO_RIVALS; r++)
        if (set->rival[r] > 0)
            fprintf(
                where,
                "  PyTorch      %.0f samples/s from %s with 2 workers; ours is %.2f "
                "times as fast\n",
                set->rival[r], from[r], set->rate / set->rival[r]);
}

static void print_set(const struct dnn_bench_io *cfg, const struct dnn_io_all *all,
                      const struct dnn_io_set *set, FILE *where)
{
    char shape[DNN_SHAPE_TEXT], each[32], bytes[32], memory[32];

    fprintf(where, "%s\n", set->name);
    fprintf(where, "  data         %" PRId64 " samples of %s, %s each, %s in all\n",
            set->count, dnn_shape_text(shape, sizeof shape, &set->shape),
            dnn_text_bytes(each, sizeof each, set->sample),
            dnn_text_bytes(bytes, sizeof bytes, set->bytes));
    fprintf(where, "  batch        %" PRId64 ", %d threads, %s of memory\n", set->batch,
            all->threads, dnn_text_bytes(memory, sizeof memory, set->memory));
    fprintf(where, "  compute      %.4g ms a batch: %s\n", set->compute * 1e3,
            set->why);
    fprintf(where, "  utilisation  %.1f %% of the time after the first batch\n",
            100 * set->utilisation);
    fprintf(where,
            "  speed        %.3f GB/s as stored; converted to f32 %.0f samples/s, %.3f "
            "GB/s in batches; the median of %ld%s\n",
            set->feed / 1e9, set->rate, set->rate * set->made / 1e9, cfg->reps,
            all->left < 0 ? "" : ", cold");
    fprintf(where, "  plain read   %.3f GB/s; ours as stored is %.2f of it\n",
            set->plain / 1e9, set->feed / set->plain);
    print_rivals(set, where);
}

static void print_json(const struct dnn_io_all *all, FILE *where)
{
    fputc('{', where);
    for (int i = 0; i < DNN_IO_SETS; i++) {
        const struct dnn_io_set *s = &all->set[i];

        fprintf(where,
                "%s\"%s\": {\"samples\": %" PRId64
                ", \"bytes\": %.0f, \"batch\": %" PRId64
                ", \"memory\": %.0f, \"compute_s\": %.6g, \"utilisation\": %.5g, "
                "\"read_gbs\": %.5g, \"batch_gbs\": %.5g, \"plain_gbs\": %.5g, "
                "\"ratio_plain\": %.4g, "
                "\"samples_s\": %.6g",
                i == 0 ? "" : ", ", s->name, s->count, s->bytes, s->batch, s->memory,
                s->compute, s->utilisation, s->feed / 1e9, s->rate * s->made / 1e9,
                s->plain / 1e9, s->feed / s->plain, s->rate);
        static const char *const key[DNN_IO_RIVALS] = {"npy", "png"};
        for (int r = 0; r < DNN_IO_RIVALS; r++)
            if (s->rival[r] > 0)
                fprintf(where, ", \"torch_%s_samples_s\": %.6g, \"ratio_%s\": %.4g",
                        key[r], s->rival[r], key[r], s->rate / s->rival[r]);
        fputc('}', where);
    }
    fprintf(where, ", \"threads\": %d", all->threads);
    if (all->left >= 0) fprintf(where, ", \"still_cached\": %.4g", all->left);
    if (all->opened > 0) fprintf(where, ", \"open_million_s\": %.4g", all->opened);
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
    if (all->left > 0.01)
        fprintf(where,
                "\nnot cold: the system kept up to %.0f %% of a dataset in memory\n",
                100 * all->left);
    if (all->opened > 0)
        fprintf(where, "\na million samples are open after %.3f s\n", all->opened);
}
