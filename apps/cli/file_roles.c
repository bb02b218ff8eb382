#include "file_roles.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "options.h"
#include "report.h"

static bool is_same_file(const char *a, const char *b)
{
    struct stat sa;
    struct stat sb;
    if (strcmp(a, b) == 0) {
        return true;
    }
    if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0 || stat(a, &sa) != 0 || stat(b, &sb) != 0) {
        return false;
    }
    /* Terminals and /dev/null may serve many at once. */
    return S_ISREG(sa.st_mode) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* An output that does not exist yet is compared by name only; its folder must take it. */
static int check_folder(const char *command, const file_role *role)
{
    struct stat st;
    char quoted[256];
    const char *slash = strrchr(role->path, '/');
    if (strcmp(role->path, "-") == 0 || stat(role->path, &st) == 0) {
        return OPT_RUN;
    }
    size_t n = slash ? (size_t)(slash - role->path) + 1 : 1;
    char *dir = sl__strndup(slash ? role->path : ".", n);
    sl_error err;
    if (!dir) {
        (void)sl__fail_nomem(&err, n, "a path");
        return report_error(command, &err);
    }
    bool is_usable = stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && access(dir, W_OK | X_OK) == 0;
    sl__free(dir);
    if (is_usable) {
        return OPT_RUN;
    }
    (void)sl__fail(&err, SL_ENOENT, "%s %s: its folder does not exist or cannot be written",
            role->name, sl__quote(quoted, sizeof quoted, role->path, strlen(role->path)));
    return report_error(command, &err);
}

int file_roles_check(const char *command, const file_role *roles, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; roles[i].path && j < i; j++) {
            bool is_stream = strcmp(roles[i].path, "-") == 0;
            bool may_share = !roles[i].is_output && !roles[j].is_output && !is_stream;
            bool other_way = roles[i].is_output != roles[j].is_output && is_stream;
            if (!roles[j].path || may_share || other_way ||
                    !is_same_file(roles[i].path, roles[j].path)) {
                continue;
            }
            char quoted[256];
            return report_usage(command, "%s and %s are the same file, '%s'", roles[j].name,
                    roles[i].name,
                    sl__quote(quoted, sizeof quoted, roles[i].path, strlen(roles[i].path)));
        }
    }
    for (size_t i = 0; i < n; i++) {
        int status =
                roles[i].is_output && roles[i].path ? check_folder(command, &roles[i]) : OPT_RUN;
        if (status != OPT_RUN) {
            return status;
        }
    }
    return OPT_RUN;
}
