/* Carriage return and "erase to the end of the line" are all the terminal control there is. */
#include "tty.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"
#include "os/os_clock.h"

#define UPDATE_NS UINT64_C(100000000)
#define ERASE     "\r\033[K"

static bool is_capable(FILE *out)
{
    const char *term = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe): before any thread */
    return isatty(fileno(out)) && term && *term && strcmp(term, "dumb") != 0;
}

void tty_progress_init(tty_progress *p, FILE *out, bool is_quiet)
{
    *p = (tty_progress){.out = out, .is_on = !is_quiet && is_capable(out)};
}

size_t tty_columns(FILE *out)
{
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 80;
}

size_t tty_fit(const char *text, size_t columns)
{
    size_t n = strlen(text);
    size_t i = 0;
    for (size_t column = 0; i < n && column < columns; column++) {
        size_t len = sl__utf8_char_len(text + i, n - i);
        i += len > 0 ? len : 1;
    }
    return i;
}

void tty_progress_show(tty_progress *p, const char *fmt, ...)
{
    char line[512];
    uint64_t now = p->is_on ? sl__now_ns() : 0;
    if (!p->is_on || now < p->next_ns) {
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    /* The last column stays free: writing it makes some terminals wrap. */
    size_t n = tty_fit(line, tty_columns(p->out) - 1);
    fprintf(p->out, ERASE "%.*s", (int)n, line);
    (void)fflush(p->out);
    p->is_shown = true;
    p->next_ns = now + UPDATE_NS;
}

void tty_progress_clear(tty_progress *p)
{
    if (p->is_shown) {
        fputs(ERASE, p->out);
        (void)fflush(p->out);
        p->is_shown = false;
    }
}
