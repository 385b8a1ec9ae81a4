/* report.c - a run as one HTML file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <string.h>
#include <time.h>

/* Maximum bytes of a picture; pictures below this width are enlarged. */
enum { MAX_PICTURE_BYTES = 64 << 20, SMALL_IMAGE = 200 };

/* The report needs no scripts, fonts or other files, so any browser can show and print
 * it. */
static const char style[] =
    "body{margin:0;background:#f5f6f8;color:#1f2733;font:15px/1.5 system-ui,"
    "-apple-system,\"Segoe UI\",Roboto,\"Liberation Sans\",sans-serif}\n"
    "main{max-width:1180px;margin:0 auto;padding:28px 20px 60px}\n"
    "h1{font-size:26px;margin:0 0 2px}h2{font-size:18px;margin:34px 0 10px}\n"
    "h3{font-size:15px;margin:18px 0 6px}.when{color:#64707f;margin:0 0 18px}\n"
    ".cards{display:flex;flex-wrap:wrap;gap:12px}\n"
    ".card{background:#fff;border:1px solid #e1e5ea;border-radius:8px;"
    "padding:10px 16px;min-width:110px}\n"
    ".card span,.card small{display:block;color:#64707f;font-size:13px}\n"
    ".card b{font-size:22px;font-weight:600}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(420px,1fr));"
    "gap:14px}\n"
    "figure{margin:0;background:#fff;border:1px solid #e1e5ea;border-radius:8px;"
    "padding:12px 14px}\n"
    "figcaption{font-weight:600}figcaption small{color:#64707f;font-weight:400}\n"
    ".legend{margin:2px 0;font-size:13px;color:#46505e}\n"
    ".legend span{margin-right:14px;white-space:nowrap}\n"
    ".legend i{display:inline-block;width:18px;margin-right:6px;vertical-align:"
    "middle}\n"
    "svg{display:block;width:100%;height:auto}svg text{font-size:12px;fill:#64707f}\n"
    ".x{text-anchor:middle}.y{text-anchor:end}.grid{stroke:#eceff3}\n"
    ".tick,.axis{stroke:#b4bcc7}.curve{fill:none;stroke-width:2;stroke-linejoin:"
    "round}\n"
    ".band{opacity:.18;stroke:none}\n"
    "table{border-collapse:collapse;background:#fff;font-size:14px}\n"
    "td,th{border:1px solid #e1e5ea;padding:4px 10px;text-align:left}\n"
    "th{font-weight:600;background:#fafbfc}.facts td{overflow-wrap:anywhere}\n"
    ".matrix "
    "td{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    ".matrix .none{color:#c3cad3}.matrix .sum{color:#64707f;background:#fafbfc}\n"
    ".scroll{overflow-x:auto}.images{display:flex;flex-wrap:wrap;gap:14px}\n"
    ".images figure{box-sizing:border-box;max-width:calc(50% - 7px)}\n"
    ".images img{display:block;max-width:100%;height:auto;margin-bottom:6px}\n"
    ".images figcaption{font-weight:400;font-size:13px}\n"
    ".small{image-rendering:pixelated}\n"
    "pre{background:#fff;border:1px solid #e1e5ea;border-radius:8px;padding:12px;"
    "overflow-x:auto;font-size:13px}\n"
    "@media print{body{background:#fff}figure,.card,table{break-inside:avoid}}\n"
    "@media(max-width:520px){.charts{grid-template-columns:1fr}"
    ".images figure{max-width:100%}}\n";

/* ---- pictures ---- */

static unsigned number_at(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;

    return (unsigned)b[0] << 24 | (unsigned)b[1] << 16 | (unsigned)b[2] << 8 | b[3];
}

static int add_image(struct dnn_buf *out, const struct dnn_report_image *image,
                     struct dnn_err *err)
{
    static const char mark[] = "\x89PNG\r\n\x1a\n";
    char *bytes;
    size_t len;

    DNN_TRY(dnn_file_read(image->png, MAX_PICTURE_BYTES, &bytes, &len, err));
    if (len < 24 || memcmp(bytes, mark, 8) != 0 || number_at(bytes + 16) == 0 ||
        number_at(bytes + 20) == 0) {
        dnn_free(bytes);
        return dnn_fail(err, DNN_EDATA, "%s: is not a PNG file", image->png);
    }
    unsigned width = number_at(bytes + 16), height = number_at(bytes + 20);
    unsigned times = width < SMALL_IMAGE && height < 4 * SMALL_IMAGE
                         ? (SMALL_IMAGE + width - 1) / width
                         : 1;
    dnn_buf_add(out, "<figure><img%s width=\"%u\" height=\"%u\" alt=\"",
                times > 1 ? " class=\"small\"" : "", width * times, height * times);
    dnn_html_text(out, image->caption == NULL ? "" : image->caption);
    dnn_buf_add(out, "\" src=\"data:image/png;base64,");
    dnn_html_base64(out, bytes, len);
    dnn_buf_add(out, "\"/><figcaption>");
    dnn_html_text(out, image->caption == NULL ? "" : image->caption);
    dnn_buf_add(out, "</figcaption></figure>\n");
    dnn_free(bytes);
    return 0;
}

static int add_images(struct dnn_buf *out, const struct dnn_report *r,
                      struct dnn_err *err)
{
    if (r->nimages < 1 || r->image == NULL) return 0;
    dnn_buf_add(out, "<section><h2>");
    dnn_html_text(out, r->image_title == NULL ? "Predictions" : r->image_title);
    dnn_buf_add(out, "</h2>\n<div class=\"images\">\n");
    for (int i = 0; i < r->nimages; i++)
        DNN_TRY(add_image(out, &r->image[i], err));
    dnn_buf_add(out, "</div></section>\n");
    return 0;
}

/* ---- the report ---- */

static void add_head(struct dnn_buf *out, const struct dnn_report *r)
{
    char when[DNN_CLOCK_TEXT];

    dnn_buf_add(out,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
                "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>");
    dnn_html_text(out, r->title);
    dnn_buf_add(out, "</title>\n<style>\n%s</style></head>\n<body><main>\n<h1>", style);
    dnn_html_text(out, r->title);
    dnn_buf_add(out, "</h1>\n<p class=\"when\">%s</p>\n",
                dnn_clock_local(when, sizeof when, time(NULL)));
}

static int add_csv(struct dnn_buf *out, const struct dnn_report *r, struct dnn_err *err)
{
    struct dnn_csv *csv = NULL;

    if (r->csv != NULL) {
        DNN_TRY(dnn_csv_read(r->csv, &csv, err));
        if (dnn_csv_rows(csv) > 0) {
            dnn_report_cards(out, csv);
            dnn_report_curves(out, csv, r->classes, r->class_name);
        }
        dnn_csv_free(csv);
    }
    if (r->steps != NULL) {
        DNN_TRY(dnn_csv_read(r->steps, &csv, err));
        if (dnn_csv_rows(csv) > 0) dnn_report_steps(out, csv);
        dnn_csv_free(csv);
    }
    return 0;
}

static int add_all(struct dnn_buf *out, const struct dnn_report *r, struct dnn_err *err)
{
    add_head(out, r);
    DNN_TRY(add_csv(out, r, err));
    for (int i = 0; i < r->ntables; i++)
        dnn_report_table(out, &r->table[i]);
    if (r->nbins > 0) dnn_report_reliability(out, r->nbins, r->bin);
    if (r->classes > 0 && r->confusion != NULL)
        dnn_report_confusion(out, r->classes, r->confusion, r->class_name);
    DNN_TRY(add_images(out, r, err));
    if (r->facts != NULL) dnn_report_facts(out, r->facts);
    if (r->log != NULL) {
        dnn_buf_add(out, "<section><h2>Log</h2>\n<pre>");
        dnn_html_text(out, r->log);
        dnn_buf_add(out, "</pre></section>\n");
    }
    dnn_buf_add(out, "</main></body></html>\n");
    return 0;
}

int dnn_report_write(const char *path, const struct dnn_report *report,
                     struct dnn_err *err)
{
    struct dnn_buf out = {0};
    int rc = add_all(&out, report, err);

    if (rc == 0) rc = dnn_file_write(path, out.text, out.len, err);
    dnn_buf_free(&out);
    return rc;
}
