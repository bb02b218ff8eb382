/* The system's side of a map, for those in this layer who work on its pages. */
#ifndef SL_SOURCE_MAP_OS_H
#define SL_SOURCE_MAP_OS_H

#include "os/os_map.h"
#include "sluice/map.h"

/* Owned by the map. */
const sl__os_map *sl__map_os(const sl_map *map);

#endif
