/* Monotonic time. */
#ifndef SL_OS_CLOCK_H
#define SL_OS_CLOCK_H

#include <stdint.h>

/* Nanoseconds since an arbitrary start; never goes back. Any thread. */
uint64_t sl__now_ns(void);

#endif
