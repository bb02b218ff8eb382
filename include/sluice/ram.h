/*
 * How many bytes this process may still fill with pages of files, and where every number comes from.
 *
 * Two kinds of bounds are derived, and the smallest budget decides:
 *   host     MemAvailable (or the documented estimate) less a reserve of max(2 GiB, MemTotal/16)
 *   cgroup   each of v2 memory.max and memory.high and v1 memory.limit_in_bytes, at the group of this process
 *            and every ancestor up to the mount: limit less current use (clean file cache, which the kernel
 *            would reclaim, does not count as use), less a reserve of max(2 GiB, limit/16)
 * A file that is missing, unreadable or absurd leaves the wider bound as it is and is named in the derivation.
 *
 * Does not promise: that the memory is still there a moment later. Sample before any file is mapped, and again
 * while memory is filled.
 *
 * Threads: any; a result belongs to its caller. Cost: a dozen small files below /proc and /sys.
 */
#ifndef SLUICE_RAM_H
#define SLUICE_RAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_RAM_NO_LIMIT UINT64_MAX

typedef enum sl_ram_bound_kind {
    SL_RAM_HOST,        /* /proc/meminfo */
    SL_RAM_CGROUP_MAX,  /* v2 memory.max */
    SL_RAM_CGROUP_HIGH, /* v2 memory.high: beyond it the kernel throttles */
    SL_RAM_CGROUP_V1,   /* v1 memory.limit_in_bytes */
    SL_RAM_GIVEN,       /* the caller said so */
    SL_RAM_BOUND_KIND_COUNT
} sl_ram_bound_kind;

typedef struct sl_ram_bound {
    sl_ram_bound_kind kind;
    char *source;               /* the file that holds the limit, as the machine names it */
    uint64_t limit_bytes;       /* host: MemTotal, 0 if unknown */
    uint64_t used_bytes;        /* host: limit less available; cgroup: current use, 0 if unknown */
    uint64_t reclaimable_bytes; /* cgroup: of that, clean file cache */
    uint64_t available_bytes;   /* limit less what is used and cannot be reclaimed */
    uint64_t reserve_bytes;     /* left alone */
    uint64_t budget_bytes;      /* available less reserve, at least 0 */
} sl_ram_bound;

/* One step of the derivation: a number and its source, or a remark. */
typedef struct sl_ram_line {
    char *source; /* a file as the machine names it, or "rule" */
    char *text;   /* UTF-8, one line */
    bool has_bytes;
    uint64_t bytes;
    bool is_warning; /* something was unreadable or absurd, or a person should know */
} sl_ram_line;

/* Zeroed memory is a valid "nothing is known". */
typedef struct sl_ram_budget {
    bool is_known;    /* false: the machine does not say; budget_bytes is then 0 */
    bool is_estimate; /* the kernel has no MemAvailable, or it was corrected */
    uint64_t budget_bytes;
    uint64_t available_bytes; /* smallest over the bounds, before reserves; 0 if unknown */
    uint64_t limit_bytes;     /* smallest limit of a cgroup, SL_RAM_NO_LIMIT if there is none */
    uint64_t total_bytes;     /* MemTotal, 0 if unknown */
    size_t i_decided;         /* the bound that decided, if is_known */
    sl_ram_bound *bounds;
    size_t n_bounds;
    size_t cap_bounds;
    sl_ram_line *lines;
    size_t n_lines;
    size_t cap_lines;
} sl_ram_budget;

typedef struct sl_ram_opts {
    const char *root; /* folder that stands for the machine; NULL or "" = this machine */
    bool has_given;   /* given_bytes replaces the derived budget, which is still shown */
    uint64_t given_bytes;
} sl_ram_opts;

/*
 * Derives the budget; opts may be NULL. What cannot be read is no error: is_known says it.
 * Errors: SL_ENOMEM, *ret_budget then unchanged.
 */
SL_API int sl_ram_budget_read(const sl_ram_opts *opts, sl_ram_budget *ret_budget, sl_error *reterr);

/* Frees what a result owns and makes it empty. Accepts NULL. */
SL_API void sl_ram_budget_done(sl_ram_budget *budget);

/* The bound that decided, NULL if nothing is known. Owned by the budget. */
SL_API const sl_ram_bound *sl_ram_decided(const sl_ram_budget *budget);

/* "host", "cgroup memory.max", ... Static string. */
SL_API const char *sl_ram_bound_name(sl_ram_bound_kind kind);

#ifdef __cplusplus
}
#endif

#endif
