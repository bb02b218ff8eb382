#include "devices_report.h"

#include <string.h>

#include "base/byte_text.h"
#include "base/json_writer.h"
#include "base/status.h"

static const char *size_or(uint64_t n, const char *unknown, char *buf, size_t buf_bytes)
{
    return n > 0 ? sl__byte_text(n, buf, buf_bytes) : unknown;
}

/* What can be said of its memory in a few words. */
static void print_traits(const sl_device_info *info, FILE *out)
{
    const struct {
        bool has;
        const char *text;
    } traits[] = {
            {info->can_wrap, "weights in place"},
            {info->is_unified, "shares RAM"},
            {info->is_async, "copies while it computes"},
            {info->has_pinned, "pinned memory"},
            {info->can_register, "may register mappings"},
    };
    const char *separator = "";
    for (size_t i = 0; i < sizeof traits / sizeof traits[0]; i++) {
        if (traits[i].has) {
            fprintf(out, "%s%s", separator, traits[i].text);
            separator = ", ";
        }
    }
    fprintf(out, "%s\n", *separator ? "" : "-");
}

static void print_device(const sl_device_info *info, FILE *out)
{
    char name[72];
    char text[160];
    char total[32];
    char free_bytes[32];
    char largest[32];
    sl__quote(name, sizeof name, info->name, strnlen(info->name, sizeof info->name));
    sl__quote(text, sizeof text, info->description,
            strnlen(info->description, sizeof info->description));
    /* Free bytes count only where the total is known: 0 free is then a fact. */
    const char *free_text = info->total_bytes > 0
                                    ? sl__byte_text(info->free_bytes, free_bytes, sizeof free_bytes)
                                    : "unknown";
    fprintf(out, "  %-12s %-11s %10s %10s %10s  ", name, sl_device_kind_name(info->kind),
            size_or(info->total_bytes, "unknown", total, sizeof total), free_text,
            size_or(info->max_alloc_bytes, "no limit", largest, sizeof largest));
    print_traits(info, out);
    if (*text) {
        fprintf(out, "  %-12s %s\n", "", text);
    }
}

static const sl_device_info *find(const sl_device_info *infos, size_t n, const char *name)
{
    for (size_t i = 0; name && i < n; i++) {
        if (strcmp(infos[i].name, name) == 0) {
            return &infos[i];
        }
    }
    return NULL;
}

static void print_choice(const sl_device_info *best, FILE *out)
{
    char name[72];
    sl__quote(name, sizeof name, best->name, strnlen(best->name, sizeof best->name));
    bool is_host = best->kind == SL_DEVICE_HOST;
    fprintf(out, "  --device auto is %s, %s\n", name,
            is_host ? "since there is no GPU" : "the GPU with the most free memory");
    if (best->is_unified && !is_host) {
        fprintf(out, "  %s's memory is the computer's: it is not there twice\n", name);
    }
}

void devices_print_text(const sl_device_info *infos, size_t n, const char *best, FILE *out)
{
    const sl_device_info *chosen = find(infos, n, best);
    fprintf(out, "\nDevices\n  %-12s %-11s %10s %10s %10s  %s\n", "name", "kind", "memory", "free",
            "largest", "can");
    for (size_t i = 0; i < n; i++) {
        print_device(&infos[i], out);
    }
    if (n == 0) {
        fprintf(out, "  none\n");
    }
    if (chosen) {
        print_choice(chosen, out);
    }
}

void devices_put_json(const sl_device_info *infos, size_t n, const char *best, sl__json *j)
{
    const sl_device_info *chosen = find(infos, n, best);
    sl__json_array(j);
    for (size_t i = 0; i < n; i++) {
        const sl_device_info *info = &infos[i];
        sl__json_object(j);
        sl__json_put_str(j, "name", info->name, strnlen(info->name, sizeof info->name));
        sl__json_put_str(j, "description", info->description,
                strnlen(info->description, sizeof info->description));
        sl__json_put_cstr(j, "kind", sl_device_kind_name(info->kind));
        sl__json_put_u64_or_null(j, "total_bytes", info->total_bytes > 0, info->total_bytes);
        sl__json_put_u64_or_null(j, "free_bytes", info->total_bytes > 0, info->free_bytes);
        sl__json_put_u64_or_null(
                j, "max_alloc_bytes", info->max_alloc_bytes > 0, info->max_alloc_bytes);
        sl__json_put_u64(j, "alignment", info->alignment);
        sl__json_put_bool(j, "can_wrap", info->can_wrap);
        sl__json_put_bool(j, "unified", info->is_unified);
        sl__json_put_bool(j, "async", info->is_async);
        sl__json_put_bool(j, "pinned", info->has_pinned);
        sl__json_put_bool(j, "can_register", info->can_register);
        sl__json_put_bool(j, "can_query", info->can_query);
        sl__json_put_bool(j, "auto", chosen == info);
        sl__json_end(j);
    }
    sl__json_end(j);
}
