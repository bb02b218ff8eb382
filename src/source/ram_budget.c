/*
 * Puts the bounds together. The host's bound comes first but is worked out after those of the control groups,
 * since lxcfs writes a MemAvailable that only they can correct.
 */
#include "sluice/ram.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "source/meminfo.h"
#include "source/ram_derive.h"

#define MEMINFO_FILE  "/proc/meminfo"
#define ARCSTATS_FILE "/proc/spl/kstat/zfs/arcstats"

const char *sl_ram_bound_name(sl_ram_bound_kind kind)
{
    static const char *const names[SL_RAM_BOUND_KIND_COUNT] = {
            [SL_RAM_HOST] = "host MemAvailable",
            [SL_RAM_CGROUP_MAX] = "cgroup memory.max",
            [SL_RAM_CGROUP_HIGH] = "cgroup memory.high",
            [SL_RAM_CGROUP_V1] = "cgroup memory.limit_in_bytes",
            [SL_RAM_GIVEN] = "given",
    };
    return kind < SL_RAM_BOUND_KIND_COUNT ? names[kind] : "unknown";
}

const sl_ram_bound *sl_ram_decided(const sl_ram_budget *budget)
{
    return budget->is_known ? &budget->bounds[budget->i_decided] : NULL;
}

void sl_ram_budget_done(sl_ram_budget *budget)
{
    if (!budget) {
        return;
    }
    for (size_t i = 0; i < budget->n_bounds; i++) {
        sl__free(budget->bounds[i].source);
    }
    for (size_t i = 0; i < budget->n_lines; i++) {
        sl__free(budget->lines[i].source);
        sl__free(budget->lines[i].text);
    }
    sl__free(budget->bounds);
    sl__free(budget->lines);
    memset(budget, 0, sizeof *budget);
}

/* Reads /proc/meminfo; a field that contradicts MemTotal is one that is not there. */
static void read_meminfo(sl__derive *d, sl__meminfo *info)
{
    sl_span text;
    memset(info, 0, sizeof *info);
    if (!sl__derive_read(d, MEMINFO_FILE, &text)) {
        return;
    }
    sl__meminfo_parse(text, info);
    sl__derive_free(text);
    uint64_t total = info->has[SL_MEM_TOTAL] ? info->bytes[SL_MEM_TOTAL] : 0;
    for (int i = 0; i < SL_MEM_FIELD_COUNT; i++) {
        if (total > 0 && info->has[i] && info->bytes[i] > total) {
            sl__derive_note(d, true, MEMINFO_FILE, "%s is more than MemTotal, so it is not used",
                    sl__meminfo_name((sl__meminfo_field)i));
            info->has[i] = false;
        }
    }
    info->has[SL_MEM_TOTAL] = total > 0;
    d->out->total_bytes = total;
}

/* What the host says is available; false if it says nothing. */
static bool find_available(sl__derive *d, const sl__meminfo *info, uint64_t *ret)
{
    if (info->has[SL_MEM_AVAILABLE]) {
        *ret = info->bytes[SL_MEM_AVAILABLE];
        sl__derive_value(d, MEMINFO_FILE, "MemAvailable", *ret);
        return true;
    }
    uint64_t total = d->out->total_bytes;
    if (total == 0 || !sl__meminfo_estimate(info, ret)) {
        return false;
    }
    *ret = *ret < total ? *ret : total;
    d->out->is_estimate = true;
    sl__derive_value(d, MEMINFO_FILE,
            "no MemAvailable; estimate: MemFree + Buffers + Cached + SReclaimable - Shmem", *ret);
    return true;
}

/*
 * lxcfs without the cache: MemAvailable is MemFree to the byte while Cached is large. The cache counts only as
 * far as the control group confirms it.
 */
static void correct_lxcfs(
        sl__derive *d, const sl__meminfo *info, uint64_t own_cache, uint64_t *available)
{
    bool is_suspect = info->has[SL_MEM_AVAILABLE] && info->has[SL_MEM_FREE] &&
                      info->has[SL_MEM_CACHED] &&
                      info->bytes[SL_MEM_AVAILABLE] == info->bytes[SL_MEM_FREE] &&
                      info->bytes[SL_MEM_CACHED] > d->out->total_bytes / 16;
    if (!is_suspect) {
        return;
    }
    uint64_t cached = info->bytes[SL_MEM_CACHED];
    uint64_t confirmed = own_cache < cached ? own_cache : cached;
    if (confirmed == 0) {
        sl__derive_note(d, true, MEMINFO_FILE,
                "MemAvailable equals MemFree although there is cache, as old lxcfs writes it; no "
                "control "
                "group confirms the cache, so the budget is small: give --ram BYTES if you know "
                "better");
        return;
    }
    *available += confirmed;
    if (d->out->total_bytes > 0 && *available > d->out->total_bytes) {
        *available = d->out->total_bytes;
    }
    d->out->is_estimate = true;
    sl__derive_value(d, MEMINFO_FILE,
            "MemAvailable equals MemFree (lxcfs); corrected by the inactive file cache of the "
            "control group",
            *available);
}

/* The ARC of ZFS is not in MemAvailable, though most of it would be given back. */
static void note_zfs(sl__derive *d)
{
    uint64_t size = 0;
    uint64_t least = 0;
    sl_span text;
    if (!sl__derive_read(d, ARCSTATS_FILE, &text)) {
        return;
    }
    bool is_known = sl__stat_find(text, "size", 1, &size) &&
                    sl__stat_find(text, "c_min", 1, &least) && size > least;
    sl__derive_free(text);
    if (is_known) {
        sl__derive_value(
                d, ARCSTATS_FILE, "size of the ZFS ARC, which MemAvailable leaves out", size);
        sl__derive_value(d, ARCSTATS_FILE,
                "of it, size - c_min could be given back; not counted, give --ram BYTES to use it",
                size - least);
    }
}

static void add_host(sl__derive *d, const sl__meminfo *info, uint64_t own_cache)
{
    uint64_t available = 0;
    if (d->out->total_bytes > 0) {
        sl__derive_value(d, MEMINFO_FILE, "MemTotal", d->out->total_bytes);
    }
    if (!find_available(d, info, &available)) {
        sl__derive_note(d, true, MEMINFO_FILE,
                "memory unknown: neither MemAvailable nor what to estimate it from; nothing is "
                "populated "
                "unless you give --ram BYTES");
        return;
    }
    correct_lxcfs(d, info, own_cache, &available);
    /* Without MemTotal there is at least what is available. */
    uint64_t limit = d->out->total_bytes;
    sl_ram_bound host = {.kind = SL_RAM_HOST, .limit_bytes = limit > 0 ? limit : available};
    host.used_bytes = host.limit_bytes - available;
    d->out->is_known = true;
    sl__derive_bound(d, &host, MEMINFO_FILE);
}

static bool is_tighter(const sl_ram_bound *a, const sl_ram_bound *b)
{
    return a->budget_bytes < b->budget_bytes ||
           (a->budget_bytes == b->budget_bytes && a->available_bytes < b->available_bytes);
}

/* The smallest budget wins; the smallest limit and availability are kept for those who show them. */
static void decide(sl_ram_budget *b)
{
    b->limit_bytes = SL_RAM_NO_LIMIT;
    b->available_bytes = b->n_bounds > 0 && b->is_known ? UINT64_MAX : 0;
    for (size_t i = 0; i < b->n_bounds; i++) {
        const sl_ram_bound *bound = &b->bounds[i];
        if (is_tighter(bound, &b->bounds[b->i_decided])) {
            b->i_decided = i;
        }
        if (bound->available_bytes < b->available_bytes) {
            b->available_bytes = bound->available_bytes;
        }
        if (bound->kind != SL_RAM_HOST && bound->limit_bytes < b->limit_bytes) {
            b->limit_bytes = bound->limit_bytes;
        }
    }
    b->budget_bytes = b->is_known ? b->bounds[b->i_decided].budget_bytes : 0;
}

static void replace_by_given(sl__derive *d, uint64_t given_bytes)
{
    sl_ram_budget *b = d->out;
    sl_ram_bound bound = {.kind = SL_RAM_GIVEN, .limit_bytes = given_bytes};
    sl__derive_bound(d, &bound, "--ram");
    if (d->is_dead) {
        return;
    }
    sl_ram_bound *made = &b->bounds[b->n_bounds - 1];
    made->reserve_bytes = 0;
    made->budget_bytes = given_bytes;
    b->is_known = true;
    b->i_decided = b->n_bounds - 1;
    b->budget_bytes = given_bytes;
}

int sl_ram_budget_read(const sl_ram_opts *opts, sl_ram_budget *ret_budget, sl_error *reterr)
{
    sl_ram_budget made = {0};
    sl__meminfo info;
    sl__derive d = {.root = opts && opts->root ? opts->root : "", .out = &made};
    read_meminfo(&d, &info);
    uint64_t own_cache = sl__derive_cgroups(&d, made.total_bytes);
    add_host(&d, &info, own_cache);
    note_zfs(&d);
    if (!d.is_dead) {
        decide(&made);
    }
    if (!d.is_dead && opts && opts->has_given) {
        replace_by_given(&d, opts->given_bytes);
    }
    if (d.is_dead) {
        sl_ram_budget_done(&made);
        return sl__fail_nomem(reterr, sizeof made, "the RAM budget");
    }
    *ret_budget = made;
    return 0;
}
