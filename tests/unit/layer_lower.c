/* layer_lower.c - the ops of layers, with all numbers where Keras has special rules:
 * padding "same", transposed convolutions, dropout, versions.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "graph/graph.h"

#include <stdlib.h>

static const struct row {
    int keras;
    const char *class_name, *config, *in;
    const char *want; /* the ops, one per line, numbers of values left out */
} rows[] = {
    {2, "Conv2D",
     "{\"filters\": 2, \"kernel_size\": 3, \"strides\": 2, \"padding\": \"same\", "
     "\"use_bias\": false}",                                                                  "[null, 8, 7, 1]",    "conv kernel=3x3 stride=2x2 pad=0x1:1x1\n"        },
    {2, "Conv2D",
     "{\"filters\": 2, \"kernel_size\": 4, \"padding\": \"same\", \"use_bias\": false}",      "[null, 8, 7, 1]",    "conv kernel=4x4 pad=1x1:2x2\n"                   },
    {2, "Conv3D",
     "{\"filters\": 2, \"kernel_size\": 4, \"strides\": 2, \"padding\": \"same\", "
     "\"use_bias\": false}",                                                                  "[null, 8, 8, 7, 1]", "conv kernel=4x4x4 stride=2x2x2 pad=1x1x1:1x1x2\n"},
    {2, "Conv1D",
     "{\"filters\": 2, \"kernel_size\": 3, \"padding\": \"causal\", \"dilation_rate\": "
     "2}",                                                                                    "[null, 8, 1]",       "conv kernel=3 dilation=2 pad=4:0\nbias\n"        },
    {2, "Conv2DTranspose",
     "{\"filters\": 2, \"kernel_size\": 3, \"strides\": 2, \"padding\": \"same\", "
     "\"use_bias\": false}",                                                                  "[null, 4, 4, 1]",    "deconv kernel=3x3 stride=2x2 pad=0x0:1x1\n"      },
    {2, "Conv2DTranspose",
     "{\"filters\": 2, \"kernel_size\": 4, \"strides\": 2, \"padding\": \"same\", "
     "\"use_bias\": false}",                                                                  "[null, 4, 4, 1]",    "deconv kernel=4x4 stride=2x2 pad=1x1:1x1\n"      },
    {2, "Conv2DTranspose",
     "{\"filters\": 2, \"kernel_size\": 2, \"strides\": 3, \"use_bias\": false}",             "[null, 4, 4, 1]",    "deconv kernel=2x2 stride=3x3 pad=0x0:-1x-1\n"    },
    {2, "MaxPooling2D",          "{\"pool_size\": 3, \"strides\": 2, \"padding\": \"same\"}",
     "[null, 8, 7, 1]",                                                                                             "pool max kernel=3x3 stride=2x2 pad=0x1:1x1\n"    },
    {2, "SeparableConv2D",
     "{\"filters\": 2, \"kernel_size\": 3, \"depth_multiplier\": 2}",                         "[null, 8, 8, 3]",
     "conv kernel=3x3 groups=3\nconv kernel=1x1\nbias\n"                                                                                                              },
    {2, "SpatialDropout3D",      "{\"rate\": 0.25}",                                          "[null, 8, 8, 8, 3]",
     "noise dropout rate=0.25 stream=1 shared=1,2,3\n"                                                                                                                },
    {2, "GroupNormalization",    "{\"groups\": 2}",                                           "[null, 8, 4]",
     "groupnorm axes=1,2 groups=2 epsilon=0.001\n"                                                                                                                    },
    {2, "InstanceNormalization", "{\"affine\": false, \"epsilon\": 1e-5}",
     "[null, 8, 4]",                                                                                                "groupnorm - - axes=1,2 groups=4 epsilon=1e-05\n" },
    {2, "BatchNormalization",    "{\"trainable\": false}",                                    "[null, 8, 4]",
     "bn_infer axis=2 epsilon=0.001\n"                                                                                                                                },
    {2, "Activation",            "{\"activation\": \"hard_sigmoid\"}",                        "[null, 4]",
     "unary hard_sigmoid alpha=0.2\n"                                                                                                                                 },
    {3, "Activation",            "{\"activation\": \"hard_sigmoid\"}",                        "[null, 4]",
     "unary hard_sigmoid alpha=0.166667\n"                                                                                                                            },
    {2, "LeakyReLU",             "{}",                                                        "[null, 4]",          "unary relu alpha=0.3\n"                          },
    {2, "Dense",
     "{\"units\": 3, \"activity_regularizer\": {\"class_name\": \"L2\", \"config\": "
     "{\"l2\": 0.5}}}",                                                                       "[null, 4]",          "matmul\nbias\nactivity l1=0 l2=0.25\n"           },
    {2, "CenterCrop",            "{\"height\": 4, \"width\": 5}",                             "[null, 9, 9, 1]",
     "pad pad=0x-2x-2x0:0x-3x-2x0\n"                                                                                                                                  },
    {1, "Convolution2D",
     "{\"nb_filter\": 2, \"nb_row\": 3, \"nb_col\": 2, \"subsample\": [2, 2], "
     "\"border_mode\": \"same\", \"bias\": false}",                                           "[null, 8, 8, 1]",    "conv kernel=3x2 stride=2x2 pad=0x0:1x0\n"        },
};

/* Lines with an "=", from there on, without "%3 ". */
static char *squeeze(const char *text)
{
    char *out = dnn_alloc(strlen(text) + 1), *to = out;

    for (const char *line = text; *line != '\0';) {
        const char *end = strchr(line, '\n'),
                   *from = memmem(line, (size_t)(end - line), "= ", 2);

        for (from = from == NULL ? end : from + 2; from < end; from++) {
            if (*from == '%') {
                while (from < end && *from != ' ')
                    from++;
                continue;
            }
            *to++ = *from;
        }
        if (to > out && to[-1] != '\n') {
            while (to > out && to[-1] == ' ')
                to--;
            *to++ = '\n';
        }
        line = end + 1;
    }
    *to = '\0';
    return out;
}

static void check(const struct row *row)
{
    char *json =
        dnn_format("{\"class_name\": \"Sequential\", \"keras_version\": "
                   "\"%d.0\", \"config\": [{\"class_name\": \"InputLayer\", "
                   "\"config\": {\"name\": \"in\", \"batch_input_shape\": %s}}, "
                   "{\"class_name\": \"%s\", \"config\": %s}]}",
                   row->keras, row->in, row->class_name, row->config);
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    struct dnn_graph *graph = NULL;
    struct dnn_json *file = NULL;
    struct dnn_err err = {0};
    char *text = NULL;
    size_t len;
    int output;
    FILE *out = open_memstream(&text, &len);
    int rc = dnn_json_text("net", json, strlen(json), &file, &err);

    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    if (rc == 0) rc = dnn_graph_lower(graph, 2, prog, &output, &err);
    if (rc < 0)
        fprintf(out, "= %s\n", err.text);
    else
        dnn_prog_print(prog, out);
    fclose(out);
    char *got = squeeze(text),
         *what = dnn_format("Keras %d: %s %s of %s", row->keras, row->class_name,
                            row->config, row->in);
    is_text(got, row->want, what);
    free(text);
    dnn_free(got);
    dnn_free(what);
    dnn_free(json);
    dnn_json_free(file);
    dnn_graph_free(graph);
    dnn_prog_free(prog);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(&rows[i]);
    return done();
}
