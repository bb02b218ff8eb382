/*
 * A length-counted run of bytes that somebody else owns. Not NUL-terminated; may hold any byte.
 * Its lifetime is that of the object it was taken from.
 */
#ifndef SLUICE_SPAN_H
#define SLUICE_SPAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_span {
    const char *p; /* may be NULL if n is 0 */
    size_t n;
} sl_span;

#ifdef __cplusplus
}
#endif

#endif
