#include "engine/host_pages.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"

int s2_host_pages_init(const s2_memory_opts *opts, const sl_logger *log, s2_host_pages *ret_pages,
        sl_error *reterr)
{
    s2_host_pages pages = {.opts = *opts, .log = *log};
    const sl_ram_opts ram = {.has_given = opts->has_ram, .given_bytes = opts->ram_bytes};
    if (opts->populate != S2_POPULATE_OFF) {
        int r = sl__ram_purse_fill(&ram, &pages.purse, reterr);
        if (r < 0) {
            return r;
        }
    }
    *ret_pages = pages;
    return SL_OK;
}

void s2_host_pages_done(s2_host_pages *pages)
{
    sl__ram_purse_done(&pages->purse);
}

typedef struct filter {
    unsigned mask;
    bool has_lazy;
    bool is_codec_file;
} filter;

static bool wants(void *ud, const sl_tensor *tensor)
{
    const filter *f = ud;
    bool is_chosen = (f->mask & (1u << s2_unit_of(tensor->info->name, f->is_codec_file))) != 0;
    return is_chosen && (f->has_lazy || !s2_unit_is_gathered(tensor->info));
}

/* The units that are used on the host and were not asked for yet. */
static unsigned pick_units(const s2_host_pages *pages, const s2_host_units *units)
{
    unsigned mask = units->mask;
    if (pages->opts.populate == S2_POPULATE_ALL) {
        mask |= S2_HOST_UNITS_VOICE;
    }
    mask &= ~pages->done_units;
    for (unsigned id = 0; units->is_on_host && id < S2_UNIT_NONE; id++) {
        if ((mask & (1u << id)) != 0 && !units->is_on_host(units->ud, (s2_unit_id)id)) {
            mask &= ~(1u << id);
        }
    }
    return mask;
}

static int on_progress(void *ud, uint64_t done_bytes, uint64_t total_bytes)
{
    const s2_host_pages *pages = ud;
    const sl_progress *progress = &pages->opts.progress;
    if (pages->should_stop && pages->should_stop(pages->stop_ud)) {
        return 1;
    }
    return progress->fn ? progress->fn(progress->ud, done_bytes, total_bytes) : 0;
}

static int populate(
        s2_host_pages *pages, const sl_populate_file *files, size_t n_files, sl_error *reterr)
{
    char text[512];
    sl_error err = {0};
    sl_populate_result res;
    sl_populate_opts opts = {
            .budget_bytes = sl__ram_purse_now(&pages->purse),
            .recheck = &pages->purse.opts,
            .progress = {on_progress, pages},
    };
    int r = sl_populate(files, n_files, &opts, &res, &err);
    sl__ram_purse_take(&pages->purse, res.charged_bytes);
    sl_populate_text(&res, &pages->purse.first, text, sizeof text);
    sl__log(&pages->log, res.end == SL_POPULATE_PRESSURE ? SL_LOG_WARN : SL_LOG_INFO,
            "populate: %s", text);
    if (r == SL_ENOMEM && res.wanted_bytes > 0) {
        /* Not for our lists but for pages; computing needs far fewer of them at a time. */
        sl__log(&pages->log, SL_LOG_WARN, "populate: %s; going on without", err.msg);
        return SL_OK;
    }
    if (r == SL_ECANCELLED) {
        return sl__fail(reterr, SL_ECANCELLED, "stopped while weights were read");
    }
    if (r < 0 && reterr) {
        *reterr = err;
    }
    return r;
}

/* True after saying why nothing is populated. */
static bool is_off(const s2_host_pages *pages)
{
    const char *variable = sl_populate_switched_off();
    if (pages->opts.populate == S2_POPULATE_OFF) {
        sl__log(&pages->log, SL_LOG_INFO, "populate: off, as asked for");
        return true;
    }
    if (variable) {
        sl__log(&pages->log, SL_LOG_INFO, "populate: off, as %s says", variable);
    }
    return variable != NULL;
}

int s2_host_pages_populate(
        s2_host_pages *pages, const sl_model *model, const s2_host_units *units, sl_error *reterr)
{
    const s2_memory_opts *opts = &pages->opts;
    uint64_t lazy_over = opts->lazy_over_bytes ? opts->lazy_over_bytes : SL_LAZY_OVER_BYTES;
    size_t n_files = sl_model_n_files(model);
    filter f = {.mask = pick_units(pages, units), .is_codec_file = s2_unit_is_codec_file(model)};
    int r = SL_OK;

    if (!f.mask || is_off(pages)) {
        pages->done_units |= f.mask;
        return SL_OK;
    }
    f.has_lazy = opts->populate == S2_POPULATE_ALL;
    sl_ranges *ranges = sl__alloc(n_files, sizeof *ranges);
    sl_populate_file *files = sl__alloc(n_files, sizeof *files);
    if (!ranges || !files) {
        r = sl__fail_nomem(reterr, n_files * sizeof *files, "the files to populate");
        goto out;
    }
    for (uint32_t i = 0; i < n_files && r >= 0; i++) {
        files[i] = (sl_populate_file){.map = sl_model_map(model, i), .ranges = &ranges[i]};
        r = sl_populate_ranges(
                model, i, f.has_lazy ? UINT64_MAX : lazy_over, wants, &f, &ranges[i], reterr);
    }
    if (r >= 0) {
        r = populate(pages, files, n_files, reterr);
    }
    if (r >= 0) {
        pages->done_units |= f.mask;
    }
out:
    for (size_t i = 0; ranges && i < n_files; i++) {
        sl_ranges_done(&ranges[i]);
    }
    sl__free(ranges);
    sl__free(files);
    return r;
}
