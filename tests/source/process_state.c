#define _DEFAULT_SOURCE /* setgroups */

#include "process_state.h"

#include <dirent.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_support.h"

#define NOBODY 65534

size_t process_n_fds(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

bool process_maps(const char *part)
{
    char line[8192];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        found = found || strstr(line, part);
    }
    fclose(f);
    return found;
}

int process_in_child(int (*fn)(void *arg), void *arg, bool as_nobody)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (as_nobody && geteuid() == 0 &&
                (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) {
            _exit(77);
        }
        _exit(fn(arg));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}
