/* crc.h - the checksum of TensorFlow's records, which TensorBoard's files are made of.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_CRC_H
#define DNN_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Local.  CRC-32C as these records store it: turned and shifted, so that the checksum
 * of data with checksums in it is none of a kind. */
uint32_t dnn_crc_record(const void *bytes, size_t n);

#endif
