/* report_evaluation.c - tables, the reliability diagram and pictures of an evaluation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"
#include "telemetry_made.h"

static int count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void test_table(void)
{
    static const char *const column[] = {"dice", "<points>"}, *const row[] = {"a & b",
                                                                              NULL};
    static const double value[] = {0.98765, 1200, NAN, 0};
    struct dnn_report_table table = {
        .title = "Classes & more", .corner = "class", .ncolumns = 2, .nrows = 2};
    double *many = dnn_alloc(500 * sizeof *many);
    struct dnn_buf out = {0};

    table.column = column, table.row = row, table.value = value;
    dnn_report_table(&out, &table);
    is_text(out.text,
            "<section><h2>Classes &amp; more</h2>\n"
            "<div class=\"scroll\"><table class=\"matrix\">\n"
            "<tr><th>class</th><th>dice</th><th>&lt;points&gt;</th></tr>\n"
            "<tr><th>a &amp; b</th><td>0.9877</td><td>1200</td></tr>\n"
            "<tr><th>1</th><td>&#8211;</td><td>0</td></tr>\n"
            "</table></div>\n</section>\n",
            "a table");
    dnn_buf_free(&out);
    table = (struct dnn_report_table){
        .title = "t", .ncolumns = 1, .column = column, .nrows = 500, .value = many};
    dnn_report_table(&out, &table);
    is_int(count(out.text, "<td>"), 200, "a long table is shortened");
    ok(strstr(out.text, "<p>and 300 more rows</p>") != NULL, "... and says so");
    dnn_buf_free(&out);
    dnn_free(many);
}

static const struct dnn_report_bin bins[] = {
    {0,    0.25, NAN,  NAN,  0},
    {0.25, 0.5,  0.4,  0.25, 4},
    {0.5,  0.75, 0.6,  0.8,  5},
    {0.75, 1,    0.95, 0.95, 9},
};

/* The frame is 62 to 504 wide and 12 to 258 high. */
static void test_reliability(void)
{
    static const struct dnn_report_bin narrow = {0.5, 0.501, 0.5, 0.6, 3};
    struct dnn_buf out = {0};

    dnn_report_reliability(&out, 4, bins);
    is_int(count(out.text, "<g>"), 3, "a bin without samples is not drawn");
    ok(strstr(out.text,
              "<g><title>confidence 0.400, accuracy 0.250, 4 samples</title>\n"
              "<rect x=\"173.0\" y=\"196.5\" width=\"109.5\" height=\"61.5\" "
              "fill=\"#93b4f5\"/>\n"
              "<rect x=\"173.0\" y=\"159.6\" width=\"109.5\" height=\"36.9\" "
              "fill=\"rgba(220,38,38,.45)\"/>\n</g>") != NULL,
       "confidence above accuracy");
    ok(strstr(out.text, "<rect x=\"283.5\" y=\"61.2\" width=\"109.5\" height=\"49.2\" "
                        "fill=\"rgba(220,38,38,.45)\"/>") != NULL,
       "confidence below accuracy");
    ok(strstr(out.text, "<line x1=\"62.0\" y1=\"258.0\" x2=\"504.0\" y2=\"12.0\"") !=
           NULL,
       "the diagonal");
    ok(strstr(out.text, ">0.2</text>") != NULL &&
           strstr(out.text, ">0.8</text>") != NULL,
       "axes have ticks");
    dnn_buf_free(&out);
    dnn_report_reliability(&out, 1, &narrow);
    ok(strstr(out.text, "<rect x=\"283.0\" y=\"110.4\" width=\"0.4\"") != NULL,
       "one of 1000 bins has a width");
    dnn_buf_free(&out);
}

static void test_whole(void)
{
    /* The smallest picture: one white pixel. */
    static const char png[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\b\0\0\0\0:~\x9bU\0\0\0\n"
        "IDATx\x9c\x63\xf8\x0f\0\1\1\1\0\x1b\xb6\xee\x56\0\0\0\0IEND\xae\x42`\x82";
    static const double confusion[] = {3, 1, 2, 4}, total[] = {0.7};
    static const char *const column[] = {"value"}, *const row[] = {"accuracy"};
    const struct dnn_report_table table = {.title = "Evaluation",
                                           .ncolumns = 1,
                                           .column = column,
                                           .nrows = 1,
                                           .row = row,
                                           .value = total};
    char path[128];
    const struct dnn_report_image image = {"cat.png: nll 4.2", path};
    struct dnn_report r = {.title = "t",
                           .classes = 2,
                           .confusion = confusion,
                           .ntables = 1,
                           .table = &table,
                           .nbins = 4,
                           .bin = bins,
                           .image_title = "Worst samples",
                           .nimages = 1,
                           .image = &image};
    struct dnn_err err = {0};
    char *text = NULL;

    snprintf(path, sizeof path, "%s", made_path("worst.png"));
    is_int(dnn_file_write(path, png, sizeof png - 1, &err), 0, "a picture");
    is_int(dnn_report_write(made_path("r.html"), &r, &err), 0, "a report");
    if (dnn_file_read_text(made_path("r.html"), 1 << 20, &text, &err) < 0) exit(99);
    const char *const order[] = {"<h2>Evaluation</h2>",
                                 "<h2>Calibration</h2>",
                                 "<h2>Confusion matrix</h2>",
                                 "<h2>Worst samples</h2>",
                                 "data:image/png;base64,iVBORw0KGgo",
                                 "<figcaption>cat.png: nll 4.2</figcaption>",
                                 "</main></body></html>"};
    const char *at = text;
    for (int i = 0; i < 7; i++) {
        const char *next = strstr(at, order[i]);

        ok(next != NULL, "the report has %s", order[i]);
        if (next != NULL) at = next;
    }
    ok(count(text, "<section>") == count(text, "</section>") &&
           count(text, "<figure") == count(text, "</figure>") &&
           count(text, "<svg") == count(text, "</svg>"),
       "all elements are closed");
    dnn_free(text);
}

int main(void)
{
    made_begin();
    test_table();
    test_reliability();
    test_whole();
    made_end();
    return done();
}
