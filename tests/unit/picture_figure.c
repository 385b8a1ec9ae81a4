/* picture_figure.c - pictures of predictions, pixel by pixel.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "picture/figure.h"

#include <math.h>

static void is_colour(const struct dnn_canvas *c, int x, int y, uint32_t want,
                      const char *what)
{
    uint32_t got = dnn_canvas_at(c, x, y);

    if (!ok(got == want, "%s", what)) printf("# %06X instead of %06X\n", got, want);
}

/* ---- classes ---- */

static void test_class(void)
{
    const float share[] = {0.1F, 0.7F, 0.2F}, log_share[] = {-2.3025851F, -0.10536052F};
    const float logit[] = {1, 3, 2}, yes[] = {0.75F}, no[] = {0.25F}, sure[] = {2};
    const float negative[] = {-5, -6};
    double p;

    is_int(dnn_figure_class(share, 3, &p), 1, "the class with the largest value");
    ok(fabs(p - 0.7) < 1e-6, "probabilities are not changed");
    is_int(dnn_figure_class(log_share, 2, &p), 1, "of logarithms, too");
    ok(fabs(p - 0.9) < 1e-6, "and exp() is applied");
    is_int(dnn_figure_class(logit, 3, &p), 1, "of logits, too");
    ok(fabs(p - exp(3) / (exp(1) + exp(2) + exp(3))) < 1e-6, "and softmax is applied");
    is_int(dnn_figure_class(negative, 2, &p), 0,
           "negative logits are not log-probabilities");
    ok(fabs(p - 1 / (1 + exp(-1))) < 1e-6, "unless they add up to 1");
    is_int(dnn_figure_class(yes, 1, &p), 1, "one channel: yes");
    ok(fabs(p - 0.75) < 1e-6, "with its probability");
    is_int(dnn_figure_class(no, 1, &p), 0, "one channel: no");
    ok(fabs(p - 0.75) < 1e-6, "with 1 - its probability");
    is_int(dnn_figure_class(sure, 1, &p), 1, "one channel beyond 1 is a logit");
    ok(fabs(p - 1 / (1 + exp(-2))) < 1e-6, "and the sigmoid is applied");
}

/* ---- images and planes ---- */

static void test_view(void)
{
    const float data[2 * 3 * 4 * 2] = {0};
    struct dnn_view v;

    ok(dnn_figure_view(
           &(struct dnn_shape){
               3, {3, 4, 2}
    },
           data, false, &v) &&
           v.height == 3 && v.width == 4 && v.channels == 2 && v.value == data,
       "an image is drawn completely");
    ok(dnn_figure_view(
           &(struct dnn_shape){
               4, {2, 3, 4, 2}
    },
           data, false, &v) &&
           v.value == data + 3 * 4 * 2,
       "the middle plane of a volume");
    ok(!dnn_figure_view(
           &(struct dnn_shape){
               2, {3, 4}
    },
           data, false, &v) &&
           !dnn_figure_view(&(struct dnn_shape){1, {24}}, data, false, &v) &&
           !dnn_figure_view(&(struct dnn_shape){0, {0}}, data, false, &v) &&
           !dnn_figure_view(&(struct dnn_shape){3, {1, 12, 2}}, data, false, &v),
       "signals, vectors and scalars are not images");
}

/* ---- sheets ---- */

enum { LEFT = 10, TOP = 30, SIDE = 192 };

static void test_fields(void)
{
    const float input[] = {0, 1, 1, 0}, target[] = {2, 4, 2, 4};
    const float output[] = {2, 4, 99, NAN};
    const struct dnn_view in = {2, 2, 1, input, NULL}, to = {2, 2, 1, target, NULL};
    const struct dnn_view out = {2, 2, 1, output, NULL};
    const struct dnn_figure sheet = {.input = &in, .target = &to, .output = &out};
    struct dnn_canvas c = {0};
    const int second = LEFT + SIDE + 10, third = second + SIDE + 10;

    if (!ok(dnn_figure_draw(&sheet, &c, NULL) == 0, "a field is drawn")) return;
    is_int(c.width, 3 * SIDE + 40, "three panels wide");
    is_colour(&c, LEFT, TOP, 0x000000, "the input is black");
    is_colour(&c, LEFT + SIDE - 1, TOP, 0xFFFFFF, "and white");
    is_colour(&c, second, TOP, 0x1A1450, "the target's least number is dark");
    is_colour(&c, second + SIDE - 1, TOP, 0xFAE832, "its largest is bright");
    is_colour(&c, third, TOP, 0x1A1450, "the output has the same scale");
    is_colour(&c, third + SIDE - 1, TOP, 0xFAE832, "at both ends");
    is_colour(&c, third, TOP + SIDE - 1, 0xFAE832, "and is clipped above");
    is_colour(&c, third + SIDE - 1, TOP + SIDE - 1, 0x808080, "NaN is grey");
    dnn_canvas_free(&c);
}

static void test_colours(void)
{
    const float input[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    const struct dnn_view in = {2, 2, 3, input, NULL};
    const struct dnn_figure sheet = {
        .input = &in,
        .classes = true,
        .line = {"target 3", "predicted 5"},
        .correct = -1
    };
    struct dnn_canvas c = {0};

    if (!ok(dnn_figure_draw(&sheet, &c, NULL) == 0, "a colour image is drawn")) return;
    is_colour(&c, LEFT, TOP, 0x000000, "black");
    is_colour(&c, LEFT + SIDE - 1, TOP, 0xFF0000, "red");
    is_colour(&c, LEFT, TOP + SIDE - 1, 0x00FF00, "green");
    is_colour(&c, LEFT + SIDE - 1, TOP + SIDE - 1, 0x0000FF, "blue");
    bool red = false;
    for (int y = TOP + SIDE; y < c.height; y++)
        for (int x = 0; x < c.width; x++)
            red = red || dnn_canvas_at(&c, x, y) == 0xB91C1C;
    ok(red, "a wrong prediction is red");
    dnn_canvas_free(&c);
}

static void test_large(void)
{
    enum { N = 1200 };
    static int32_t class[N * N];
    const struct dnn_view to = {N, N, 1, NULL, class};
    const struct dnn_figure sheet = {.target = &to, .classes = true, .nclasses = 2};
    struct dnn_canvas c = {0};

    for (int i = 0; i < N * N; i++)
        class[i] = i % N >= N / 2;
    if (!ok(dnn_figure_draw(&sheet, &c, NULL) == 0, "a large mask is drawn")) return;
    is_int(c.width, N / 3 + 20, "a third of its pixels");
    is_colour(&c, LEFT + N / 6 - 1, TOP, dnn_canvas_class(0), "the left class");
    is_colour(&c, LEFT + N / 6, TOP, dnn_canvas_class(1), "the right one");
    dnn_canvas_free(&c);
}

/* ---- samples ---- */

static void test_sample(void)
{
    static const char *const name[] = {"cat", "dog"};
    static const float image[] = {0, 1, 1, 0}, scores[] = {0.25F, 0.75F}, y[] = {2};
    static const float masks[] = {0.9F, 0.1F, 0.8F, 0.2F, 0.3F, 0.7F, 0.6F, 0.4F};
    static const int32_t dog[] = {1}, mask[] = {0, 1, 1, 0}, far[] = {7};
    struct dnn_figure_sample s = {
        .input_shape = {3, {2, 2, 1}},
        .target_shape = {1, {1}      },
        .label = dog,
        .output = scores,
        .count = 2,
        .classes = true,
        .nclasses = 2,
        .class_name = name
    };
    char caption[DNN_FIGURE_CAPTION];
    struct dnn_canvas c = {0};

    ok(dnn_figure_draw_sample(&s, &c, caption, NULL) == 0 && c.rgb == NULL,
       "a sample without an image is not drawn");
    s.input = image;
    ok(dnn_figure_draw_sample(&s, &c, caption, NULL) == 0 && c.rgb != NULL,
       "an image with a class is");
    is_text(caption, "target dog, predicted dog (0.75)", "... with names of classes");
    dnn_canvas_free(&c);
    s.label = far;
    dnn_figure_draw_sample(&s, &c, caption, NULL);
    is_text(caption, "target 7, predicted dog (0.75)", "a class without a name");
    dnn_canvas_free(&c);
    s.label = NULL, s.value = y, s.count = 1, s.classes = false;
    dnn_figure_draw_sample(&s, &c, caption, NULL);
    is_text(caption, "target 2, predicted 0.25", "a value");
    dnn_canvas_free(&c);
    s.target_shape = (struct dnn_shape){
        2, {4, 1}
    };
    s.label = mask, s.output = masks, s.count = 8, s.classes = true;
    dnn_figure_draw_sample(&s, &c, caption, NULL);
    is_text(caption, "75.0 % correct", "a class for each point of a line");
    dnn_canvas_free(&c);
    s.target_shape = s.input_shape;
    s.label = mask, s.output = masks, s.count = 8, s.classes = true;
    dnn_figure_draw_sample(&s, &c, caption, NULL);
    is_text(caption, "75.0 % correct", "a mask");
    is_int(c.width, 3 * SIDE + 40, "... beside its input and target");
    dnn_canvas_free(&c);
}

int main(void)
{
    test_class();
    test_view();
    test_fields();
    test_colours();
    test_large();
    test_sample();
    return done();
}
