/* train_hosts.c - a short list of the hosts of a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "train/log_impl.h"

static void is_list(int n, const char *const *name, const int *ranks, const char *want,
                    const char *what)
{
    struct dnn_buf out = {0};

    dnn_train_list_hosts(n, name, ranks, &out);
    is_text(out.text, want, what);
    dnn_buf_free(&out);
}

enum { MANY = 400 };

static void test_many(void)
{
    static char text[MANY][16];
    const char *name[MANY];
    int ranks[MANY];

    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "node%04d", i + 98);
        name[i] = text[i];
        ranks[i] = 4;
    }
    is_list(MANY, name, ranks, "node[0098-0497] (4 ranks each)",
            "hundreds with consecutive numbers");
    ranks[MANY - 1] = 1;
    is_list(MANY, name, ranks, "node[0098-0496] (4 ranks each), node0497 (1 rank)",
            "the last has fewer");
    for (int i = 0; i < MANY; i++)
        ranks[i] = 1 + i % 2;
    is_list(
        MANY, name, ranks,
        "node0098 (1 rank), node0099 (2 ranks), node0100 (1 rank), node0101 (2 "
        "ranks), node0102 (1 rank), node0103 (2 ranks), node0104 (1 rank), node0105 "
        "(2 ranks), node0106 (1 rank), node0107 (2 ranks), node0108 (1 rank), "
        "node0109 (2 ranks) and 388 more nodes",
        "a long list is shortened");
}

int main(void)
{
    const char *const few[] = {"a9", "a10", "a11", "b", "b", "c7", "c9"};
    const int ranks[] = {2, 2, 2, 1, 1, 3, 3};

    is_list(1, few, ranks, "a9 (2 ranks)", "one");
    is_list(3, few, ranks, "a9 (2 ranks), a[10-11] (2 ranks each)",
            "another number of digits is another name");
    is_list(2, few + 3, ranks + 3, "b (1 rank), b (1 rank)", "without numbers");
    is_list(2, few + 5, ranks + 5, "c7 (3 ranks), c9 (3 ranks)", "with a gap");
    test_many();
    return done();
}
