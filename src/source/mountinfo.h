/*
 * The lines of /proc/self/mountinfo, and the one place where their octal escapes are decoded. Pure.
 *
 *   36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
 *   |  |  |    |     |     |          |        | |    |         options of the file system
 *   |  |  |    |     |     |          |        | |    its source, may be empty
 *   |  |  |    |     |     |          |        | its type
 *   |  |  |    |     |     |          |        the field that is exactly "-"
 *   |  |  |    |     |     |          any number of optional fields
 *   |  |  |    |     |     options of the mount
 *   |  |  |    |     where it is mounted
 *   |  |  |    which folder of the file system is mounted
 *   id, parent, device
 */
#ifndef SL_SOURCE_MOUNTINFO_H
#define SL_SOURCE_MOUNTINFO_H

#include <stdbool.h>

#include "sluice/span.h"

/* Fields as they stand in the line, still escaped. Root and point begin with '/'. */
typedef struct sl__mount {
    sl_span root;
    sl_span point;
    sl_span fs_type;
    sl_span super_options; /* empty in a line that was cut */
} sl__mount;

/* Takes the next line from *rest, without its line end ("\n" or "\r\n"); false at the end. */
bool sl__line_next(sl_span *rest, sl_span *ret_line);

/* Takes the next mount from *rest; lines that are none are skipped. False at the end. */
bool sl__mountinfo_next(sl_span *rest, sl__mount *ret);

/* The field with its escapes (\040, \134, ...) decoded; sl__free it. NULL = out of memory. */
char *sl__mountinfo_decode(sl_span field);

bool sl__span_is(sl_span s, const char *text);

/* True if the comma-separated list holds the word. */
bool sl__span_has_word(sl_span list, const char *word);

#endif
