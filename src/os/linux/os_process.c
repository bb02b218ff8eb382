#define _GNU_SOURCE

#include "os/os_process.h"

#include <unistd.h>

size_t sl__page_bytes(void)
{
    long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}
