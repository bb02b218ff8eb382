#include "source/cgroup.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "source/meminfo.h"
#include "source/mountinfo.h"

#define USUAL_POINT "/sys/fs/cgroup"

bool sl__cgroup_path(sl_span text, bool is_v1, sl_span *ret_path)
{
    sl_span line;
    text = sl__skip_bom(text);
    while (sl__line_next(&text, &line)) {
        const char *first = line.n > 0 ? memchr(line.p, ':', line.n) : NULL;
        size_t n_id = first ? (size_t)(first - line.p) : 0;
        const char *second = first ? memchr(first + 1, ':', line.n - n_id - 1) : NULL;
        if (!second || memchr(line.p, '\0', line.n)) {
            continue;
        }
        uint64_t id = 0;
        sl_span controllers = {first + 1, (size_t)(second - first) - 1};
        sl_span path = {second + 1, line.n - n_id - controllers.n - 2};
        bool is_wanted = is_v1 ? sl__span_has_word(controllers, "memory") : controllers.n == 0;
        if (is_wanted && sl__span_u64((sl_span){line.p, n_id}, &id) && (is_v1 || id == 0) &&
                path.n > 0 && path.p[0] == '/') {
            *ret_path = path;
            return true;
        }
    }
    return false;
}

/*
 * Rewrites a path as "" or "/a/b": no empty components, none that is ".". Returns true if a component is
 * "..", which leads out of what this process can see.
 */
static bool normalize(char *path)
{
    size_t n = 0;
    bool has_up = false;
    for (const char *s = path; *s;) {
        s += strspn(s, "/");
        size_t n_part = strcspn(s, "/");
        bool is_dot = n_part == 1 && s[0] == '.';
        has_up = has_up || (n_part == 2 && s[0] == '.' && s[1] == '.');
        if (n_part > 0 && !is_dot) {
            path[n] = '/';
            memmove(path + n + 1, s, n_part);
            n += 1 + n_part;
        }
        s += n_part;
    }
    path[n] = '\0';
    return has_up;
}

/* True if `path` is `root` or lies below it; both normalized. */
static bool is_below(const char *root, const char *path)
{
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_memory_mount(const sl__mount *mount, bool is_v1)
{
    return is_v1 ? sl__span_is(mount->fs_type, "cgroup") &&
                           sl__span_has_word(mount->super_options, "memory")
                 : sl__span_is(mount->fs_type, "cgroup2");
}

static void place_done(sl__cgroup_place *place)
{
    sl__free(place->point);
    sl__free(place->below);
}

void sl__cgroup_places_done(sl__cgroup_places *places)
{
    for (size_t i = 0; i < places->n; i++) {
        place_done(&places->items[i]);
    }
    sl__free(places->items);
    memset(places, 0, sizeof *places);
}

/* Whatever is mounted at `point` from now on hides what was mounted there before. */
static void forget_covered(sl__cgroup_places *places, const char *point)
{
    size_t n = 0;
    for (size_t i = 0; i < places->n; i++) {
        if (strcmp(places->items[i].point, point) == 0) {
            place_done(&places->items[i]);
        } else {
            places->items[n] = places->items[i];
            n++;
        }
    }
    places->n = n;
}

/* Adds in order of rank, behind equals. Takes the strings over in any case. */
static int insert(sl__cgroup_places *places, sl__cgroup_place place)
{
    size_t at = places->n;
    if (!sl__grow((void **)&places->items, &places->cap, places->n + 1, sizeof *places->items)) {
        place_done(&place);
        return SL_ENOMEM;
    }
    while (at > 0 && places->items[at - 1].rank > place.rank) {
        places->items[at] = places->items[at - 1];
        at--;
    }
    places->items[at] = place;
    places->n++;
    return 0;
}

/* Adds what a mount of the right kind offers for the path, if anything. Takes `point` over. */
static int add_place(sl__cgroup_places *places, const sl__mount *mount, char *point,
        const char *path, bool path_has_up)
{
    char *root = sl__mountinfo_decode(mount->root);
    sl__cgroup_place place = {.point = point};
    if (!root) {
        place_done(&place);
        return SL_ENOMEM;
    }
    bool is_ours = !normalize(root) && !path_has_up && is_below(root, path);
    bool is_usual = is_below(USUAL_POINT, point);
    const char *below = is_ours ? path + strlen(root) : "";
    place.rank = is_ours ? !is_usual : 2;
    place.below = sl__strndup(below, strlen(below));
    sl__free(root);
    if (!place.below || (!is_ours && !is_usual)) {
        int r = place.below ? 0 : SL_ENOMEM;
        place_done(&place);
        return r;
    }
    return insert(places, place);
}

int sl__cgroup_find_places(
        sl_span mountinfo, sl_span path, bool is_v1, sl__cgroup_places *ret_places)
{
    sl__cgroup_places places = {0};
    sl__mount mount;
    int r = 0;
    char *own = sl__strndup(path.p, path.n);
    if (!own) {
        return SL_ENOMEM;
    }
    bool has_up = normalize(own);
    mountinfo = sl__skip_bom(mountinfo);
    while (r >= 0 && sl__mountinfo_next(&mountinfo, &mount)) {
        char *point = sl__mountinfo_decode(mount.point);
        if (!point) {
            r = SL_ENOMEM;
            break;
        }
        /* A point that leads upwards is nothing that the kernel writes. */
        bool is_sane = !normalize(point);
        forget_covered(&places, point);
        if (is_sane && is_memory_mount(&mount, is_v1)) {
            r = add_place(&places, &mount, point, own, has_up);
        } else {
            sl__free(point);
        }
    }
    sl__free(own);
    if (r < 0) {
        sl__cgroup_places_done(&places);
        return r;
    }
    *ret_places = places;
    return 0;
}
