/* opt_rows.h - rows of the tables of options of a tool, whose struct is struct options.
 *
 * TEXT("output", 'o', output, "DIR", "directory of the results"),
 *
 * is the option --output DIR or -o DIR, stored in the field output.  Arguments are in
 * this order, as far as a type has them: name, letter or 0, field, name of the value in
 * the manual, default as typed, smallest and largest value, choices, help.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_OPT_ROWS_H
#define DNN_BASE_OPT_ROWS_H

#include "base/opt.h"

#define AT(f) offsetof(struct options, f)

#define INT(n, l, f, d, lo, hi, h) {n, l, DNN_O_INT, AT(f), "N", d, lo, hi, NULL, h}
#define REAL(n, l, f, a, d, lo, hi, h) {n, l, DNN_O_REAL, AT(f), a, d, lo, hi, NULL, h}
#define TEXT(n, l, f, a, h) {n, l, DNN_O_TEXT, AT(f), a, NULL, 0, 0, NULL, h}
#define FLAG(n, l, f, h) {n, l, DNN_O_FLAG, AT(f), NULL, NULL, 0, 0, NULL, h}
#define ENUM(n, l, f, a, d, c, h) {n, l, DNN_O_ENUM, AT(f), a, d, 0, 0, c, h}
#define LIST(n, l, f, a, h) {n, l, DNN_O_LIST, AT(f), a, NULL, 0, 0, NULL, h}

#endif
