/* crc.h - the checksum of TFRecord files, which TensorBoard's event files are.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_CRC_H
#define DNN_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Local.  The masked CRC-32C that TFRecord stores: rotated, plus a constant, because
 * a CRC of data that contains CRCs is weak. */
uint32_t dnn_crc_record(const void *bytes, size_t n);

#endif
