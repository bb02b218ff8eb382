#include "known_files.h"

#include "base/mem.h"

static bool is_same(const sl_file_id *a, const sl_file_id *b)
{
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->mtime_ns == b->mtime_ns;
}

known_file *known_files_find(known_files *files, const sl_file_id *id)
{
    for (size_t i = 0; i < files->n; i++) {
        if (is_same(&files->items[i].id, id)) {
            return &files->items[i];
        }
    }
    return NULL;
}

int known_files_add(known_files *files, const sl_file_id *id, known_file **ret, sl_error *reterr)
{
    if (!sl__grow((void **)&files->items, &files->cap, files->n + 1, sizeof *files->items)) {
        return sl__fail_nomem(reterr, (files->n + 1) * sizeof *files->items, "the mapped files");
    }
    files->items[files->n] = (known_file){.id = *id};
    *ret = &files->items[files->n];
    files->n++;
    return 0;
}

int known_file_take(
        known_file *file, uint64_t begin, uint64_t end, sl_ranges *ret_ranges, sl_error *reterr)
{
    sl_ranges want = {0};
    int r = sl_ranges_clamp(&file->wanted, begin, end, &want);
    if (r >= 0) {
        r = sl_ranges_subtract(&want, &file->done, &want);
    }
    if (r >= 0) {
        r = sl_ranges_union(&file->done, &want, &file->done);
    }
    if (r < 0) {
        sl_ranges_done(&want);
        return sl__fail_nomem(reterr, file->wanted.n * sizeof(sl_range), "the pages to populate");
    }
    *ret_ranges = want;
    return 0;
}

void known_files_done(known_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        sl_ranges_done(&files->items[i].wanted);
        sl_ranges_done(&files->items[i].done);
    }
    sl__free(files->items);
    *files = (known_files){0};
}
