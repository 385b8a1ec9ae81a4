/* fields.c - the keys that describe an import.
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

const struct dnn_choice dnn_pairing_choices[] = {
    {"auto",  DNN_PAIR_AUTO },
    {"name",  DNN_PAIR_NAME },
    {"order", DNN_PAIR_ORDER},
    {NULL,    0             },
};

/* dnn_kind_choices and what leaves it to the format. */
static const struct dnn_choice kinds[] = {
    {"auto",   -1             },
    {"image",  DNN_KIND_IMAGE },
    {"mask",   DNN_KIND_MASK  },
    {"label",  DNN_KIND_LABEL },
    {"values", DNN_KIND_VALUES},
    {NULL,     0              },
};

static const struct dnn_sub extents = {.max = DNN_MAX_DIMS, .single = true};
static const struct dnn_sub words = {.single = true};

#define AT(f) offsetof(struct dnn_import, f)
/* A key of a side: the texts and ranges are the same for both. */
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
#define HELP_FORMAT "name of the format; null: by suffix and content"
#define HELP_NAME "dataset, key or feature within the file; null: the usual one"
#define HELP_KIND "what the numbers mean; auto: what the format suggests"
#define HELP_LAYOUT                                                                    \
    "where the channels are in arrays that do not say it; none: there is no such axis"
#define HELP_GRAY "colour images become grey"
#define HELP_SHAPE "raw: extents of one sample, in the order of the file"
#define HELP_TYPE "raw: element type, null: u8; tables: of numbers, null: f32"
#define HELP_ENDIAN "raw: the most significant byte comes first"
#define HELP_OFFSET "raw: bytes before the first sample"

const struct dnn_field dnn_import_fields[] = {
    SIDE(input, NULL),
    SIDE(target, "null"),
    {"pairing",    DNN_F_ENUM,  AT(pairing),    "auto",  0, 0,    dnn_pairing_choices,
                      "how inputs find their targets; auto: by name between directories, else by order",
                      NULL                                                                                          },
    {"whole",      DNN_F_BOOL,  AT(whole),      "false", 0, 0,    NULL,
                      "an array file is one sample, not a row of samples",                                    NULL  },
    {"split",      DNN_F_TEXT,  AT(split),      "null",  0, 0,    NULL,
                      "train or test of formats that know it, or a directory's name; null: all there is",
                      NULL                                                                                          },
    {"group",      DNN_F_TEXT,  AT(group),      "null",  0, 0,    NULL,
                      "what is never split: \"directory\", the part of a name up to this text, or a "
     "table's column; null: nothing",                                                                         NULL  },
    {"separator",  DNN_F_TEXT,  AT(separator),  "null",  0, 0,    NULL,
                      "tables: between fields; null: comma, semicolon or tab, whichever the header has",
                      NULL                                                                                          },
    {"inputs",     DNN_F_TEXTS, AT(inputs),     "[]",    0, 0,    NULL,
                      "tables: columns that are inputs; none: all others",                                    &words},
    {"targets",    DNN_F_TEXTS, AT(targets),    "[]",    0, 0,    NULL,
                      "tables: columns that are targets",                                                     &words},
    {"objects",    DNN_F_TEXTS, AT(objects),    "[]",    0, 0,    NULL,
                      "tables: columns that name object files",                                               &words},
    {"object_dir", DNN_F_TEXT,  AT(object_dir), "null",  0, 0,    NULL,
                      "what those names are relative to; null: the table's directory",                        NULL  },
    {"limit",      DNN_F_INT,   AT(limit),      "0",     0, 1e18, NULL,
                      "bytes one sample may take once decoded; 0: 16 GiB",                                    NULL  },
    {NULL,         0,           0,              NULL,    0, 0,    NULL,                NULL, NULL  },
};
