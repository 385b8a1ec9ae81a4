/* print.c - prints the result of a match.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "weights/weights.h"

enum { MAX_LINES = 40 }; /* lines of each list */

static void list(FILE *where, const char *what, int n, const char *const *line)
{
    if (n > 0) fprintf(where, "%s:\n", what);
    for (int i = 0; i < n && i < MAX_LINES; i++)
        fprintf(where, "  %s\n", line[i]);
    if (n > MAX_LINES) fprintf(where, "  and %d more\n", n - MAX_LINES);
}

void dnn_weights_print(const struct dnn_weights_match *match, FILE *where)
{
    fprintf(where, "%s: %d of %d weights, by %s\n", match->path, match->filled,
            match->wanted, match->by_class ? "class and order" : "name");
    list(where, "not in the file, left as they are", match->nmissing, match->missing);
    list(where, "in the file, skipped", match->nskipped, match->skipped);
    list(where, "refused", match->nrefused, match->refused);
}
