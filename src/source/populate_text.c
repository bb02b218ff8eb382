/* What a population came to, for people; every program says it in the same words. */
#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "sluice/populate.h"

const char *sl_populate_end_name(sl_populate_end end)
{
    static const char *const names[SL_POPULATE_END_COUNT] = {
            [SL_POPULATE_DONE] = "done",
            [SL_POPULATE_SKIPPED] = "over budget",
            [SL_POPULATE_PRESSURE] = "memory ran short",
            [SL_POPULATE_CANCELLED] = "cancelled",
            [SL_POPULATE_FAILED] = "failed",
    };
    return end < SL_POPULATE_END_COUNT ? names[end] : "unknown";
}

/* Of what is present, what was not brought in now. */
static uint64_t cached_before(const sl_populate_result *result)
{
    return result->populated_bytes > result->charged_bytes
                   ? result->populated_bytes - result->charged_bytes
                   : 0;
}

const char *sl_populate_text(
        const sl_populate_result *result, const sl_ram_budget *ram, char *buf, size_t buf_bytes)
{
    char present[32];
    char cached[32];
    char skipped[32];
    char budget[32];
    const sl_ram_bound *decided = sl_ram_decided(ram);
    bool is_whole = result->end == SL_POPULATE_DONE || result->end == SL_POPULATE_SKIPPED;
    snprintf(buf, buf_bytes,
            "%s present (%s of it were cached before), %s skipped; budget %s, decided by %s (%s)"
            "%s%s%s%s%s%s",
            sl__byte_text(result->populated_bytes, present, sizeof present),
            sl__byte_text(cached_before(result), cached, sizeof cached),
            sl__byte_text(result->skipped_bytes, skipped, sizeof skipped),
            sl__byte_text(ram->budget_bytes, budget, sizeof budget),
            decided ? sl_ram_bound_name(decided->kind) : "memory unknown",
            decided ? decided->source : "see 'sluice doctor'",
            is_whole ? "" : "; stopped: ", is_whole ? "" : sl_populate_end_name(result->end),
            result->why[0] ? " (" : "", result->why, result->why[0] ? ")" : "",
            result->is_fallback ? "; this kernel lacks MADV_POPULATE_READ, so pages were touched"
                                : "");
    return buf;
}
