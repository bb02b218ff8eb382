#include "base/byte_text.h"

#include <stdio.h>

const char *sl__byte_text(uint64_t n, char *buf, size_t buf_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)n;
    size_t i = 0;
    while (v >= 1024 && i + 1 < sizeof units / sizeof units[0]) {
        v /= 1024;
        i++;
    }
    snprintf(buf, buf_bytes, i == 0 ? "%.0f %s" : "%.1f %s", v, units[i]);
    return buf;
}
