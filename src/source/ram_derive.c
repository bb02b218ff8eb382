#include "source/ram_derive.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_file.h"

#define MAX_FILE_BYTES (16u << 20) /* mountinfo of a machine with tens of thousands of mounts */
#define TEXT_BYTES     400
#define MIN_RESERVE    (UINT64_C(2) << 30)
#define RESERVE_PART   16

bool sl__derive_read(sl__derive *d, const char *path, sl_span *ret_text)
{
    char *text = NULL;
    size_t n = 0;
    sl_error err = {0};
    size_t n_path = strlen(d->root) + strlen(path) + 1;
    char *full = d->is_dead ? NULL : sl__alloc(n_path, 1);
    if (!full) {
        d->is_dead = true;
        return false;
    }
    snprintf(full, n_path, "%s%s", d->root, path);
    int r = sl__read_file(full, "file", MAX_FILE_BYTES, &text, &n, &err);
    sl__free(full);
    if (r == SL_ENOMEM) {
        d->is_dead = true;
    } else if (r < 0 && r != SL_ENOENT) {
        sl__derive_note(d, true, path, "unreadable (%s), so it bounds nothing", sl_err_text(r));
    }
    if (r >= 0) {
        *ret_text = (sl_span){text, n};
    }
    return r >= 0;
}

void sl__derive_free(sl_span text)
{
    /* The text was allocated as such; a span only borrows. */
    sl__free((void *)(uintptr_t)text.p);
}

static void add_line(sl__derive *d, const char *source, const char *text, sl_ram_line line)
{
    sl_ram_budget *b = d->out;
    char quoted[TEXT_BYTES];
    if (d->is_dead || !sl__grow((void **)&b->lines, &b->cap_lines, b->n_lines + 1, sizeof line)) {
        d->is_dead = true;
        return;
    }
    sl__quote(quoted, sizeof quoted, source, strlen(source));
    line.source = sl__strndup(quoted, strlen(quoted));
    line.text = sl__strndup(text, strlen(text));
    d->is_dead = !line.source || !line.text;
    b->lines[b->n_lines] = line;
    b->n_lines++;
}

void sl__derive_value(sl__derive *d, const char *source, const char *text, uint64_t bytes)
{
    add_line(d, source, text, (sl_ram_line){.has_bytes = true, .bytes = bytes});
}

void sl__derive_note(sl__derive *d, bool is_warning, const char *source, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    add_line(d, source, text, (sl_ram_line){.is_warning = is_warning});
}

void sl__derive_bound(sl__derive *d, const sl_ram_bound *bound, const char *source)
{
    sl_ram_budget *b = d->out;
    char quoted[TEXT_BYTES];
    sl_ram_bound made = *bound;
    if (d->is_dead ||
            !sl__grow((void **)&b->bounds, &b->cap_bounds, b->n_bounds + 1, sizeof made)) {
        d->is_dead = true;
        return;
    }
    uint64_t stuck = made.used_bytes - made.reclaimable_bytes;
    uint64_t part = made.limit_bytes / RESERVE_PART;
    made.available_bytes = made.limit_bytes > stuck ? made.limit_bytes - stuck : 0;
    made.reserve_bytes = part > MIN_RESERVE ? part : MIN_RESERVE;
    made.budget_bytes = made.available_bytes > made.reserve_bytes
                                ? made.available_bytes - made.reserve_bytes
                                : 0;
    sl__quote(quoted, sizeof quoted, source, strlen(source));
    made.source = sl__strndup(quoted, strlen(quoted));
    d->is_dead = !made.source;
    b->bounds[b->n_bounds] = made;
    b->n_bounds++;
    if (made.kind == SL_RAM_HOST) {
        sl__derive_value(
                d, "rule", "reserve: the larger of 2 GiB and MemTotal/16", made.reserve_bytes);
    } else {
        sl__derive_value(d, "rule",
                "available: limit less use, clean file cache not counted as use",
                made.available_bytes);
        sl__derive_value(
                d, "rule", "reserve: the larger of 2 GiB and limit/16", made.reserve_bytes);
    }
    sl__derive_value(d, "rule", "budget of this bound", made.budget_bytes);
}
