/* The system's side of a map, for those in this layer who work on its pages. */
#ifndef SL_SOURCE_MAP_OS_H
#define SL_SOURCE_MAP_OS_H

#include "os/os_map.h"
#include "sluice/map.h"

/* Owned by the map. */
const sl__os_map *sl__map_os(const sl_map *map);

/*
 * A map of the file behind an open descriptor, without a guard (see sl__os_map_adopt); `name` stands for its path in
 * messages. The descriptor becomes the map's if it succeeds.
 */
int sl__map_adopt(int fd, const char *name, sl_map **ret_map, sl_error *reterr) SL_MUST_CHECK;

#endif
