#define _GNU_SOURCE /* getxattr's header */

#include "program_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HEAD_BYTES  4096 /* program headers and #! lines lie in front */
#define MAX_SCRIPTS 4    /* as many interpreters as the kernel follows */

#if UINTPTR_MAX > UINT32_MAX
typedef Elf64_Ehdr elf_header;
typedef Elf64_Phdr elf_segment;
#define OWN_CLASS ELFCLASS64
#else
typedef Elf32_Ehdr elf_header;
typedef Elf32_Phdr elf_segment;
#define OWN_CLASS ELFCLASS32
#endif

typedef struct head {
    char bytes[HEAD_BYTES + 1]; /* a NUL behind them */
    size_t n;
} head;

static bool read_head(const char *path, head *h)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    ssize_t n = pread(fd, h->bytes, HEAD_BYTES, 0);
    close(fd);
    h->n = n > 0 ? (size_t)n : 0;
    h->bytes[h->n] = '\0';
    return n > 0;
}

static bool is_elf(const head *h)
{
    return h->n >= sizeof(elf_header) && memcmp(h->bytes, ELFMAG, SELFMAG) == 0;
}

/* The dynamic linker that an ELF file asks for; "" if none. Points into the head. */
static const char *linker_of(const head *h)
{
    elf_header e;
    memcpy(&e, h->bytes, sizeof e);
    for (size_t i = 0; i < e.e_phnum; i++) {
        elf_segment s;
        size_t at = (size_t)e.e_phoff + i * sizeof s;
        if (e.e_phoff > h->n || at + sizeof s > h->n) {
            break;
        }
        memcpy(&s, h->bytes + at, sizeof s);
        if (s.p_type == PT_INTERP && s.p_offset < h->n) {
            return h->bytes + s.p_offset;
        }
    }
    return "";
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static program_kind judge_elf(const head *h)
{
    static const char self[] = "/proc/self/exe";
    head own;
    elf_header theirs;
    elf_header ours;
    memcpy(&theirs, h->bytes, sizeof theirs);
    if (theirs.e_ident[EI_CLASS] != OWN_CLASS) {
        return PROGRAM_FOREIGN;
    }
    if (!read_head(self, &own) || !is_elf(&own)) {
        return PROGRAM_FINE;
    }
    memcpy(&ours, own.bytes, sizeof ours);
    if (theirs.e_machine != ours.e_machine) {
        return PROGRAM_FOREIGN;
    }
    const char *linker = linker_of(h);
    if (!*linker) {
        return PROGRAM_STATIC;
    }
    return strcmp(last_part(linker), last_part(linker_of(&own))) == 0 ? PROGRAM_FINE
                                                                      : PROGRAM_FOREIGN;
}

static bool is_privileged(const char *path, const struct stat *st)
{
    bool has_other_user = (st->st_mode & S_ISUID) != 0 && st->st_uid != geteuid();
    bool has_other_group = (st->st_mode & S_ISGID) != 0 && st->st_gid != getegid();
    bool has_rights = geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
    return has_other_user || has_other_group || has_rights;
}

/* The interpreter of a script, in place; false if the file is none. */
static bool interpreter_of(head *h, char **ret)
{
    if (h->n < 3 || memcmp(h->bytes, "#!", 2) != 0) {
        return false;
    }
    char *begin = h->bytes + 2 + strspn(h->bytes + 2, " \t");
    begin[strcspn(begin, " \t\n")] = '\0';
    *ret = begin;
    return *begin != '\0';
}

static program_kind judge(const char *path)
{
    char script[HEAD_BYTES];
    for (int i = 0; i <= MAX_SCRIPTS; i++) {
        head h;
        struct stat st;
        char *next = NULL;
        if (stat(path, &st) != 0) {
            return PROGRAM_MISSING;
        }
        if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0) {
            return PROGRAM_FORBIDDEN;
        }
        /* A file that may be run but not read is run: nothing is known against it. */
        if (!read_head(path, &h)) {
            return PROGRAM_FINE;
        }
        if (is_elf(&h)) {
            program_kind kind = judge_elf(&h);
            return kind == PROGRAM_FINE && is_privileged(path, &st) ? PROGRAM_PRIVILEGED : kind;
        }
        if (!interpreter_of(&h, &next)) {
            return PROGRAM_FINE;
        }
        snprintf(script, sizeof script, "%s", next);
        path = script;
    }
    return PROGRAM_FINE;
}

program_kind program_look(const char *command, char *ret_path, size_t path_bytes)
{
    program_kind kind = PROGRAM_MISSING;
    if (strchr(command, '/')) {
        snprintf(ret_path, path_bytes, "%s", command);
        return judge(ret_path);
    }
    const char *dirs = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): nothing sets variables */
    dirs = dirs ? dirs : "/bin:/usr/bin";
    snprintf(ret_path, path_bytes, "%s", command);
    for (const char *dir = dirs;; dir++) {
        char path[HEAD_BYTES];
        size_t n = strcspn(dir, ":");
        snprintf(path, sizeof path, "%.*s%s%s", (int)n, dir, n > 0 ? "/" : "", command);
        program_kind found = judge(path);
        if (found != PROGRAM_MISSING) {
            snprintf(ret_path, path_bytes, "%s", path);
            kind = found;
        }
        dir += n;
        if (!*dir || (found != PROGRAM_MISSING && found != PROGRAM_FORBIDDEN)) {
            return kind;
        }
    }
}

const char *program_kind_text(program_kind kind)
{
    static const char *const texts[PROGRAM_KIND_COUNT] = {
            [PROGRAM_FINE] = "can be run",
            [PROGRAM_MISSING] = "is not there",
            [PROGRAM_FORBIDDEN] = "may not be run",
            [PROGRAM_STATIC] = "is linked statically",
            [PROGRAM_FOREIGN] = "is of another machine or another C library",
            [PROGRAM_PRIVILEGED] = "runs with rights of its own",
    };
    return kind < PROGRAM_KIND_COUNT ? texts[kind] : "is unknown";
}
