/* choices.c - names of formats and contents in configurations and on command lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output.h"

const struct dnn_choice dnn_output_format_choices[] = {
    {"hdf5",    DNN_OUTPUT_HDF5   },
    {"bp5",     DNN_OUTPUT_BP5    },
    {"npy",     DNN_OUTPUT_NPY    },
    {"nifti",   DNN_OUTPUT_NIFTI  },
    {"tiff",    DNN_OUTPUT_TIFF   },
    {"png",     DNN_OUTPUT_PNG    },
    {"overlay", DNN_OUTPUT_OVERLAY},
    {"csv",     DNN_OUTPUT_CSV    },
    {"json",    DNN_OUTPUT_JSON   },
    {NULL,      0                 }
};

const struct dnn_choice dnn_output_content_choices[] = {
    {"values",  DNN_OUTPUT_VALUES },
    {"classes", DNN_OUTPUT_CLASSES},
    {NULL,      0                 }
};
