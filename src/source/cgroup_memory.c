/*
 * The bounds of the control groups: the group of this process and each ancestor up to the mount.
 *
 * Both hierarchies are looked at, each for itself: on a hybrid host one of them has no memory files and so says
 * nothing. Within a hierarchy the best mount that has any memory file wins; a mount of somebody else's is never
 * looked at twice.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "source/cgroup.h"
#include "source/meminfo.h"
#include "source/ram_derive.h"

#define CGROUP_FILE    "/proc/self/cgroup"
#define MOUNTINFO_FILE "/proc/self/mountinfo"

/* One hierarchy while its groups are walked. */
typedef struct walk {
    sl__derive *d;
    bool is_v1;
    uint64_t unlimited_from; /* a limit this high is none; 0 = any counts */
    size_t n_files;          /* limit files that could be read */
    bool has_stat;
    uint64_t own_cache; /* inactive clean file cache of the innermost group that says it */
    uint64_t own_limit; /* version 1: the smallest limit of it and of all above, 0 = not said */
    uint64_t min_limit; /* the smallest limit seen */
} walk;

/* What the names are in each version. Several statistics: the first that is there counts. */
typedef struct names {
    const char *current;
    const char *inactive[2];
    const char *active[2];
    const char *dirty[2];
    const char *writeback[2];
} names;

static const names names_v1 = {
        .current = "memory.usage_in_bytes",
        .inactive = {"total_inactive_file", "inactive_file"},
        .active = {"total_active_file", "active_file"},
        .dirty = {"total_dirty", "dirty"},
        .writeback = {"total_writeback", "writeback"},
};
static const names names_v2 = {
        .current = "memory.current",
        .inactive = {"inactive_file", NULL},
        .active = {"active_file", NULL},
        .dirty = {"file_dirty", NULL},
        .writeback = {"file_writeback", NULL},
};

/* What a group uses; read once, when a limit asks for it. */
typedef struct group {
    const char *folder;
    bool is_read;
    uint64_t used;
    uint64_t clean; /* of that, clean file cache */
} group;

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* FOLDER/NAME; sl__free it. */
static char *path_of(walk *w, const char *folder, const char *name)
{
    size_t n = strlen(folder) + strlen(name) + 2;
    char *path = sl__alloc(n, 1);
    if (!path) {
        w->d->is_dead = true;
        return NULL;
    }
    snprintf(path, n, "%s/%s", folder, name);
    return path;
}

static uint64_t stat_of(sl_span text, const char *const *candidates)
{
    uint64_t v = 0;
    for (size_t i = 0; i < 2 && candidates[i]; i++) {
        if (sl__stat_find(text, candidates[i], 0, &v)) {
            return v;
        }
    }
    return 0;
}

/* Clean file cache, active and inactive; 0 if the group does not say. */
static uint64_t read_cache(walk *w, const char *folder)
{
    const names *n = w->is_v1 ? &names_v1 : &names_v2;
    uint64_t clean = 0;
    sl_span text;
    char *path = path_of(w, folder, "memory.stat");
    if (path && sl__derive_read(w->d, path, &text)) {
        uint64_t inactive = stat_of(text, n->inactive);
        uint64_t unclean = plus(stat_of(text, n->dirty), stat_of(text, n->writeback));
        clean = less(plus(inactive, stat_of(text, n->active)), unclean);
        if (!w->has_stat) {
            w->has_stat = true;
            w->own_cache = less(inactive, unclean);
            (void)sl__stat_find(text, "hierarchical_memory_limit", 0, &w->own_limit);
        }
        sl__derive_value(w->d, path,
                "clean file cache: inactive and active, less dirty and being written", clean);
        sl__derive_free(text);
    }
    sl__free(path);
    return clean;
}

/* Current use, 0 if it is unknown. */
static uint64_t read_use(walk *w, const char *folder)
{
    const names *n = w->is_v1 ? &names_v1 : &names_v2;
    uint64_t used = 0;
    bool is_known = false;
    sl_span text;
    char *path = path_of(w, folder, n->current);
    if (path && sl__derive_read(w->d, path, &text)) {
        is_known = sl__limit_parse(text, w->is_v1, &used) == SL_LIMIT_VALUE;
        sl__derive_free(text);
    }
    if (path && is_known) {
        sl__derive_value(w->d, path, "current use", used);
    } else if (path) {
        sl__derive_note(w->d, true, path, "no use is known, taken as 0");
    }
    sl__free(path);
    return used;
}

static void read_group(walk *w, group *g)
{
    if (!g->is_read) {
        g->is_read = true;
        g->used = read_use(w, g->folder);
        uint64_t clean = read_cache(w, g->folder);
        g->clean = clean < g->used ? clean : g->used;
    }
}

/* Adds the bound of one limit file, if it holds a limit. */
static void add_limit(walk *w, group *g, const char *name, sl_ram_bound_kind kind)
{
    sl_ram_bound bound = {.kind = kind};
    sl_span text;
    char *path = path_of(w, g->folder, name);
    if (!path || !sl__derive_read(w->d, path, &text)) {
        sl__free(path);
        return;
    }
    sl__limit_kind found = sl__limit_parse(text, w->is_v1, &bound.limit_bytes);
    sl__derive_free(text);
    w->n_files++;
    if (w->unlimited_from > 0 && bound.limit_bytes >= w->unlimited_from) {
        found = SL_LIMIT_NONE;
    }
    if (found == SL_LIMIT_ABSURD) {
        sl__derive_note(w->d, true, path, "holds no limit that makes sense, so it bounds nothing");
    } else if (found == SL_LIMIT_NONE) {
        sl__derive_note(w->d, false, path, "no limit");
    } else {
        sl__derive_value(w->d, path, "limit", bound.limit_bytes);
        read_group(w, g);
        bound.used_bytes = g->used;
        bound.reclaimable_bytes = g->clean;
        w->min_limit = bound.limit_bytes < w->min_limit ? bound.limit_bytes : w->min_limit;
        sl__derive_bound(w->d, &bound, path);
    }
    sl__free(path);
}

/* The soft limit of version 1 is advice to the kernel under pressure: shown, not obeyed. */
static void note_soft_limit(walk *w, const char *folder)
{
    uint64_t soft = 0;
    sl_span text;
    char *path = path_of(w, folder, "memory.soft_limit_in_bytes");
    if (path && sl__derive_read(w->d, path, &text)) {
        if (sl__limit_parse(text, true, &soft) == SL_LIMIT_VALUE) {
            sl__derive_value(w->d, path, "soft limit, advisory: not enforced", soft);
        }
        sl__derive_free(text);
    }
    sl__free(path);
}

static void look_at_group(walk *w, const char *folder)
{
    group g = {.folder = folder};
    if (w->is_v1) {
        add_limit(w, &g, "memory.limit_in_bytes", SL_RAM_CGROUP_V1);
        note_soft_limit(w, folder);
    } else {
        add_limit(w, &g, "memory.max", SL_RAM_CGROUP_MAX);
        add_limit(w, &g, "memory.high", SL_RAM_CGROUP_HIGH);
    }
    if (!w->has_stat) {
        (void)read_cache(w, folder);
    }
}

/*
 * In a container the groups above the mount cannot be seen, but version 1 says in memory.stat what the smallest
 * limit of all of them is. How much they use stays unknown; our own group uses at least its part of it.
 */
static void add_hidden_limit(walk *w, const char *folder)
{
    uint64_t ceiling = w->unlimited_from > 0 ? w->unlimited_from : UINT64_C(1) << 62;
    if (w->own_limit == 0 || w->own_limit >= w->min_limit || w->own_limit >= ceiling) {
        return;
    }
    group g = {.folder = folder};
    char *path = path_of(w, folder, "memory.stat");
    if (path) {
        sl__derive_value(w->d, path,
                "hierarchical_memory_limit: a group above, which cannot be seen from here",
                w->own_limit);
        read_group(w, &g);
        sl_ram_bound bound = {.kind = SL_RAM_CGROUP_V1, .limit_bytes = w->own_limit};
        bound.used_bytes = g.used;
        bound.reclaimable_bytes = g.clean;
        sl__derive_bound(w->d, &bound, path);
    }
    sl__free(path);
}

/* From our group up to the mount point. */
static void walk_up(walk *w, const sl__cgroup_place *place)
{
    size_t n_point = strlen(place->point);
    size_t n = n_point + strlen(place->below);
    char *folder = sl__alloc(n + 1, 1);
    if (!folder) {
        w->d->is_dead = true;
        return;
    }
    snprintf(folder, n + 1, "%s%s", place->point, place->below);
    look_at_group(w, folder);
    while (n > n_point && !w->d->is_dead) {
        n--;
        while (n > n_point && folder[n] != '/') {
            n--;
        }
        folder[n] = '\0';
        look_at_group(w, folder);
    }
    if (w->is_v1 && w->n_files > 0) {
        snprintf(folder, strlen(place->point) + strlen(place->below) + 1, "%s%s", place->point,
                place->below);
        add_hidden_limit(w, folder);
    }
    sl__free(folder);
}

static void look_at_places(walk *w, sl_span mountinfo, sl_span path)
{
    sl__cgroup_places places = {0};
    if (sl__cgroup_find_places(mountinfo, path, w->is_v1, &places) < 0) {
        w->d->is_dead = true;
        return;
    }
    for (size_t i = 0; i < places.n && w->n_files == 0 && !w->d->is_dead; i++) {
        if (places.items[i].rank > 1) {
            sl__derive_note(w->d, true, CGROUP_FILE,
                    "the path leads out of the mount: only the mount's own files are looked at");
        }
        walk_up(w, &places.items[i]);
    }
    sl__cgroup_places_done(&places);
}

uint64_t sl__derive_cgroups(sl__derive *d, uint64_t total_bytes)
{
    walk v2 = {.d = d, .min_limit = UINT64_MAX};
    walk v1 = {.d = d, .is_v1 = true, .unlimited_from = total_bytes, .min_limit = UINT64_MAX};
    walk *const walks[] = {&v2, &v1};
    sl_span groups = {0};
    sl_span mounts = {0};
    sl_span path;
    bool is_readable =
            sl__derive_read(d, CGROUP_FILE, &groups) && sl__derive_read(d, MOUNTINFO_FILE, &mounts);
    for (size_t i = 0; i < 2 && is_readable; i++) {
        if (sl__cgroup_path(groups, walks[i]->is_v1, &path)) {
            look_at_places(walks[i], mounts, path);
        }
    }
    sl__derive_free(groups);
    sl__derive_free(mounts);
    if (v1.n_files + v2.n_files == 0) {
        sl__derive_note(d, false, CGROUP_FILE, "no memory limit of a control group is known");
    }
    return v2.has_stat ? v2.own_cache : v1.own_cache;
}
