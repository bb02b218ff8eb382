/*
 * Which control group this process is in, and where its files are. Pure.
 *
 * /proc/self/cgroup has one line a hierarchy, "ID:CONTROLLERS:/PATH", with "0::/PATH" for version 2. The path
 * may hold colons, is not escaped, and is relative to the namespace of the reader: it may begin with "/../".
 */
#ifndef SL_SOURCE_CGROUP_H
#define SL_SOURCE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "sluice/error.h"
#include "sluice/span.h"

/*
 * The path of this process in the hierarchy of version 2, or in that of version 1 that has the controller
 * `memory`. Points into `text`; false if there is no such line. Malformed lines are skipped.
 */
bool sl__cgroup_path(sl_span text, bool is_v1, sl_span *ret_path);

/*
 * A place where the files of our group and of its ancestors may be: `point` on this machine, and below it
 * `below` ("" or "/a/b", without "." and "..").
 */
typedef struct sl__cgroup_place {
    char *point;
    char *below;
    int rank; /* 0 = best; 2 = only the mount point itself, since our path does not lie below its root */
} sl__cgroup_place;

typedef struct sl__cgroup_places {
    sl__cgroup_place *items; /* best first */
    size_t n;
    size_t cap;
} sl__cgroup_places;

/*
 * All places that a mountinfo text has for a path, best first: the mount's root is stripped from the path
 * component by component; mounts below /sys/fs/cgroup come before others, and others count only if our path
 * lies below their root. A mount that another one covers is no place.
 * Returns 0 or SL_ENOMEM, with nothing to free then.
 */
int sl__cgroup_find_places(
        sl_span mountinfo, sl_span path, bool is_v1, sl__cgroup_places *ret_places);

void sl__cgroup_places_done(sl__cgroup_places *places);

#endif
