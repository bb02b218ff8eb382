/*
 * One table makes the codes, their names and texts; one formatter makes every message. Messages are cut at
 * a character border, never in the middle of a UTF-8 sequence.
 */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#ifdef __clang_analyzer__
#undef sl__fail
#undef sl__fail_at
#undef sl__fail_os
#undef sl__fail_nomem
#endif

typedef struct code_row {
    int code;
    const char *name;
    const char *text;
    int exit_status;
    int http_status;
} code_row;

static const code_row code_table[] = {
#define SL_ERROR_ROW(name, value, text, exit_status, http_status)                                  \
    {(value), #name, (text), (exit_status), (http_status)},
        SL_ERROR_MAP(SL_ERROR_ROW)
#undef SL_ERROR_ROW
};

static const code_row *find_row(int code)
{
    for (size_t i = 0; i < sizeof code_table / sizeof code_table[0]; i++) {
        if (code_table[i].code == code) {
            return &code_table[i];
        }
    }
    return NULL;
}

const char *sl_err_name(int code)
{
    const code_row *row = find_row(code);
    return row ? row->name : "UNKNOWN";
}

const char *sl_err_text(int code)
{
    const code_row *row = find_row(code);
    return row ? row->text : "unknown error";
}

int sl_err_exit_status(int code)
{
    if (code >= 0) {
        return 0;
    }
    const code_row *row = find_row(code);
    return row ? row->exit_status : 1;
}

int sl_err_http_status(int code)
{
    if (code >= 0) {
        return 200;
    }
    const code_row *row = find_row(code);
    return row ? row->http_status : 500;
}

int sl__code_from_errno(int os_errno)
{
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
        return SL_ENOENT;
    case EACCES:
    case EPERM:
    case EROFS:
        return SL_EACCES;
    case EINTR: /* only handlers of a wish to stop are installed without SA_RESTART */
        return SL_ECANCELLED;
    case ENOMEM:
        return SL_ENOMEM;
    case ENOSPC:
    case EDQUOT:
        return SL_ENOSPC;
    case EEXIST:
        return SL_EEXIST;
    case EINVAL:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return SL_EINVAL;
    case EFBIG:
    case EMFILE:
    case ENFILE:
        return SL_ELIMIT;
    default:
        return SL_EIO;
    }
}

/* Cuts a message that filled the buffer back to the last whole character. */
static void trim_partial_char(char *msg, size_t cap, int n_wanted)
{
    if (n_wanted < 0 || (size_t)n_wanted < cap) {
        return;
    }
    size_t len = strlen(msg);
    msg[sl__utf8_valid_prefix(msg, len)] = '\0';
}

static int fill(sl_error *reterr, int code, const char *fmt, va_list ap) SL_PRINTF(3, 0);

static int fill(sl_error *reterr, int code, const char *fmt, va_list ap)
{
    if (reterr) {
        memset(reterr, 0, sizeof *reterr);
        reterr->code = code;
        int n = vsnprintf(reterr->msg, sizeof reterr->msg, fmt, ap);
        trim_partial_char(reterr->msg, sizeof reterr->msg, n);
    }
    return code;
}

int sl__fail(sl_error *reterr, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = fill(reterr, code, fmt, ap);
    va_end(ap);
    return r;
}

int sl__fail_at(sl_error *reterr, int code, uint64_t offset, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = fill(reterr, code, fmt, ap);
    va_end(ap);
    if (reterr) {
        reterr->offset = offset;
    }
    return r;
}

int sl__fail_os(sl_error *reterr, int os_errno, const char *fmt, ...)
{
    int code = sl__code_from_errno(os_errno);
    va_list ap;
    va_start(ap, fmt);
    int r = fill(reterr, code, fmt, ap);
    va_end(ap);
    if (reterr) {
        char reason[128] = "";
        reterr->os_errno = os_errno;
        /* The XSI variant: fills the caller's buffer, safe in threads. */
        if (strerror_r(os_errno, reason, sizeof reason) != 0) {
            snprintf(reason, sizeof reason, "errno %d", os_errno);
        }
        size_t len = strlen(reterr->msg);
        int n = snprintf(reterr->msg + len, sizeof reterr->msg - len, ": %s", reason);
        trim_partial_char(reterr->msg, sizeof reterr->msg - len, n);
    }
    return r;
}

int sl__fail_nomem(sl_error *reterr, size_t n_bytes, const char *what)
{
    return sl__fail(reterr, SL_ENOMEM, "out of memory: needed %zu bytes for %s", n_bytes, what);
}

static bool is_plain(const unsigned char *s, size_t n)
{
    /* C1 controls (U+0080..U+009F) reach a terminal as escape sequences too. */
    bool is_c1 = n == 2 && s[0] == 0xC2 && s[1] < 0xA0;
    return n > 1 ? !is_c1 : (s[0] >= 0x20 && s[0] < 0x7F && s[0] != '\\');
}

const char *sl__quote(char *buf, size_t buf_bytes, const char *text, size_t text_bytes)
{
    static const char hex[] = "0123456789abcdef";
    size_t out = 0;
    size_t i = 0;
    if (buf_bytes == 0) {
        return "";
    }
    while (i < text_bytes) {
        const unsigned char *s = (const unsigned char *)text + i;
        size_t n = sl__utf8_char_len(text + i, text_bytes - i);
        bool plain = n > 0 && is_plain(s, n);
        size_t need = plain ? n : 4;
        if (out + need + 4 > buf_bytes) {
            size_t room = buf_bytes - 1 - out;
            size_t dots = room < 3 ? room : 3;
            memset(buf + out, '.', dots);
            out += dots;
            break;
        }
        if (plain) {
            memcpy(buf + out, s, n);
            i += n;
        } else {
            buf[out] = '\\';
            buf[out + 1] = 'x';
            buf[out + 2] = hex[s[0] >> 4];
            buf[out + 3] = hex[s[0] & 15];
            i += 1;
        }
        out += need;
    }
    buf[out] = '\0';
    return buf;
}
