/* The files of apps/web, compiled in (cmake/embed.cmake). */
#ifndef SERVER_WEB_FILES_H
#define SERVER_WEB_FILES_H

#include <stddef.h>

typedef struct web_file {
    const char *path; /* as it is asked for: "/", "/app.js" */
    const char *type;
    const char *etag; /* quoted */
    const unsigned char *bytes;
    size_t n;
} web_file;

extern const web_file web_files[];
extern const size_t web_n_files;

#endif
