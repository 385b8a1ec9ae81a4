/* wire.c - the format of event files: protocol buffers in TFRecord frames.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/crc.h"

#include <stdint.h>
#include <string.h>

/* Wire types of protocol buffers. */
enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 };

static void add_varint(struct dnn_buf *out, uint64_t value)
{
    unsigned char byte[10];
    size_t n = 0;

    do {
        byte[n] = (unsigned char)(value & 0x7f);
        value >>= 7;
        if (value != 0) byte[n] |= 0x80;
        n++;
    } while (value != 0);
    dnn_buf_bytes(out, byte, n);
}

static void add_key(struct dnn_buf *out, int field, int type)
{
    add_varint(out, (uint64_t)field << 3 | (uint64_t)type);
}

/* Little-endian, on any machine. */
static void add_fixed(struct dnn_buf *out, uint64_t bits, size_t n)
{
    unsigned char byte[8];

    for (size_t i = 0; i < n; i++)
        byte[i] = (unsigned char)(bits >> (8 * i));
    dnn_buf_bytes(out, byte, n);
}

static void add_double(struct dnn_buf *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    add_fixed(out, bits, sizeof bits);
}

void dnn_wire_int(struct dnn_buf *out, int field, int64_t value)
{
    add_key(out, field, VARINT);
    add_varint(out, (uint64_t)value);
}

void dnn_wire_float(struct dnn_buf *out, int field, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    add_key(out, field, FOUR_BYTES);
    add_fixed(out, bits, sizeof bits);
}

void dnn_wire_double(struct dnn_buf *out, int field, double value)
{
    add_key(out, field, EIGHT_BYTES);
    add_double(out, value);
}

void dnn_wire_bytes(struct dnn_buf *out, int field, const void *bytes, size_t len)
{
    add_key(out, field, LENGTH);
    add_varint(out, len);
    dnn_buf_bytes(out, bytes, len);
}

void dnn_wire_doubles(struct dnn_buf *out, int field, const double *value, size_t n)
{
    add_key(out, field, LENGTH);
    add_varint(out, n * sizeof *value);
    for (size_t i = 0; i < n; i++)
        add_double(out, value[i]);
}

/* ---- frames ---- */
void dnn_wire_frame(struct dnn_buf *out, const void *bytes, size_t len)
{
    size_t at = out->len;

    add_fixed(out, len, sizeof(uint64_t));
    add_fixed(out, dnn_crc_record((unsigned char *)out->text + at, sizeof(uint64_t)),
              4);
    dnn_buf_bytes(out, bytes, len);
    add_fixed(out, dnn_crc_record(bytes, len), 4);
}
