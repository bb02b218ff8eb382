/*
 * multipart/form-data in memory, as spans into the body. Pure.
 *
 * A part:  --BOUNDARY CRLF  Content-Disposition: form-data; name="N"; filename="F" CRLF  ... CRLF CRLF  bytes CRLF
 */
#ifndef SERVER_MULTIPART_H
#define SERVER_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define MULTIPART_MAX_PARTS  64u
#define MULTIPART_NAME_BYTES 64u

typedef struct multipart_part {
    char name[MULTIPART_NAME_BYTES];
    bool is_file; /* it has a file name */
    const char *data;
    size_t n;
} multipart_part;

typedef struct multipart {
    multipart_part parts[MULTIPART_MAX_PARTS];
    size_t n;
} multipart;

/*
 * content_type: of the request, with its boundary. Parts point into the body. A name that comes twice is refused: the
 * two would mean different things to different readers.
 * Errors: SL_EUNSUPPORTED (another type), SL_EFORMAT, SL_ELIMIT (parts, a name).
 */
int multipart_parse(const char *content_type, const char *body, size_t n, multipart *ret,
        sl_error *reterr) SL_MUST_CHECK;

/* The part of the first name that is there, or NULL; `names` ends with NULL. */
const multipart_part *multipart_find(const multipart *m, const char *const *names);

#endif
