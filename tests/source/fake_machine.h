/* A folder that stands for a machine: /proc and /sys/fs/cgroup, file by file. */
#ifndef TEST_FAKE_MACHINE_H
#define TEST_FAKE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "sluice/ram.h"

#define KIB UINT64_C(1024)
#define MIB (KIB << 10)
#define GIB (KIB << 20)

#define CGROUP2_LINE                                                                               \
    "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define CGROUP1_LINE "34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define V2           "/sys/fs/cgroup"
#define V1           "/sys/fs/cgroup/memory"

typedef struct fake_machine {
    char *root;
    sl_ram_budget budget; /* of the last fake_derive */
} fake_machine;

/* cmocka fixture: *state is a fake_machine with 64 GiB, of which 32 are available, and no control groups. */
int fake_set_up(void **state);
int fake_tear_down(void **state);

/* Writes a file with all folders above it; `path` as the machine names it. */
void fake_put(const fake_machine *m, const char *path, const char *text);
void fake_put_bytes(const fake_machine *m, const char *path, const void *data, size_t n_bytes);
void fake_remove(const fake_machine *m, const char *path);

/* /proc/self/cgroup and /proc/self/mountinfo. */
void fake_groups(const fake_machine *m, const char *cgroup, const char *mountinfo);

/* Derives the budget anew. */
const sl_ram_budget *fake_derive(fake_machine *m);

/* Derives it and fails unless the host alone bounds it. */
void fake_expect_unbounded(fake_machine *m);

/* Derives it and fails unless the smallest limit and the availability are these; the source of the deciding bound. */
const char *fake_expect(fake_machine *m, uint64_t limit, uint64_t available);

/* The line of the derivation whose text holds `part`, NULL if there is none. */
const sl_ram_line *fake_line(const fake_machine *m, const char *part);

size_t fake_n_warnings(const fake_machine *m);

#endif
