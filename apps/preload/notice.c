#include "notice.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "sluice run: "

/* Written once, before the program's main. */
static struct {
    bool is_known;
    dev_t device;
    ino_t inode;
} standard_error;

void shim_notice_begin(void)
{
    struct stat st;
    if (fstat(STDERR_FILENO, &st) == 0) {
        standard_error.device = st.st_dev;
        standard_error.inode = st.st_ino;
        standard_error.is_known = true;
    }
}

void shim_notice(const char *fmt, ...)
{
    char line[1024] = PREFIX;
    struct stat st;
    size_t n = strlen(PREFIX);
    if (!standard_error.is_known || fstat(STDERR_FILENO, &st) != 0 ||
            st.st_dev != standard_error.device || st.st_ino != standard_error.inode) {
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    int n_text = vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
    va_end(ap);
    n += n_text < 0 ? 0 : (size_t)n_text;
    n = n < sizeof line - 1 ? n : sizeof line - 2;
    line[n] = '\n';
    /* Whoever closed it does not want the line. */
    (void)!write(STDERR_FILENO, line, n + 1);
}
