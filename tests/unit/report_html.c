/* report_html.c - axes, texts and tables of a report, and the whole report.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"
#include "telemetry_made.h"

static const char *shown(struct dnn_buf *buf)
{
    return buf->text == NULL ? "" : buf->text;
}

/* ---- texts ---- */

static void is_html(const char *text, const char *want)
{
    struct dnn_buf out = {0};

    dnn_html_text(&out, text);
    is_text(shown(&out), want, want);
    dnn_buf_free(&out);
}

static void is_base64(const char *bytes, const char *want)
{
    struct dnn_buf out = {0};

    dnn_html_base64(&out, bytes, strlen(bytes));
    is_text(shown(&out), want, want);
    dnn_buf_free(&out);
}

static void test_texts(void)
{
    is_html("a<b> & \"c\" 'd'", "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
    is_html("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 ok",
            "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 ok");
    is_html("bad \xff \xc3 \x01 \xed\xa0\x80.",
            "bad \xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd "
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.");
    is_html("cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd");
    is_base64("", "");
    is_base64("f", "Zg==");
    is_base64("fo", "Zm8=");
    is_base64("foo", "Zm9v");
    is_base64("foobar", "Zm9vYmFy");
}

/* ---- axes ---- */

static void has_ticks(double low, double high, bool log, bool whole, const char *want)
{
    struct dnn_axis axis = dnn_axis_make(low, high, log, whole);
    double tick[DNN_AXIS_TICKS];
    char label[DNN_AXIS_TICKS][24];
    struct dnn_buf out = {0};
    int n = dnn_axis_ticks(&axis, tick, label);
    bool inside = true;

    axis.from = 10, axis.to = 20;
    for (int i = 0; i < n; i++) {
        double at = dnn_axis_at(&axis, tick[i]);

        inside = inside && at >= 10 - 1e-6 && at <= 20 + 1e-6;
        dnn_buf_add(&out, "%s%s", i == 0 ? "" : " ", label[i]);
    }
    is_text(shown(&out), want, want);
    if (!inside) ok(false, "a tick is outside the axis");
    dnn_buf_free(&out);
}

static void test_axes(void)
{
    has_ticks(0.1, 0.9, false, false, "0 0.2 0.4 0.6 0.8");
    has_ticks(0.8, 0.93, false, false, "0.80 0.82 0.84 0.86 0.88 0.90 0.92");
    has_ticks(1, 10, false, true, "2 4 6 8 10");
    has_ticks(1, 3, false, true, "1 2 3");
    has_ticks(1, 1, false, true, "1");
    has_ticks(5, 5, false, false, "3 4 5 6 7");
    has_ticks(0, 0, false, false, "-0.4 -0.2 0 0.2 0.4");
    has_ticks(-3e-9, 4e-9, false, false, "-2e-09 0 2e-09 4e-09");
    has_ticks(1e6, 5e7, false, false, "0 1e+07 2e+07 3e+07 4e+07 5e+07");
    has_ticks(1e-3, 20, true, false, "0.001 0.01 0.1 1 10");
    has_ticks(0.03, 2, true, false, "0.05 0.1 0.2 0.5 1 2");
    has_ticks(1e-300, 1e300, true, false, "1e-249 1e-166 1e-83 1 1e+83 1e+166 1e+249");
    has_ticks(-1e300, 1e300, false, false, "-1e+300 -5e+299 0 5e+299 1e+300");
}

/* ---- the matrix ---- */

static void test_confusion(void)
{
    static const double two[] = {3, 1, 0, 4};
    static const char *const name[] = {"<no>", "yes"};
    struct dnn_buf out = {0};
    double *many = dnn_alloc(50 * 50 * sizeof *many);

    dnn_report_confusion(&out, 2, two, name);
    is_text(
        shown(&out),
        "<section><h2>Confusion matrix</h2>\n<div class=\"scroll\"><table "
        "class=\"matrix\">\n<tr><th>target \\ prediction</th><th>&lt;no&gt;</th>"
        "<th>yes</th><th class=\"sum\">recall</th></tr>\n"
        "<tr><th>&lt;no&gt;</th><td style=\"background:rgba(37,99,235,0.65);"
        "color:#fff\" title=\"75.00 % of &lt;no&gt; predicted as &lt;no&gt;\">3</td>"
        "<td style=\"background:rgba(220,38,38,0.42)\" title=\"25.00 % of "
        "&lt;no&gt; predicted as yes\">1</td><td class=\"sum\">75.0 %</td></tr>\n"
        "<tr><th>yes</th><td title=\"0.00 % of yes predicted as &lt;no&gt;\" "
        "class=\"none\">0</td><td style=\"background:rgba(37,99,235,0.75);"
        "color:#fff\" title=\"100.00 % of yes predicted as yes\">4</td>"
        "<td class=\"sum\">100.0 %</td></tr>\n"
        "<tr><th class=\"sum\">precision</th><td class=\"sum\">100.0 %</td>"
        "<td class=\"sum\">80.0 %</td><td class=\"sum\">87.5 %</td></tr>\n"
        "</table></div>\n</section>\n",
        "a matrix of two classes");
    dnn_buf_free(&out);
    out = (struct dnn_buf){0};
    many[3 * 50 + 4] = 7;
    many[3 * 50 + 3] = 7;
    many[9 * 50 + 1] = 8;
    dnn_report_confusion(&out, 50, many, NULL);
    is_text(shown(&out),
            "<section><h2>Confusion matrix</h2>\n<p>The matrix of 50 classes is not "
            "shown.</p>\n<h3>Most frequent errors</h3>\n<table class=\"facts\">\n"
            "<tr><th>target</th><th>prediction</th><th>count</th><th>share of the "
            "target</th></tr>\n"
            "<tr><td>9</td><td>1</td><td>8</td><td class=\"sum\">100.0 %</td></tr>\n"
            "<tr><td>3</td><td>4</td><td>7</td><td class=\"sum\">50.0 %</td></tr>\n"
            "</table>\n</section>\n",
            "errors of fifty classes");
    dnn_buf_free(&out);
    dnn_free(many);
}

/* ---- the whole report ---- */

static char *report_of(const struct dnn_report *r)
{
    struct dnn_err err = {0};
    char *text = NULL;

    if (dnn_report_write(made_path("r.html"), r, &err) < 0 ||
        dnn_file_read_text(made_path("r.html"), 1 << 24, &text, &err) < 0) {
        ok(false, "%s", err.text);
        exit(1);
    }
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void test_whole(void)
{
    static const char *const name[] = {"liver", NULL};
    struct dnn_report r = {.title = "a <run>", .classes = 2, .class_name = name};
    char csv[128];

    char *text = report_of(&r);
    ok(strstr(text, "<title>a &lt;run&gt;</title>") != NULL && count(text, "<svg") == 0,
       "only a title");
    dnn_free(text);
    snprintf(csv, sizeof csv, "%s", made_path("m.csv"));
    r.csv = csv;
    made_file("m.csv", "epoch,step,loss\n");
    text = report_of(&r);
    is_int(count(text, "<svg"), 0, "no rows, no curves");
    dnn_free(text);
    made_file("m.csv", "epoch,learning_rate,loss,val_loss,dice,dice_0,dice_1,top_5\n"
                       "1,0.1,2,3,.5,.4,.6,.7\n2,0.1,1,nan,.5,.4,.6,.7\n"
                       "3,0.1,0.05,2,inf,.4,.6,.7\n");
    text = report_of(&r);
    is_int(count(text, "<svg"), 5, "loss, dice, top_5, dice by class, rate");
    is_int(count(text, "<circle"), 3 + 2 + 2 + 3 + 6 + 3, "a dot for each number");
    ok(strstr(text, "<figcaption>loss <small>logarithmic</small></figcaption>") != NULL,
       "large ratios on a logarithmic axis");
    ok(strstr(text, "<title>validation, epoch 3: 2</title>") != NULL,
       "dots have tooltips");
    ok(strstr(text, "best val_loss</span><b>2</b><small>in epoch 3") != NULL,
       "the best epoch");
    ok(strstr(text, "</i>liver</span> <span>") != NULL &&
           strstr(text, "</i>1</span>") != NULL,
       "classes have their names");
    dnn_free(text);
}

static void test_many_steps(void)
{
    struct dnn_buf csv = {0};
    char path[128];
    struct dnn_report r = {.title = "t", .steps = path};

    snprintf(path, sizeof path, "%s", made_path("s.csv"));
    dnn_buf_add(&csv, "step,loss\n");
    for (int i = 1; i <= 5000; i++)
        dnn_buf_add(&csv, "%d,%g\n", i, 1 + (i % 7) * 0.1);
    made_file("s.csv", csv.text);
    char *text = report_of(&r);
    ok(count(text, "class=\"band\"") == 1 && strlen(text) < 30000,
       "thousands of steps become a band: %zu bytes", strlen(text));
    dnn_free(text);
    dnn_buf_free(&csv);
}

static void cannot(const struct dnn_report *r, const char *want)
{
    struct dnn_err err = {0};

    unlink(made_path("r.html"));
    if (dnn_report_write(made_path("r.html"), r, &err) == 0) strcpy(err.text, "(made)");
    is_said(&err, want, want);
    ok(access(made_path("r.html"), F_OK) != 0, "no file is left");
}

static void test_refusals(void)
{
    char path[128];
    struct dnn_report_image image = {"x", path};
    struct dnn_report r = {.title = "t", .nimages = 1, .image = &image};

    snprintf(path, sizeof path, "%s", made_path("p.png"));
    cannot(&r, "DIR/p.png: cannot be read: No such file or directory");
    made_file("p.png", "\x89PNG\r\n\x1a\n short");
    cannot(&r, "DIR/p.png: is not a PNG file");
    r = (struct dnn_report){.title = "t", .csv = path};
    made_file("p.png", "a,b\nx,1\n");
    cannot(&r, "DIR/p.png:2: column \"a\" has \"x\", which is not a number");
}

int main(void)
{
    made_begin();
    test_texts();
    test_axes();
    test_confusion();
    test_whole();
    test_many_steps();
    test_refusals();
    made_end();
    return done();
}
