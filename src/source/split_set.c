/*
 * A set is found by the names of its files, never by listing a folder: the order of a listing is chance. The
 * name and the metadata must agree, whichever shard the set was opened through.
 */
#include "source/split_set.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_path.h"
#include "source/gguf_index.h"
#include "source/shard_name.h"

#define KEY_COUNT   "split.count"
#define KEY_NO      "split.no"
#define KEY_TENSORS "split.tensors.count"
#define KEY_ARCH    "general.architecture"

/* Where shards are looked for: beside the path as given, then beside the target of the link. */
typedef struct shard_places {
    const char *path;    /* NULL if it has no shard's name */
    char *target;        /* NULL if `path` is no link or its target has no shard's name */
    sl__shard_name name; /* of `path` if it has one, else of `target` */
} shard_places;

/* The shards that cannot be opened, all of them, in one line. */
typedef struct missing_list {
    char text[360];
    char numbers[80]; /* of those whose sentence found no room in `text` */
    bool is_full;     /* `numbers` too */
    uint32_t n;
    int code; /* of the first */
} missing_list;

static int fail_file(const sl__model_file *file, int code, const char *what, sl_error *reterr)
{
    char shown[200];
    const char *path = sl_map_path(file->map);
    return sl__fail(
            reterr, code, "%s: %s", sl__quote(shown, sizeof shown, path, strlen(path)), what);
}

/* Reads a number that the file may lack; *ret_found says whether it is there. */
static int read_number(const sl__model_file *file, const char *key, uint64_t *ret, bool *ret_found,
        sl_error *reterr)
{
    sl_error inner = {0};
    *ret_found = sl_gguf_find(file->gguf, key) != NULL;
    if (!*ret_found) {
        return 0;
    }
    int r = sl_gguf_get_u64(file->gguf, key, ret, &inner);
    return r < 0 ? fail_file(file, r, inner.msg, reterr) : 0;
}

static int expect_number(const sl__model_file *file, const char *key, uint64_t needed,
        const char *why, sl_error *reterr)
{
    char what[200];
    uint64_t v = 0;
    bool is_there = false;
    int r = read_number(file, key, &v, &is_there, reterr);
    if (r < 0) {
        return r;
    }
    if (!is_there) {
        snprintf(what, sizeof what, "key '%s' is missing, need %" PRIu64 " (%s)", key, needed, why);
        return fail_file(file, SL_EFORMAT, what, reterr);
    }
    if (v != needed) {
        snprintf(
                what, sizeof what, "%s is %" PRIu64 ", need %" PRIu64 " (%s)", key, v, needed, why);
        return fail_file(file, SL_EFORMAT, what, reterr);
    }
    return 0;
}

static void close_file(sl__model_file *file)
{
    sl_gguf_close(&file->gguf);
    sl_map_close(&file->map);
}

static int read_map(void *ud, void *buf, uint64_t offset, size_t n, sl_error *reterr)
{
    return sl_map_pread(ud, buf, offset, n, reterr);
}

static int index_file(sl__model_file *file, sl_error *reterr)
{
    sl__gguf_source src = {.bytes = sl_map_data(file->map),
            .n_bytes = sl_map_size(file->map),
            .name = sl_map_path(file->map),
            .read = read_map,
            .ud = file->map};
    int r = sl__gguf_open_source(&src, &file->gguf, reterr);
    if (r < 0 && r != SL_ENOMEM) {
        /* A file that shrank meanwhile read as zeros: say that, not what the zeros look like. */
        int changed = sl_map_check(file->map, reterr);
        return changed < 0 ? changed : r;
    }
    return r;
}

static int open_first(const char *path, sl__model_file *file, sl_error *reterr)
{
    int r = sl_map_open(path, &file->map, reterr);
    if (r == SL_EFORMAT) {
        /* An empty file is a short GGUF like any other. */
        return sl_gguf_open("", 0, path, &file->gguf, reterr);
    }
    return r < 0 ? r : index_file(file, reterr);
}

static int find_places(const char *path, shard_places *places, sl_error *reterr)
{
    bool has_name = sl__shard_name_parse(path, &places->name);
    sl__shard_name target_name;
    places->path = has_name ? path : NULL;
    if (!sl__is_symlink(path)) {
        return 0;
    }
    int r = sl__real_path(path, &places->target, reterr);
    if (r < 0) {
        /* The file is open: a target that cannot be named is only no place to look at. */
        return r == SL_ENOMEM ? r : 0;
    }
    if (!sl__shard_name_parse(places->target, &target_name)) {
        sl__free(places->target);
        places->target = NULL;
    } else if (!has_name) {
        places->name = target_name;
    }
    return 0;
}

/* How many files the model has; 1 also for a file that belongs to no set. */
static int count_files(
        const sl__model_file *file, const shard_places *places, uint32_t *ret, sl_error *reterr)
{
    char what[200];
    uint64_t count = 0;
    bool is_there = false;
    bool has_name = places->path || places->target;
    int r = read_number(file, KEY_COUNT, &count, &is_there, reterr);
    if (r < 0) {
        return r;
    }
    if (count <= 1 && (!has_name || places->name.count == 1)) {
        *ret = 1;
        return 0;
    }
    if (!has_name) {
        snprintf(what, sizeof what,
                "split.count is %" PRIu64
                ", but the name is not that of a shard (NAME-00001-of-%05" PRIu64
                ".gguf); give the files their names back",
                count, count);
        return fail_file(file, SL_EFORMAT, what, reterr);
    }
    r = expect_number(file, KEY_COUNT, places->name.count, "as its name says", reterr);
    if (r >= 0) {
        r = expect_number(file, KEY_NO, places->name.no - 1, "as its name says", reterr);
    }
    *ret = places->name.count;
    return r;
}

/* Appends to a NUL-terminated text if all of it fits. */
static bool append(char *text, size_t text_bytes, const char *separator, const char *more)
{
    size_t n = strlen(text);
    int n_more = snprintf(text + n, text_bytes - n, "%s%s", n > 0 ? separator : "", more);
    if (n_more < 0 || (size_t)n_more >= text_bytes - n) {
        text[n] = '\0';
        return false;
    }
    return true;
}

static void list_missing(missing_list *list, uint32_t no, const sl_error *why)
{
    char number[16];
    if (list->n == 0) {
        list->code = why->code;
    }
    list->n++;
    /* Once a sentence found no room, the numbers of the rest keep their order. */
    if (list->numbers[0] == '\0' && append(list->text, sizeof list->text, "; ", why->msg)) {
        return;
    }
    snprintf(number, sizeof number, "%" PRIu32, no);
    if (!list->is_full && !append(list->numbers, sizeof list->numbers - 5, ", ", number)) {
        list->is_full = true;
        append(list->numbers, sizeof list->numbers, ", ", "...");
    }
}

static int fail_missing(const missing_list *list, uint32_t n_files, sl_error *reterr)
{
    bool has_more = list->numbers[0] != '\0';
    return sl__fail(reterr, list->code,
            "%" PRIu32 " of %" PRIu32 " shards cannot be opened: %s%s%s", list->n, n_files,
            list->text, has_more ? "; also shards " : "", list->numbers);
}

static int open_beside(const char *path, uint32_t no, sl_map **ret_map, sl_error *reterr)
{
    char *shard = sl__shard_path(path, no);
    if (!shard) {
        return sl__fail_nomem(reterr, strlen(path), "a path");
    }
    int r = sl_map_open(shard, ret_map, reterr);
    sl__free(shard);
    return r;
}

static int open_shard(const shard_places *places, uint32_t no, sl_map **ret_map, sl_error *reterr)
{
    sl_error second = {0};
    int r = SL_ENOENT;
    if (places->path) {
        r = open_beside(places->path, no, ret_map, reterr);
    }
    if (r >= 0 || !places->target) {
        return r;
    }
    int r2 = open_beside(places->target, no, ret_map, &second);
    /* The more telling of two failures. */
    if (r2 < 0 && places->path && (r != SL_ENOENT || r2 == SL_ENOENT)) {
        return r;
    }
    if (r2 < 0 && reterr) {
        *reterr = second;
    }
    return r2;
}

/* True for a failure of this one file, false for one that would meet the next file too. */
static bool is_about_one_file(int code)
{
    return code != SL_ENOMEM && code != SL_ELIMIT;
}

/* Opens every shard that is not open yet. */
static int open_others(sl__split_set *set, const shard_places *places, sl_error *reterr)
{
    missing_list missing = {.n = 0};
    for (uint32_t i = 0; i < set->n_files; i++) {
        sl_error why = {0};
        if (set->files[i].map) {
            continue;
        }
        int r = open_shard(places, i + 1, &set->files[i].map, &why);
        if (r < 0 && !is_about_one_file(r)) {
            if (reterr) {
                *reterr = why;
            }
            return r;
        }
        if (r < 0) {
            list_missing(&missing, i + 1, &why);
        }
    }
    return missing.n > 0 ? fail_missing(&missing, set->n_files, reterr) : 0;
}

static int check_architecture(
        const sl__model_file *first, const sl__model_file *file, sl_error *reterr)
{
    char what[240];
    char found[64];
    char needed[64];
    sl_span a = {0};
    sl_span b = {0};
    sl_error inner = {0};
    int r = sl_gguf_get_str(file->gguf, KEY_ARCH, &b, &inner);
    if (r == SL_ENOENT) {
        return 0; /* later shards need not repeat it */
    }
    if (r >= 0) {
        r = sl_gguf_get_str(first->gguf, KEY_ARCH, &a, &inner);
    }
    if (r < 0) {
        return fail_file(r == SL_ENOENT ? first : file, SL_EFORMAT, inner.msg, reterr);
    }
    if (a.n == b.n && memcmp(a.p, b.p, a.n) == 0) {
        return 0;
    }
    snprintf(what, sizeof what, KEY_ARCH " is '%s', but '%s' in the first shard",
            sl__quote(found, sizeof found, b.p, b.n), sl__quote(needed, sizeof needed, a.p, a.n));
    return fail_file(file, SL_EFORMAT, what, reterr);
}

static int check_total(const sl__split_set *set, sl_error *reterr)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < set->n_files; i++) {
        total += sl_gguf_n_tensors(set->files[i].gguf);
    }
    for (uint32_t i = 0; i < set->n_files; i++) {
        const sl__model_file *file = &set->files[i];
        int r = sl_gguf_find(file->gguf, KEY_TENSORS)
                        ? expect_number(file, KEY_TENSORS, total, "what the files hold", reterr)
                        : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int check_set(const sl__split_set *set, sl_error *reterr)
{
    int r = 0;
    for (uint32_t i = 0; r >= 0 && set->n_files > 1 && i < set->n_files; i++) {
        const sl__model_file *file = &set->files[i];
        r = expect_number(file, KEY_COUNT, set->n_files, "as in the other shards", reterr);
        if (r >= 0) {
            r = expect_number(file, KEY_NO, i, "as its name says", reterr);
        }
        if (r >= 0) {
            r = check_architecture(&set->files[0], file, reterr);
        }
    }
    return r < 0 ? r : check_total(set, reterr);
}

static int open_all(const char *path, shard_places *places, sl__split_set *set, sl_error *reterr)
{
    sl__model_file file = {0};
    uint32_t n_files = 0;
    int r = open_first(path, &file, reterr);
    if (r >= 0) {
        r = find_places(path, places, reterr);
    }
    if (r >= 0) {
        r = count_files(&file, places, &n_files, reterr);
    }
    if (r < 0) {
        goto out;
    }
    set->files = sl__alloc(n_files, sizeof *set->files);
    if (!set->files) {
        r = sl__fail_nomem(reterr, n_files * sizeof *set->files, "the list of shards");
        goto out;
    }
    set->n_files = n_files;
    set->files[n_files > 1 ? places->name.no - 1 : 0] = file;
    memset(&file, 0, sizeof file);
    r = open_others(set, places, reterr);
    for (uint32_t i = 0; r >= 0 && i < n_files; i++) {
        r = set->files[i].gguf ? 0 : index_file(&set->files[i], reterr);
    }
    if (r >= 0) {
        r = check_set(set, reterr);
    }
out:
    close_file(&file);
    return r;
}

int sl__split_set_open(const char *path, sl__split_set *ret, sl_error *reterr)
{
    shard_places places = {0};
    sl__split_set set = {0};
    int r = open_all(path, &places, &set, reterr);
    sl__free(places.target);
    if (r < 0) {
        sl__split_set_done(&set);
        return r;
    }
    *ret = set;
    return 0;
}

void sl__split_set_done(sl__split_set *set)
{
    for (uint32_t i = 0; i < set->n_files; i++) {
        close_file(&set->files[i]);
    }
    sl__free(set->files);
    memset(set, 0, sizeof *set);
}
