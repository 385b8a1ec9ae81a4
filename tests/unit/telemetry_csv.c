/* telemetry_csv.c - metrics.csv read as columns, and invalid files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry_made.h"

static void test_columns(void)
{
    struct dnn_csv *csv = NULL;
    struct dnn_err err = {0};
    const double *x;

    made_file("a.csv",
              "epoch,\"a,\"\"b\"\"\",loss\r\n1,,0.5\r\n2,inf,1e-3\n3,-inf,nan\n4,1");
    is_int(dnn_csv_read(made_path("a.csv"), &csv, &err), 0, "a table");
    is_int(dnn_csv_rows(csv), 3, "rows, without a truncated one");
    is_int(dnn_csv_columns(csv), 3, "columns");
    is_text(dnn_csv_name(csv, 1), "a,\"b\"", "a quoted name");
    is_text(dnn_csv_name(csv, 3), NULL, "no fourth name");
    is_int(dnn_csv_column(csv, "loss", &x), 2, "a column by name");
    ok(x[0] == 0.5 && x[1] == 1e-3 && isnan(x[2]), "its numbers");
    is_int(dnn_csv_column(csv, "a,\"b\"", &x), 1, "another");
    ok(isnan(x[0]) && x[1] == INFINITY && x[2] == -INFINITY, "empty and infinite");
    is_int(dnn_csv_column(csv, "none", &x), -1, "an unknown column");
    ok(x == NULL, "is NULL");
    dnn_csv_free(csv);
    made_file("a.csv", "epoch,loss\n");
    is_int(dnn_csv_read(made_path("a.csv"), &csv, &err), 0, "a header alone");
    is_int(dnn_csv_rows(csv), 0, "has no rows");
    dnn_csv_free(csv);
    dnn_csv_free(NULL);
}

static void cannot(const char *text, const char *want)
{
    struct dnn_csv *csv = NULL;
    struct dnn_err err = {0};

    made_file("a.csv", text);
    if (dnn_csv_read(made_path("a.csv"), &csv, &err) == 0) strcpy(err.text, "(read)");
    is_said(&err, want, want);
    if (strcmp(err.text, "(read)") == 0) dnn_csv_free(csv);
}

int main(void)
{
    struct dnn_csv *csv = NULL;
    struct dnn_err err = {0};

    made_begin();
    test_columns();
    cannot("", "DIR/a.csv: is empty, a header is expected");
    cannot("epoch,lo", "DIR/a.csv: is empty, a header is expected");
    cannot("a,b,a\n", "DIR/a.csv:1: column \"a\" occurs twice");
    cannot("a,b\n1,2\n1\n", "DIR/a.csv:3: has fewer columns than the header (2)");
    cannot("a,b\n1,2,3\n", "DIR/a.csv:2: has more columns than the header (2)");
    cannot("a,b\n1,x\n", "DIR/a.csv:2: column \"b\" has \"x\", which is not a number");
    cannot("a,b\n1,2\n\n", "DIR/a.csv:3: has fewer columns than the header (2)");
    dnn_csv_read(made_path("none.csv"), &csv, &err);
    is_said(&err, "DIR/none.csv: cannot be read: No such file or directory",
            "no such file");
    made_end();
    return done();
}
