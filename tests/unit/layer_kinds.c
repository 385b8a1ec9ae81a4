/* layer_kinds.c - every kind of layer: shapes, numbers of parameters, ops, and error
 * messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/field.h"
#include "base/text.h"
#include "layer/layer.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct good {
    const char *class_name, *config, *in;
    const char *want; /* shape, parameters, of which trainable */
} good[] = {
    {"Dense",                  "{\"units\": 10}",                                                     "?x20",              "?x10 210 210"           },
    {"Dense",                  "{\"units\": 10, \"use_bias\": false}",                                "?x7x20",            "?x7x10 200 200"         },
    {"Dense",                  "{\"units\": 10, \"trainable\": false}",                               "?x20",              "?x10 210 0"             },
    {"Dense",
     "{\"units\": 4, \"activation\": {\"class_name\": \"LeakyReLU\", \"config\": "
     "{\"alpha\": 0.2}}}",                                                                            "?x20",              "?x4 84 84"              },
    {"Dense",
     "{\"units\": 4, \"kernel_initializer\": \"he_normal\", \"kernel_constraint\": "
     "{\"class_name\": \"MaxNorm\", \"config\": {\"max_value\": 3, \"axis\": 0}}}",                   "?x20",              "?x4 84 84"              },
    /* windows */
    {"Conv2D",                 "{\"filters\": 8, \"kernel_size\": 3}",                                "?x28x28x1",         "?x26x26x8 80 80"        },
    {"Conv2D",                 "{\"filters\": 8, \"kernel_size\": [1, 7], \"padding\": \"same\"}",
     "?x28x28x4",                                                                                                          "?x28x28x8 232 232"      },
    {"Conv2D",
     "{\"filters\": 8, \"kernel_size\": 3, \"strides\": 2, \"padding\": \"same\"}",                   "?x7x8x1",           "?x4x4x8 80 80"          },
    {"Conv2D",                 "{\"filters\": 8, \"kernel_size\": 3, \"dilation_rate\": 2}",          "?x9x?x1",
     "?x5x?x8 80 80"                                                                                                                                },
    {"Conv2D",                 "{\"filters\": 8, \"kernel_size\": 3, \"groups\": 4}",                 "?x9x9x4",
     "?x7x7x8 80 80"                                                                                                                                },
    {"Conv2D",                 "{\"filters\": 8, \"kernel_size\": 3, \"padding\": 1}",                "?x9x9x1",
     "?x9x9x8 80 80"                                                                                                                                },
    {"Conv2D",                 "{\"filters\": 8, \"kernel_size\": 3, \"padding\": [2, 0]}",           "?x9x9x1",
     "?x11x7x8 80 80"                                                                                                                               },
    {"Conv1D",                 "{\"filters\": 8, \"kernel_size\": 3, \"padding\": \"causal\"}",       "?x9x2",
     "?x9x8 56 56"                                                                                                                                  },
    {"Conv3D",
     "{\"filters\": 16, \"kernel_size\": 4, \"strides\": 2, \"padding\": \"same\"}",                  "?x64x64x64x1",      "?x32x32x32x16 1040 1040"},
    {"Conv3D",                 "{\"filters\": 2, \"kernel_size\": [4, 3, 2], \"padding\": \"same\"}",
     "?x5x5x5x1",                                                                                                          "?x5x5x5x2 50 50"        },
    {"DepthwiseConv1D",        "{\"kernel_size\": 3}",                                                "?x9x4",             "?x7x4 16 16"            },
    {"DepthwiseConv2D",        "{\"kernel_size\": 3, \"depth_multiplier\": 2}",                       "?x9x9x4",
     "?x7x7x8 80 80"                                                                                                                                },
    {"DepthwiseConv3D",        "{\"kernel_size\": 3, \"use_bias\": false}",                           "?x9x9x9x4",
     "?x7x7x7x4 108 108"                                                                                                                            },
    {"SeparableConv1D",        "{\"filters\": 6, \"kernel_size\": 3}",                                "?x9x4",             "?x7x6 42 42"            },
    {"SeparableConv2D",        "{\"filters\": 6, \"kernel_size\": 3, \"depth_multiplier\": 2}",
     "?x9x9x4",                                                                                                            "?x7x7x6 126 126"        },
    {"SeparableConv3D",        "{\"filters\": 6, \"kernel_size\": 3}",                                "?x9x9x9x4",
     "?x7x7x7x6 138 138"                                                                                                                            },
    {"Conv1DTranspose",
     "{\"filters\": 3, \"kernel_size\": 4, \"strides\": 2, \"padding\": "
     "\"same\"}",                                                                                     "?x9x4",             "?x18x3 51 51"           },
    {"Conv2DTranspose",        "{\"filters\": 3, \"kernel_size\": 3, \"strides\": 2}",
     "?x4x4x2",                                                                                                            "?x9x9x3 57 57"          },
    {"Conv2DTranspose",        "{\"filters\": 3, \"kernel_size\": 2, \"strides\": 3}",
     "?x4x4x2",                                                                                                            "?x12x12x3 27 27"        },
    {"Conv2DTranspose",
     "{\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"padding\": "
     "\"same\", \"output_padding\": 1}",                                                              "?x4x4x2",           "?x8x8x3 57 57"          },
    {"Conv2DTranspose",
     "{\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"padding\": "
     "\"same\", \"output_padding\": 0}",                                                              "?x4x4x2",           "?x7x7x3 57 57"          },
    {"Conv3DTranspose",
     "{\"filters\": 3, \"kernel_size\": 4, \"strides\": 2, \"padding\": "
     "\"same\"}",                                                                                     "?x4x5x6x2",         "?x8x10x12x3 387 387"    },
    {"MaxPooling1D",           "{}",                                                                  "?x9x2",             "?x4x2 0 0"              },
    {"MaxPooling2D",           "{\"pool_size\": [2, 2]}",                                             "?x9x9x2",           "?x4x4x2 0 0"            },
    {"MaxPooling2D",           "{\"pool_size\": 3, \"strides\": 2, \"padding\": \"same\"}",
     "?x9x8x2",                                                                                                            "?x5x4x2 0 0"            },
    {"MaxPooling3D",           "{\"pool_size\": [1, 2, 3]}",                                          "?x9x9x9x2",         "?x9x4x3x2 0 0"          },
    {"AveragePooling1D",       "{\"pool_size\": 3, \"strides\": 1, \"padding\": \"same\"}",
     "?x9x2",                                                                                                              "?x9x2 0 0"              },
    {"AveragePooling2D",       "{\"pool_size\": 48}",                                                 "?x48x48x2",         "?x1x1x2 0 0"            },
    {"AveragePooling3D",       "{}",                                                                  "?x4x4x4x2",         "?x2x2x2x2 0 0"          },
    {"GlobalMaxPooling1D",     "{}",                                                                  "?x9x2",             "?x2 0 0"                },
    {"GlobalMaxPooling2D",     "{\"keepdims\": true}",                                                "?x9x9x2",           "?x1x1x2 0 0"            },
    {"GlobalMaxPooling3D",     "{}",                                                                  "?x9x9x9x2",         "?x2 0 0"                },
    {"GlobalAveragePooling1D", "{}",                                                                  "?x9x2",             "?x2 0 0"                },
    {"GlobalAveragePooling2D", "{}",                                                                  "?x?x9x2",           "?x2 0 0"                },
    {"GlobalAveragePooling3D", "{\"keepdims\": true}",                                                "?x9x9x9x2",         "?x1x1x1x2 0 0"          },
    /* norms */
    {"BatchNormalization",     "{}",                                                                  "?x9x9x8",           "?x9x9x8 32 16"          },
    {"BatchNormalization",     "{\"axis\": [3], \"scale\": false}",                                   "?x9x9x8",
     "?x9x9x8 24 8"                                                                                                                                 },
    {"BatchNormalization",     "{\"axis\": 1}",                                                       "?x6x9x8",           "?x6x9x8 24 12"          },
    {"BatchNormalization",     "{\"trainable\": false}",                                              "?x8",               "?x8 32 0"               },
    {"LayerNormalization",     "{}",                                                                  "?x9x8",             "?x9x8 16 16"            },
    {"LayerNormalization",     "{\"axis\": [1, 2], \"center\": false}",                               "?x9x8",
     "?x9x8 72 72"                                                                                                                                  },
    {"GroupNormalization",     "{\"groups\": 4}",                                                     "?x9x8",             "?x9x8 16 16"            },
    {"GroupNormalization",     "{\"groups\": -1}",                                                    "?x9x9x8",           "?x9x9x8 16 16"          },
    {"InstanceNormalization",
     "{\"affine\": false, \"track_running_stats\": false, "
     "\"momentum\": 0.1, \"epsilon\": 1e-5}",                                                         "?x4x4x4x8",         "?x4x4x4x8 0 0"          },
    {"InstanceNormalization",  "{\"affine\": true}",                                                  "?x4x4x8",           "?x4x4x8 16 16"          },
    /* noise */
    {"Dropout",                "{\"rate\": 0.5, \"noise_shape\": [null, 1, null], \"seed\": 7}",
     "?x9x2",                                                                                                              "?x9x2 0 0"              },
    {"SpatialDropout1D",       "{\"rate\": 0.5}",                                                     "?x9x2",             "?x9x2 0 0"              },
    {"SpatialDropout2D",       "{\"rate\": 0.5}",                                                     "?x9x9x2",           "?x9x9x2 0 0"            },
    {"SpatialDropout3D",       "{\"rate\": 0.5}",                                                     "?x9x9x9x2",         "?x9x9x9x2 0 0"          },
    {"GaussianNoise",          "{\"stddev\": 0.5}",                                                   "?x9x2",             "?x9x2 0 0"              },
    {"GaussianDropout",        "{\"rate\": 0.5}",                                                     "?x9x2",             "?x9x2 0 0"              },
    {"AlphaDropout",           "{\"rate\": 0.5}",                                                     "?x9x2",             "?x9x2 0 0"              },
    {"ActivityRegularization", "{\"l1\": 0.5}",                                                       "?x9x2",             "?x9x2 0 0"              },
    /* axes */
    {"Reshape",                "{\"target_shape\": [-1, 255]}",                                       "?x13x13x255",       "?x169x255 0 0"          },
    {"Reshape",                "{\"target_shape\": [1000]}",                                          "?x1x1x1000",        "?x1000 0 0"             },
    {"Flatten",                "{}",                                                                  "?x3x4x5",           "?x60 0 0"               },
    {"Permute",                "{\"dims\": [2, 1, 3]}",                                               "?x3x4x5",           "?x4x3x5 0 0"            },
    {"UpSampling1D",           "{\"size\": 3}",                                                       "?x3x4",             "?x9x4 0 0"              },
    {"UpSampling2D",           "{\"size\": [2, 48], \"interpolation\": \"bilinear\"}",                "?x3x1x4",
     "?x6x48x4 0 0"                                                                                                                                 },
    {"UpSampling3D",           "{\"interpolation\": \"trilinear\"}",                                  "?x3x4x5x2",
     "?x6x8x10x2 0 0"                                                                                                                               },
    {"ZeroPadding1D",          "{\"padding\": [1, 2]}",                                               "?x3x4",             "?x6x4 0 0"              },
    {"ZeroPadding2D",          "{\"padding\": [[0, 1], [0, 1]]}",                                     "?x3x4x1",           "?x4x5x1 0 0"            },
    {"ZeroPadding2D",          "{\"padding\": [1, 3]}",                                               "?x3x4x1",           "?x5x10x1 0 0"           },
    {"ZeroPadding3D",          "{}",                                                                  "?x3x4x5x1",         "?x5x6x7x1 0 0"          },
    {"Cropping1D",             "{\"cropping\": [1, 2]}",                                              "?x9x4",             "?x6x4 0 0"              },
    {"Cropping2D",             "{\"cropping\": [[1, 2], [0, 3]]}",                                    "?x9x9x4",           "?x6x6x4 0 0"            },
    {"Cropping3D",             "{\"cropping\": 1}",                                                   "?x9x9x9x4",         "?x7x7x7x4 0 0"          },
    {"CenterCrop",             "{\"height\": 4, \"width\": 5}",                                       "?x9x9x4",           "?x4x5x4 0 0"            },
    /* merges */
    {"Add",                    "{}",                                                                  "?x9x2 ?x9x2",       "?x9x2 0 0"              },
    {"Add",                    "{}",                                                                  "?x4x9x2 ?x2",       "?x4x9x2 0 0"            },
    {"Subtract",               "{}",                                                                  "?x9x2 ?x9x1",       "?x9x2 0 0"              },
    {"Multiply",               "{}",                                                                  "?x9x9x2 ?x1x1x2",   "?x9x9x2 0 0"            },
    {"Average",                "{}",                                                                  "?x9x2 ?x9x2 ?x9x2", "?x9x2 0 0"              },
    {"Maximum",                "{}",                                                                  "?x9x2 ?x9x2",       "?x9x2 0 0"              },
    {"Minimum",                "{}",                                                                  "?x9x2 ?x9x2",       "?x9x2 0 0"              },
    {"Concatenate",            "{\"axis\": 1}",                                                       "?x9x2 ?x4x2",       "?x13x2 0 0"             },
    {"Concatenate",            "{}",                                                                  "?x9x2 ?x9x3 ?x9x4", "?x9x9 0 0"              },
    /* activations */
    {"Activation",             "{\"activation\": \"mish\"}",                                          "?x9x2",             "?x9x2 0 0"              },
    {"Activation",             "{\"activation\": \"log_softmax_v2\", \"axis\": 1}",                   "?x9x2",
     "?x9x2 0 0"                                                                                                                                    },
    {"ReLU",                   "{\"max_value\": 6, \"negative_slope\": 0.0, \"threshold\": 0.0}",     "?x9",
     "?x9 0 0"                                                                                                                                      },
    {"LeakyReLU",              "{\"alpha\": 0.2}",                                                    "?x9",               "?x9 0 0"                },
    {"LeakyReLU",              "{\"negative_slope\": 0.2}",                                           "?x9",               "?x9 0 0"                },
    {"PReLU",                  "{\"shared_axes\": [1, 2]}",                                           "?x9x9x4",           "?x9x9x4 4 4"            },
    {"PReLU",                  "{}",                                                                  "?x9x4",             "?x9x4 36 36"            },
    {"ELU",                    "{\"alpha\": 0.5}",                                                    "?x9",               "?x9 0 0"                },
    {"SELU",                   "{}",                                                                  "?x9",               "?x9 0 0"                },
    {"GELU",                   "{\"approximate\": true}",                                             "?x9",               "?x9 0 0"                },
    {"Softmax",                "{\"axis\": [-1]}",                                                    "?x9",               "?x9 0 0"                },
    {"Log_Softmax",            "{\"axis\": 1}",                                                       "?x9x2",             "?x9x2 0 0"              },
    {"Sigmoid",                "{}",                                                                  "?x9",               "?x9 0 0"                },
    {"Tanh",                   "{}",                                                                  "?x9",               "?x9 0 0"                },
    {"Swish",                  "{}",                                                                  "?x9",               "?x9 0 0"                },
    {"Softplus",               "{}",                                                                  "?x9",               "?x9 0 0"                },
    {"Softsign",               "{}",                                                                  "?x9",               "?x9 0 0"                },
    {"HardSigmoid",            "{}",                                                                  "?x9",               "?x9 0 0"                },
    {"HardSwish",              "{}",                                                                  "?x9",               "?x9 0 0"                },
    {"Mish",                   "{}",                                                                  "?x9",               "?x9 0 0"                },
    /* known numbers */
    {"Rescaling",              "{\"scale\": 0.00392156862745098, \"offset\": [0, 1, 2]}",             "?x9x9x3",
     "?x9x9x3 0 0"                                                                                                                                  },
    {"Normalization",          "{}",                                                                  "?x9x3",             "?x9x3 7 0"              },
    {"LayerScale",             "{\"projection_dim\": 3}",                                             "?x9x3",             "?x9x3 3 3"              },
    {"CustomScaleLayer",       "{\"scale\": 0.5}",                                                    "?x9x3 ?x9x3",       "?x9x3 0 0"              },
    {"StochasticDepth",        "{\"drop_path_rate\": 0.5}",                                           "?x9x3",             "?x9x3 0 0"              },
    {"Normalization",          "{\"axis\": [-1], \"mean\": [[1, 2]], \"variance\": [[4, 9]]}",
     "?x9x2",                                                                                                              "?x9x2 0 0"              },
};

#define L "net:1: layer 'x' "
static const struct bad {
    const char *class_name, *config, *in, *want;
} bad[] = {
    {"Desne",                 "{}",                                                          "?x2",          L "(Desne): unknown layer class; did you mean \"Dense\"?"},
    {"LSTM",                  "{}",                                                          "?x2",          L "(LSTM): unknown layer class"                          },
    {"Dense",                 "{}",                                                          "?x2",          L "(Dense): the key \"units\" is missing"                },
    {"Dense",                 "{\"units\": 0}",                                              "?x2",
     L "(Dense): units: must be between 1 and 1073741824, not 0"                                                                                                      },
    {"Dense",                 "{\"units\": 3, \"activatoin\": null}",                        "?x2",
     L "(Dense): activatoin: unknown key; did you mean \"activation\"?"                                                                                               },
    {"Dense",                 "{\"units\": 3, \"activation\": \"reul\"}",                    "?x2",
     L "(Dense): activation: there is no activation \"reul\"; did you mean \"relu\"?"                                                                                 },
    {"Dense",                 "{\"units\": 3, \"kernel_initializer\": \"glorot_unifrom\"}",  "?x2",
     L
     "(Dense): kernel_initializer: there is no initializer \"glorot_unifrom\"; did you "
     "mean \"GlorotUniform\"?"                                                                                                                                        },
    {"Dense",
     "{\"units\": 3, \"kernel_regularizer\": {\"class_name\": "
     "\"OrthogonalRegularizer\", \"config\": {}}}",                                          "?x2",
     L "(Dense): kernel_regularizer: the regularizer must be L1, L2 or L1L2, not "
       "\"OrthogonalRegularizer\""                                                                                                                                    },
    {"Dense",                 "{\"units\": 3, \"kernel_constraint\": \"radial\"}",           "?x2",
     L
     "(Dense): kernel_constraint: the constraint must be MaxNorm, NonNeg, UnitNorm or "
     "MinMaxNorm, not \"radial\""                                                                                                                                     },
    {"Dense",                 "{\"units\": 3, \"dtype\": \"mixed_float16\"}",                "?x2",
     L "(Dense): dtype: must be \"float32\", not \"mixed_float16\": the configuration "
       "file sets the precision, not the layer"                                                                                                                       },
    {"Dense",                 "{\"units\": 3}",                                              "?x2 ?x2",      "takes one input, not 2"                                 },
    {"Dense",                 "{\"units\": 3}",                                              "?x?",
     "needs to know the last axis of its input, which is ?x?"                                                                                                         },
    {"Dense",                 "{\"units\": 1073741824}",                                     "?x1073741824",
     "its kernel would be 1073741824x1073741824, too large to train"                                                                                                  },
    {"Conv2D",
     "{\"filters\": 3, \"kernel_size\": 3, \"data_format\": "
     "\"channels_first\"}",                                                                  "?x9x9x1",
     L
     "(Conv2D): data_format: must be \"channels_last\", not \"channels_first\": write "
     "the network with channels as the last axis"                                                                                                                     },
    {"Conv2D",                "{\"filters\": 3, \"kernel_size\": [3, 3, 3]}",                "?x9x9x1",
     L "(Conv2D): kernel_size: must have 2 elements, not 3"                                                                                                           },
    {"Conv2D",                "{\"filters\": 3, \"kernel_size\": 3, \"padding\": \"full\"}", "?x9x9x1",
     L "(Conv2D): padding: must be \"valid\", \"same\" or numbers, not \"full\""                                                                                      },
    {"Conv2D",
     "{\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"dilation_rate\": 2}",           "?x9x9x1",
     L "(Conv2D): dilation_rate: must be 1 where the strides are above 1, as in Keras"                                                                                },
    {"Conv2D",                "{\"filters\": 3, \"kernel_size\": 5}",                        "?x9x4x1",
     "its window of 5 does not fit into axis 2 of its input ?x9x4x1"                                                                                                  },
    {"Conv2D",                "{\"filters\": 3, \"kernel_size\": 3}",                        "?x9x9",
     "takes an input of 4 axes (batch, height, width, channels), not ?x9x9"                                                                                           },
    {"Conv2D",                "{\"filters\": 4, \"kernel_size\": 3, \"groups\": 2}",         "?x9x9x3",
     "its 2 groups do not divide the 3 channels of its input"                                                                                                         },
    {"BatchNormalization",    "{\"renorm\": true}",                                          "?x9",
     L "(BatchNormalization): renorm: not supported: must be false or null, not true"                                                                                 },
    {"BatchNormalization",    "{\"axis\": 4}",                                               "?x9x9",
     "\"axis\" must be between -3 and 2 for this input, not 4"                                                                                                        },
    {"InstanceNormalization", "{\"track_running_stats\": true}",                             "?x9x9",
     L "(InstanceNormalization): track_running_stats: not supported: must be false or "
       "null, not true"                                                                                                                                               },
    {"Dropout",               "{\"rate\": 1}",                                               "?x9",          L "(Dropout): rate: must be below 1"                     },
    {"Reshape",               "{\"target_shape\": [7]}",                                     "?x2x3",
     "cannot make ?x7 of ?x2x3: the numbers of elements differ"                                                                                                       },
    {"Add",                   "{}",                                                          "?x9x2 ?x9x3",
     "input shapes do not match: the first is ?x9x2, number 2 is ?x9x3"                                                                                               },
    {"Concatenate",           "{}",                                                          "?x9x2 ?x8x3",
     "input shapes do not match: the first is ?x9x2, number 2 is ?x8x3"                                                                                               },
    {"Cropping1D",            "{\"cropping\": 5}",                                           "?x9x1",
     "cuts off all of axis 1 of its input ?x9x1"                                                                                                                      },
    {"UpSampling2D",          "{\"interpolation\": \"bicubic\"}",                            "?x9x9x1",
     L "(UpSampling2D): interpolation: must be one of nearest, bilinear, linear, "
       "trilinear, not \"bicubic\""                                                                                                                                   },
    {"Normalization",         "{\"mean\": 1}",                                               "?x9",
     L "(Normalization): give both \"mean\" and \"variance\""                                                                                                         },
    {"Dense",                 "{\"units\": 3, \"bias_initializer\": \"orthogonal\"}",        "?x9",
     "its bias is 3: the initializer Orthogonal needs two axes or more"                                                                                               },
};
#undef L

static int shapes(const char *text, struct dnn_shape *out)
{
    char *copy = dnn_strdup(text), *save = NULL;
    int n = 0;

    for (char *word = strtok_r(copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save))
        if (dnn_shape_parse(word, &out[n], NULL) == 0) n++;
    dnn_free(copy);
    return n;
}

static int read(const char *class_name, const char *config, struct dnn_arena *arena,
                const struct dnn_layer **out, struct dnn_json **file,
                struct dnn_err *err)
{
    DNN_TRY(dnn_json_text("net", config, strlen(config), file, err));
    struct dnn_jobj top = dnn_json_top(*file);
    return dnn_layer_read(class_name, "x", &top, 2, arena, out, err);
}

/* The output of the ops must have the shape of infer(). */
static void lower(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                  bool training, const char *what)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, training);
    struct dnn_layer_weight w[DNN_LAYER_WEIGHTS];
    struct dnn_shape known[4], out;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];
    int value[4], weight[DNN_LAYER_WEIGHTS];

    dnn_prog_set_layer(prog, "x", 1, !layer->trainable);
    for (int i = 0; i < nin; i++) {
        known[i] = in[i];
        for (int k = 0; k < known[i].ndim; k++)
            if (known[i].dim[k] < 0) known[i].dim[k] = k == 0 ? 2 : 9;
        value[i] = dnn_prog_input(prog, "in", DNN_F32, &known[i]);
    }
    int n = dnn_layer_weights(layer, nin, known, w);
    for (int i = 0; i < n; i++)
        weight[i] = w[i].state
                        ? dnn_prog_state(prog, w[i].name, &w[i].shape, &w[i].init)
                        : dnn_prog_weight(prog, w[i].name, &w[i].shape, &w[i].init);
    int y = layer->type->lower(
        layer, &(struct dnn_layer_lower){prog, training, nin, value, weight});
    if (dnn_layer_infer(layer, nin, known, &out, NULL) < 0) out.ndim = 0;
    dnn_shape_text(a, sizeof a, dnn_prog_shape(prog, y));
    is_text(a, dnn_shape_text(b, sizeof b, &out), what);
    dnn_prog_free(prog);
}

static void check_good(const struct good *g)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_layer_weight w[DNN_LAYER_WEIGHTS];
    struct dnn_json *file = NULL;
    const struct dnn_layer *layer;
    struct dnn_shape in[4], out;
    struct dnn_err err = {0};
    char *what = dnn_format("%s %s of %s", g->class_name, g->config, g->in);
    int nin = shapes(g->in, in);

    if (read(g->class_name, g->config, arena, &layer, &file, &err) < 0 ||
        dnn_layer_infer(layer, nin, in, &out, &err) < 0) {
        is_text(err.text, g->want, what);
    } else {
        int64_t all = 0, trained = 0, count;
        char text[DNN_SHAPE_TEXT];
        int n = dnn_layer_weights(layer, nin, in, w);

        for (int i = 0; i < n; i++) {
            if (dnn_shape_count(&w[i].shape, &count, NULL) < 0) count = -1;
            all += count;
            if (w[i].trainable) trained += count;
        }
        char *got = dnn_format("%s %" PRId64 " %" PRId64,
                               dnn_shape_text(text, sizeof text, &out), all, trained);
        is_text(got, g->want, what);
        dnn_free(got);
        lower(layer, nin, in, true, "its ops in training");
        lower(layer, nin, in, false, "its ops in inference");
    }
    dnn_free(what);
    dnn_json_free(file);
    dnn_arena_free(arena);
}

static void check_bad(const struct bad *b)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_json *file = NULL;
    const struct dnn_layer *layer;
    struct dnn_shape in[4], out;
    struct dnn_err err = {.text = "(taken)"};
    char *what = dnn_format("%s %s of %s", b->class_name, b->config, b->in);
    int nin = shapes(b->in, in);

    if (read(b->class_name, b->config, arena, &layer, &file, &err) == 0)
        dnn_layer_infer(layer, nin, in, &out, &err);
    is_text(err.text, b->want, what);
    dnn_free(what);
    dnn_json_free(file);
    dnn_arena_free(arena);
}

int main(void)
{
    struct dnn_err err = {0};

    for (int i = 0; dnn_layer_at(i) != NULL; i++) {
        const struct dnn_layer_type *type = dnn_layer_at(i);
        bool sound = true;

        if (type->fields != NULL) sound = dnn_field_check(type->fields, &err) == 0;
        if (sound && type->keras1 != NULL)
            sound = dnn_field_check(type->keras1, &err) == 0;
        ok(sound && dnn_layer_find(type->name) == type,
           "%s: found by its name, fields are valid %s", type->name, err.text);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        check_good(&good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_bad(&bad[i]);
    return done();
}
