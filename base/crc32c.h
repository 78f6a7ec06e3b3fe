/* CRC-32C (Castagnoli): what frames of TFRecord files carry. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of n bytes. */
uint32_t crc32c(const void *bytes, size_t n);

#endif
