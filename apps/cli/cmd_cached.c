/*
 * sluice cached: what of a model is in the page cache, unit by unit.
 *
 * Reading a model's header brings pages in, so the pages of a file are marked before it is opened as a model. The
 * other files of a split set are marked beside it; one that lies elsewhere is marked after it was opened.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/json_writer.h"
#include "base/mem.h"
#include "base/status.h"
#include "cache_models.h"
#include "commands.h"
#include "report.h"
#include "sluice/page_cache.h"
#include "source/shard_name.h"

#define BAR_CELLS 32

typedef struct cached_opts {
    bool json;
} cached_opts;

static const opt_def defs[] = {
        {.name = "json",
                .kind = OPT_FLAG,
                .offset = offsetof(cached_opts, json),
                .help = "Write one JSON object for each model."},
};

const opt_command cmd_cached_table = {
        .name = "cached",
        .summary = "show what of models is in the page cache",
        .synopsis = "[--json] FILE...",
        .about = "Shows for each unit how many of its bytes are in memory, and where: a cell of "
                 "the bar is a "
                 "part of the unit, '#' wholly cached, '+' partly, '.' not at all.",
        .operand = "FILE",
        .min_operands = 1,
        .max_operands = SIZE_MAX,
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
};

/* The pages of one file, marked. */
typedef struct file_marks {
    sl_file_id id;
    unsigned char *marks;
} file_marks;

typedef struct marked_files {
    file_marks *items;
    size_t n;
    size_t cap;
} marked_files;

/* Of a unit of a model: its bytes in file order, cut into equal cells. */
typedef struct unit_cells {
    uint64_t n_bytes;
    uint64_t n_cached;
    uint64_t at; /* bytes of the unit seen so far */
    uint64_t total[BAR_CELLS];
    uint64_t cached[BAR_CELLS];
} unit_cells;

typedef struct cached_summary {
    unit_cells units[S2_UNIT_COUNT];
    uint64_t n_bytes; /* of the files */
    uint64_t n_cached;
} cached_summary;

static void marks_done(marked_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        sl__free(files->items[i].marks);
    }
    sl__free(files->items);
}

static const unsigned char *marks_of(const marked_files *files, const sl_map *map)
{
    sl_file_id id = sl_map_id(map);
    for (size_t i = 0; i < files->n; i++) {
        const sl_file_id *other = &files->items[i].id;
        if (id.device == other->device && id.inode == other->inode &&
                id.size_bytes == other->size_bytes) {
            return files->items[i].marks;
        }
    }
    return NULL;
}

static int mark_map(marked_files *files, const sl_map *map, sl_error *reterr)
{
    if (marks_of(files, map)) {
        return 0;
    }
    uint64_t n_pages = sl_page_cache_n_pages(map);
    file_marks made = {.id = sl_map_id(map), .marks = sl__alloc((size_t)n_pages, 1)};
    if (!made.marks || !sl__grow((void **)&files->items, &files->cap, files->n + 1, sizeof made)) {
        sl__free(made.marks);
        return sl__fail_nomem(reterr, (size_t)n_pages, "marks of pages");
    }
    int r = sl_page_cache_marks(map, made.marks, reterr);
    if (r < 0) {
        sl__free(made.marks);
        return r;
    }
    files->items[files->n] = made;
    files->n++;
    return 0;
}

/* Marks a file by its path; one that cannot be opened is left to the opening of the model. */
static int mark_path(marked_files *files, const char *path, sl_error *reterr)
{
    sl_map *map = NULL;
    if (sl_map_open(path, &map, NULL) < 0) {
        return 0;
    }
    int r = mark_map(files, map, reterr);
    sl_map_close(&map);
    return r;
}

/* A path of the line and, if it is a shard's, its siblings. */
static int mark_operand(marked_files *files, const char *path, sl_error *reterr)
{
    sl__shard_name shard;
    int r = mark_path(files, path, reterr);
    if (!sl__shard_name_parse(path, &shard)) {
        return r;
    }
    for (uint32_t no = 1; no <= shard.count && r >= 0; no++) {
        char *sibling = sl__shard_path(path, no);
        r = sibling ? mark_path(files, sibling, reterr)
                    : sl__fail_nomem(reterr, strlen(path), "a path");
        sl__free(sibling);
    }
    return r;
}

/* Adds n bytes of a unit, all cached or none, to its cells. */
static void add_bytes(unit_cells *u, uint64_t n, bool is_cached)
{
    while (n > 0) {
        size_t cell = (size_t)(u->at / ((u->n_bytes - 1) / BAR_CELLS + 1));
        uint64_t cell_end = (cell + 1) * ((u->n_bytes - 1) / BAR_CELLS + 1);
        uint64_t part = cell_end - u->at < n ? cell_end - u->at : n;
        u->total[cell] += part;
        u->cached[cell] += is_cached ? part : 0;
        u->n_cached += is_cached ? part : 0;
        u->at += part;
        n -= part;
    }
}

static void add_tensor(unit_cells *u, const sl_gguf_tensor *info, const unsigned char *marks)
{
    uint64_t page = sl_page_cache_page_bytes();
    uint64_t at = info->offset;
    uint64_t end = info->offset + info->n_bytes;
    while (at < end) {
        uint64_t page_end = (at / page + 1) * page;
        uint64_t n = (page_end < end ? page_end : end) - at;
        add_bytes(u, n, marks[at / page] != 0);
        at += n;
    }
}

static int summarize(
        const sl_model *model, marked_files *files, cached_summary *ret, sl_error *reterr)
{
    model_summary units;
    bool is_codec_file = s2_unit_is_codec_file(model);
    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; i < sl_model_n_files(model); i++) {
        const sl_map *map = sl_model_map(model, i);
        int r = mark_map(files, map, reterr);
        if (r < 0) {
            return r;
        }
        unit_cells whole = {.n_bytes = sl_map_size(map)};
        const sl_gguf_tensor all = {.offset = 0, .n_bytes = whole.n_bytes};
        add_tensor(&whole, &all, marks_of(files, map));
        ret->n_bytes += whole.n_bytes;
        ret->n_cached += whole.n_cached;
    }
    unit_summarize(model, &units);
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        ret->units[id].n_bytes = units.units[id].n_bytes;
    }
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        const sl_tensor *t = sl_model_tensor_at(model, i);
        const unsigned char *marks = marks_of(files, sl_model_map(model, t->i_file));
        add_tensor(&ret->units[s2_unit_of(t->info->name, is_codec_file)], t->info, marks);
    }
    return 0;
}

static double percent(uint64_t part, uint64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0.0;
}

static const char *bar(const unit_cells *u, char *buf)
{
    size_t n = 0;
    for (size_t i = 0; i < BAR_CELLS && u->total[i] > 0; i++) {
        bool is_full = u->cached[i] == u->total[i];
        buf[n] = '+';
        buf[n] = is_full ? '#' : buf[n];
        buf[n] = u->cached[i] == 0 ? '.' : buf[n];
        n++;
    }
    buf[n] = '\0';
    return buf;
}

static void print_summary(const sl_model *model, const cached_summary *s)
{
    char text[2][32];
    char cells[BAR_CELLS + 1];
    char shown[512];
    const char *path = sl_model_path(model);
    printf("%s: %s of %s cached (%.1f%%)\n", sl__quote(shown, sizeof shown, path, strlen(path)),
            sl__byte_text(s->n_cached, text[0], sizeof text[0]),
            sl__byte_text(s->n_bytes, text[1], sizeof text[1]), percent(s->n_cached, s->n_bytes));
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        const unit_cells *u = &s->units[id];
        if (u->n_bytes > 0) {
            printf("  %-16s %10s of %10s %6.1f%%  %s\n", s2_unit_name((s2_unit_id)id),
                    sl__byte_text(u->n_cached, text[0], sizeof text[0]),
                    sl__byte_text(u->n_bytes, text[1], sizeof text[1]),
                    percent(u->n_cached, u->n_bytes), bar(u, cells));
        }
    }
}

static int print_json(const sl_model *model, const cached_summary *s, sl_error *reterr)
{
    sl__json j = {0};
    sl__json_object(&j);
    sl__json_put_cstr(&j, "path", sl_model_path(model));
    sl__json_put_u64(&j, "bytes", s->n_bytes);
    sl__json_put_u64(&j, "cached_bytes", s->n_cached);
    sl__json_key(&j, "units");
    sl__json_object(&j);
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        if (s->units[id].n_bytes > 0) {
            sl__json_key(&j, s2_unit_name((s2_unit_id)id));
            sl__json_object(&j);
            sl__json_put_u64(&j, "bytes", s->units[id].n_bytes);
            sl__json_put_u64(&j, "cached_bytes", s->units[id].n_cached);
            sl__json_end(&j);
        }
    }
    sl__json_end(&j);
    sl__json_end(&j);
    return report_json(&j, reterr);
}

static int show(
        const sl_model *model, marked_files *files, const cached_opts *opts, sl_error *reterr)
{
    cached_summary summary;
    int r = summarize(model, files, &summary, reterr);
    if (r >= 0 && opts->json) {
        r = print_json(model, &summary, reterr);
    } else if (r >= 0) {
        print_summary(model, &summary);
    }
    /* A file that shrank meanwhile read as zeros: what was shown is then not what it says. */
    return r < 0 ? r : sl_model_check(model, reterr);
}

int cmd_cached(int argc, char **argv)
{
    cached_opts opts = {0};
    opt_result line;
    cache_models models = {0};
    marked_files files = {0};
    sl_error err = {0};
    int r = 0;
    int status = opt_parse(&cmd_cached_table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    for (size_t i = 0; i < line.n_operands && r >= 0; i++) {
        r = mark_operand(&files, line.operands[i], &err);
    }
    if (r >= 0) {
        r = cache_models_open(line.operands, line.n_operands, &models, &err);
    }
    for (size_t i = 0; i < models.n && r >= 0; i++) {
        r = show(models.items[i], &files, &opts, &err);
    }
    cache_models_close(&models);
    marks_done(&files);
    return r < 0 ? report_error(cmd_cached_table.name, &err) : 0;
}
