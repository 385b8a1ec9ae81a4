/* fields.c - the configuration keys of an import.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/import_impl.h"

#include <math.h>
#include <stddef.h>

const struct dnn_choice dnn_layout_choices[] = {
    {"auto",  DNN_LAYOUT_AUTO },
    {"last",  DNN_LAYOUT_LAST },
    {"first", DNN_LAYOUT_FIRST},
    {"none",  DNN_LAYOUT_NONE },
    {NULL,    0               },
};

static const struct dnn_choice pairings[] = {
    {"auto",  DNN_PAIR_AUTO },
    {"name",  DNN_PAIR_NAME },
    {"order", DNN_PAIR_ORDER},
    {NULL,    0             },
};

/* dnn_kind_choices and "auto". */
static const struct dnn_choice kinds[] = {
    {"auto",   -1             },
    {"image",  DNN_KIND_IMAGE },
    {"mask",   DNN_KIND_MASK  },
    {"label",  DNN_KIND_LABEL },
    {"values", DNN_KIND_VALUES},
    {NULL,     0              },
};

static const struct dnn_sub extents = {.max = DNN_MAX_DIMS, .single = true};
static const struct dnn_sub names = {.single = true};

#define AT(f) offsetof(struct dnn_import, f)
/* The keys of a side: help texts and ranges are the same for both. */
#define KEY(key, type, member, def, choices, help)                                     \
    {key, type, AT(member), def, 0, 0, choices, help, NULL}
#define LIST(key, member, sub, help)                                                   \
    {key, DNN_F_INTS, AT(member), "[]", 1, 1e15, NULL, help, sub}
#define BYTES(key, member, help)                                                       \
    {key, DNN_F_INT, AT(member), "0", 0, 1e18, NULL, help, NULL}
#define SIDE(s, none)                                                                  \
    KEY(#s "_path", DNN_F_TEXT, s.path, none, NULL, HELP_PATH),                        \
        KEY(#s "_format", DNN_F_TEXT, s.format, "null", NULL, HELP_FORMAT),            \
        KEY(#s "_name", DNN_F_TEXT, s.name, "null", NULL, HELP_NAME),                  \
        KEY(#s "_kind", DNN_F_ENUM, s.kind, "auto", kinds, HELP_KIND),                 \
        KEY(#s "_layout", DNN_F_ENUM, s.layout, "auto", dnn_layout_choices,            \
            HELP_LAYOUT),                                                              \
        KEY(#s "_gray", DNN_F_BOOL, s.gray, "false", NULL, HELP_GRAY),                 \
        LIST(#s "_shape", s.shape, &extents, HELP_SHAPE),                              \
        KEY(#s "_dtype", DNN_F_TEXT, s.type, "null", NULL, HELP_TYPE),                 \
        KEY(#s "_big_endian", DNN_F_BOOL, s.big_endian, "false", NULL, HELP_ENDIAN),   \
        BYTES(#s "_offset", s.offset, HELP_OFFSET)

#define HELP_PATH "a file, a directory, or a text file that lists files"
#define HELP_FORMAT "file format; null: detected from suffix and content"
#define HELP_NAME                                                                      \
    "name of the dataset, key or feature inside the file; null: the usual one"
#define HELP_KIND "meaning of the numbers; auto: as the format suggests"
#define HELP_LAYOUT "position of the channel axis in array files; none: no channel axis"
#define HELP_GRAY "convert color images to grayscale"
#define HELP_SHAPE "raw: shape of one sample, in file order"
#define HELP_TYPE "dtype of raw files (null: u8) or of numbers in tables (null: f32)"
#define HELP_ENDIAN "raw: big-endian byte order"
#define HELP_OFFSET "raw: offset of the first sample in bytes"

const struct dnn_field dnn_import_fields[] = {
    SIDE(input, NULL),
    SIDE(target, "null"),
    {"pairing",    DNN_F_ENUM,  AT(pairing),    "auto",  0, 0,    pairings,
                      "how inputs and targets are paired; auto: by name between directories, else by "
     "order",                                                                                                          NULL  },
    {"whole",      DNN_F_BOOL,  AT(whole),      "false", 0, 0,    NULL,
                      "an array file is one sample; default: its rows are samples",                                    NULL  },
    {"split",      DNN_F_TEXT,  AT(split),      "null",  0, 0,    NULL,
                      "split to read: train or test for formats that define them, or a directory name; "
     "null: all",                                                                                                      NULL  },
    {"group",      DNN_F_TEXT,  AT(group),      "null",  0, 0,    NULL,
                      "samples of one group stay in one split: \"directory\", the part of the file name "
     "up to this text, or a table column; null: no groups",                                                            NULL  },
    {"classes",    DNN_F_TEXTS, AT(classes),    "[]",    0, 0,    NULL,
                      "images in class directories: the directories in the order of their class "
     "numbers; empty: all, sorted",                                                                                    NULL  },
    {"no_classes", DNN_F_BOOL,  AT(no_classes), "false", 0, 0,    NULL,
                      "images in directories: these are not classes",                                                  NULL  },
    {"separator",  DNN_F_TEXT,  AT(separator),  "null",  0, 0,    NULL,
                      "tables: field separator; null: detected (comma, semicolon or tab)",                             NULL  },
    {"inputs",     DNN_F_TEXTS, AT(inputs),     "[]",    0, 0,    NULL,
                      "tables: input columns; empty: all that are not targets",                                        &names},
    {"targets",    DNN_F_TEXTS, AT(targets),    "[]",    0, 0,    NULL,     "tables: target columns",
                      &names                                                                                                 },
    {"objects",    DNN_F_TEXTS, AT(objects),    "[]",    0, 0,    NULL,
                      "tables: columns with paths of image or array files",                                            &names},
    {"object_dir", DNN_F_TEXT,  AT(object_dir), "null",  0, 0,    NULL,
                      "directory those paths are relative to; null: the table's directory",                            NULL  },
    {"limit",      DNN_F_INT,   AT(limit),      "0",     0, 1e18, NULL,
                      "size limit of a decoded sample in bytes; 0: 16 GiB",                                            NULL  },
    {NULL,         0,           0,              NULL,    0, 0,    NULL,     NULL,                     NULL  },
};
