/*
 * The devices of this machine, as a table and as JSON, for `sluice doctor`.
 *
 * Names and descriptions come from drivers and may hold any bytes: they are escaped.
 */
#ifndef CLI_DEVICES_REPORT_H
#define CLI_DEVICES_REPORT_H

#include <stdio.h>

#include "base/json_writer.h"
#include "sluice/device.h"

/* `best` is the name of the device that --device auto means; NULL = not known. */
void devices_print_text(const sl_device_info *infos, size_t n, const char *best, FILE *out);

/*
 * Writes an array as the next value of `j`: [{"name","description","kind","total_bytes","free_bytes","max_alloc_bytes"
 * (each null = unknown),"alignment","can_wrap","unified","async","pinned","can_register","can_query","auto": true for
 * `best`}].
 */
void devices_put_json(const sl_device_info *infos, size_t n, const char *best, sl__json *j);

#endif
