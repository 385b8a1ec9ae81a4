/* base_text.c - growing strings, similar words, numbers, and small allocations.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/choice.h"
#include "base/mem.h"
#include "base/text.h"
#include "tap.h"

#include <stdint.h>

static void buffers(void)
{
    struct dnn_buf b = {0};

    for (int i = 0; i < 1000; i++)
        dnn_buf_add(&b, "%d,", i % 10);
    is_int((long long)b.len, 2000, "a buffer grows");
    is_int((long long)strlen(b.text), 2000, "and stays terminated");
    dnn_buf_bytes(&b, "a\0b", 3);
    is_int((long long)b.len, 2003, "bytes may be zero");
    dnn_buf_free(&b);
    ok(b.text == NULL && b.len == 0, "freed is empty");
}

static void characters(void)
{
    static const struct {
        const char *text;
        size_t bytes;
        uint32_t code;
    } cases[] = {
        {"ab",               1, 'a'     },
        {"\xc3\xa9",         2, 0xe9    },
        {"\xe2\x82\xacx",    3, 0x20ac  },
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
        {"\xe9sum",          0, 0       },
        {"\xc3",             0, 0       },
        {"\xc0\xaf",         0, 0       },
        {"\xe0\x80\xaf",     0, 0       },
        {"\xed\xa0\x80",     0, 0       },
        {"\xf4\x90\x80\x80", 0, 0       },
        {"\xf8\x88\x80\x80", 0, 0       },
    };
    char text[] = "a\033[2J\n\x7f\xc2\x9b\xc3\xa9\xe9";

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t code = 0;

        ok(dnn_text_utf8(cases[i].text, &code) == cases[i].bytes &&
               code == cases[i].code,
           "character %zu", i);
    }
    ok(dnn_text_is_utf8("") && dnn_text_is_utf8("\xc3\xa9x") &&
           !dnn_text_is_utf8("x\xe9"),
       "a text is UTF-8");
    is_text(dnn_text_clean(text), "a?[2J????\xc3\xa9\xe9",
            "without control characters");
}

static void nearest(void)
{
    static const char *const words[] = {"learning_rate", "momentum", "type",
                                        "lr_scheduler",  "eps",      NULL};
    static const struct {
        const char *word, *near;
    } cases[] = {
        {"learning_rat",  "learning_rate"},
        {"Learning_Rate", "learning_rate"},
        {"larning_rate",  "learning_rate"},
        {"momentmu",      "momentum"     },
        {"tpye",          "type"         },
        {"typ",           "type"         },
        {"epsilon",       NULL           },
        {"x",             NULL           },
        {"",              NULL           },
        {"batch_size",    NULL           },
    };
    char hint[64], big[200];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        is_text(dnn_text_nearest(cases[i].word, words), cases[i].near, cases[i].word);
    is_text(dnn_text_hint(hint, sizeof hint, "tpye", words), "; did you mean \"type\"?",
            "hint in words");
    is_text(dnn_text_hint(hint, sizeof hint, "zzz", words), "", "no hint is no text");
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    is_text(dnn_text_nearest(big, words), NULL, "a very long word is near nothing");
}

static void numbers(void)
{
    long long i = -1;
    double r = -1;
    unsigned long long s = 1;
    char out[32];

    ok(dnn_text_ends("a.dnn", ".dnn") && dnn_text_ends("a", "") &&
           !dnn_text_ends("a.dnn2", ".dnn") && !dnn_text_ends("dnn", ".dnn"),
       "endings");
    ok(dnn_text_int("42", &i) && i == 42, "42");
    ok(dnn_text_int("-7", &i) && i == -7, "-7");
    ok(!dnn_text_int("4x", &i) && !dnn_text_int("", &i) && !dnn_text_int(" 4", &i) &&
           !dnn_text_int("99999999999999999999", &i) && !dnn_text_int("1.5", &i),
       "not a whole number");
    ok(dnn_text_real("1e-3", &r) && r == 1e-3, "1e-3");
    ok(!dnn_text_real("nan", &r) && !dnn_text_real("inf", &r) &&
           !dnn_text_real("1,5", &r) && !dnn_text_real("", &r),
       "not a number");
    ok(dnn_text_size("512M", &s) && s == 512ULL << 20, "512M");
    ok(dnn_text_size("1.5GiB", &s) && s == 3ULL << 29, "1.5GiB");
    ok(dnn_text_size("80", &s) && s == 80, "80 bytes");
    ok(!dnn_text_size("x", &s) && !dnn_text_size("-1K", &s) &&
           !dnn_text_size("5 apples", &s),
       "not a size");
    is_text(dnn_text_number(out, 3), "3", "a whole number");
    is_text(dnn_text_number(out, -0.0), "0", "no negative zero");
    is_text(dnn_text_number(out, 0.1), "0.1", "few digits");
    is_text(dnn_text_number(out, 1 / 3.), "0.3333333333333333", "as many as needed");
    char count[DNN_TEXT_COUNT];

    is_text(dnn_text_count(count, 25636712), "25,636,712", "a count");
    is_text(dnn_text_count(count, 999), "999", "a small count");
    is_text(dnn_text_bytes(out, sizeof out, 0), "0 B", "nothing");
    is_text(dnn_text_bytes(out, sizeof out, 1023), "1023 B", "bytes");
    is_text(dnn_text_bytes(out, sizeof out, 3.1 * (1 << 30)), "3.1 GiB", "GiB");
    is_text(dnn_text_bytes(out, sizeof out, 1048575), "1.0 MiB", "never 1024.0 KiB");
    is_text(dnn_text_seconds(out, sizeof out, 0.0123), "12 ms", "ms");
    is_text(dnn_text_seconds(out, sizeof out, 12.34), "12.3 s", "s");
    is_text(dnn_text_seconds(out, sizeof out, 125), "2 m 05 s", "minutes");
    is_text(dnn_text_seconds(out, sizeof out, 59.99), "1 m 00 s", "never 60.0 s");
    is_text(dnn_text_seconds(out, sizeof out, 7325), "2 h 02 m", "hours");
}

static void commands(void)
{
    char *argv[] = {"dnn-train", "--set", "dir=it's", "", "a b", "x=1,%.json", NULL};
    char *text = dnn_text_command(6, argv);

    is_text(text, "dnn-train --set 'dir=it'\\''s' '' 'a b' x=1,%.json",
            "a command line, quoted for a shell");
    dnn_free(text);
}

static void choices(void)
{
    static const struct dnn_choice kinds[] = {
        {"auto",    0},
        {"inherit", 1},
        {"off",     2},
        {NULL,      0}
    };
    struct dnn_err err = {0};
    int value = -1;

    ok(dnn_choice_find(kinds, "Inherit", &value, &err) == 0 && value == 1,
       "case is ignored");
    is_int(dnn_choice_find(kinds, "inherti", &value, &err), DNN_EUSAGE,
           "an unknown word");
    is_text(
        err.text,
        "must be one of auto, inherit, off, not \"inherti\"; did you mean \"inherit\"?",
        "and its message");
    is_int(value, 1, "nothing is written on failure");
    is_text(dnn_choice_name(kinds, 2), "off", "the name of a value");
    is_text(dnn_choice_name(kinds, 9), NULL, "no name");
}

static void memory(void)
{
    struct dnn_arena *arena = dnn_arena_make();
    size_t cap = 0;
    int *list = NULL;
    bool zero = true, aligned = true;

    for (size_t i = 0; i < 1000; i++) {
        list = dnn_grow(list, &cap, i + 1, sizeof *list);
        if (list[i] != 0) zero = false;
        list[i] = (int)i;
    }
    ok(zero && list[999] == 999, "arrays grow with zeroes");
    dnn_free(list);
    for (int i = 1; i < 300; i++) {
        char *mem = dnn_arena_alloc(arena, (size_t)i * 7);

        if ((uintptr_t)mem % sizeof(double) != 0) aligned = false;
        for (int k = 0; k < i * 7; k++)
            if (mem[k] != 0) zero = false;
        memset(mem, 0xff, (size_t)i * 7);
    }
    ok(aligned && zero, "arena memory is aligned, zero and separate");
    ok(dnn_arena_alloc(arena, 1000000) != NULL, "a large piece");
    is_text(dnn_arena_strdup(arena, "text"), "text", "a text in an arena");
    dnn_arena_free(arena);
    dnn_arena_free(NULL);
    char *text = dnn_format("%s-%d", "n", 12);
    is_text(text, "n-12", "formatted memory");
    dnn_free(text);
}

static void csv(void)
{
    static const char *const field[] = {"plain text", "", "a,b", "say \"x\"",
                                        "two\nlines"};
    struct dnn_buf buf = {0};

    for (int i = 0; i < 5; i++) {
        if (i > 0) dnn_buf_add(&buf, ",");
        dnn_buf_csv(&buf, field[i]);
    }
    is_text(buf.text, "plain text,,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"",
            "fields of a CSV file");
    dnn_buf_free(&buf);
}

int main(void)
{
    csv();
    buffers();
    characters();
    nearest();
    numbers();
    commands();
    choices();
    memory();
    return done();
}
