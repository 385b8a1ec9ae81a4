/* crc.c - CRC-32C, with the SSE4.2 instruction if the CPU has it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/crc.h"

#include <pthread.h>
#include <string.h>
#if defined __x86_64__
#include <nmmintrin.h>
#endif

enum { BYTE_VALUES = 256 };

static const uint32_t polynomial = 0x82f63b78u; /* Castagnoli's, bits reversed */

static uint32_t table[BYTE_VALUES];
static pthread_once_t table_made = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t i = 0; i < BYTE_VALUES; i++) {
        uint32_t rest = i;

        for (int bit = 0; bit < 8; bit++)
            rest = (rest & 1) != 0 ? rest >> 1 ^ polynomial : rest >> 1;
        table[i] = rest;
    }
}

static uint32_t crc_by_table(uint32_t sum, const unsigned char *at, size_t n)
{
    pthread_once(&table_made, make_table);
    for (; n > 0; n--)
        sum = sum >> 8 ^ table[(sum ^ *at++) & 0xff];
    return sum;
}

#if defined __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
crc_by_instruction(uint32_t sum, const unsigned char *at, size_t n)
{
    uint64_t wide = sum, next;

    for (; n >= sizeof next; n -= sizeof next, at += sizeof next) {
        memcpy(&next, at, sizeof next);
        wide = _mm_crc32_u64(wide, next);
    }
    for (sum = (uint32_t)wide; n > 0; n--)
        sum = _mm_crc32_u8(sum, *at++);
    return sum;
}
#endif

uint32_t dnn_crc_record(const void *bytes, size_t n)
{
    uint32_t sum = 0xffffffffu;

#if defined __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        sum = crc_by_instruction(sum, bytes, n);
    else
#endif
        sum = crc_by_table(sum, bytes, n);
    sum = ~sum;
    return (sum >> 15 | sum << 17) + 0xa282ead8u;
}
