#include "fake_machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test_support.h"

static void path_below(char *buf, size_t n, const fake_machine *m, const char *path)
{
    int length = snprintf(buf, n, "%s%s", m->root, path);
    assert_true(length > 0 && (size_t)length < n);
}

void fake_put_bytes(const fake_machine *m, const char *path, const void *data, size_t n_bytes)
{
    char full[4200];
    path_below(full, sizeof full, m, path);
    for (char *p = full + strlen(m->root) + 1; *p; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(full, 0700);
            *p = '/';
        }
    }
    test_write_file(full, data, n_bytes);
}

void fake_put(const fake_machine *m, const char *path, const char *text)
{
    fake_put_bytes(m, path, text, strlen(text));
}

void fake_remove(const fake_machine *m, const char *path)
{
    char full[4200];
    path_below(full, sizeof full, m, path);
    assert_int_equal(remove(full), 0);
}

void fake_groups(const fake_machine *m, const char *cgroup, const char *mountinfo)
{
    fake_put(m, "/proc/self/cgroup", cgroup);
    fake_put(m, "/proc/self/mountinfo", mountinfo);
}

int fake_set_up(void **state)
{
    fake_machine *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->root = test_dir_create();
    fake_put(m, "/proc/meminfo",
            "MemTotal:       67108864 kB\nMemFree:        30000000 kB\nMemAvailable:   33554432 "
            "kB\n");
    *state = m;
    return 0;
}

int fake_tear_down(void **state)
{
    fake_machine *m = *state;
    sl_ram_budget_done(&m->budget);
    test_dir_remove(m->root);
    free(m);
    return 0;
}

const sl_ram_budget *fake_derive(fake_machine *m)
{
    sl_error err = {0};
    sl_ram_opts opts = {.root = m->root};
    sl_ram_budget_done(&m->budget);
    assert_ok(sl_ram_budget_read(&opts, &m->budget, &err), &err);
    /* Nothing of the folder that stands for the machine shows. */
    for (size_t i = 0; i < m->budget.n_lines; i++) {
        assert_null(strstr(m->budget.lines[i].source, m->root));
        assert_null(strstr(m->budget.lines[i].text, m->root));
        assert_null(strchr(m->budget.lines[i].text, '\n'));
    }
    return &m->budget;
}

void fake_expect_unbounded(fake_machine *m)
{
    const sl_ram_budget *b = fake_derive(m);
    assert_true(b->is_known);
    if (b->n_bounds != 1) {
        fail_msg("%zu bounds, the last from %s", b->n_bounds, b->bounds[b->n_bounds - 1].source);
    }
    assert_int_equal(b->limit_bytes, SL_RAM_NO_LIMIT);
    assert_int_equal(sl_ram_decided(b)->kind, SL_RAM_HOST);
}

const char *fake_expect(fake_machine *m, uint64_t limit, uint64_t available)
{
    const sl_ram_budget *b = fake_derive(m);
    if (!b->is_known || b->limit_bytes != limit || b->available_bytes != available) {
        fail_msg("limit %" PRIu64 " available %" PRIu64 ", need %" PRIu64 " and %" PRIu64,
                b->limit_bytes, b->available_bytes, limit, available);
    }
    return sl_ram_decided(b)->source;
}

const sl_ram_line *fake_line(const fake_machine *m, const char *part)
{
    for (size_t i = 0; i < m->budget.n_lines; i++) {
        if (strstr(m->budget.lines[i].text, part)) {
            return &m->budget.lines[i];
        }
    }
    return NULL;
}

size_t fake_n_warnings(const fake_machine *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->budget.n_lines; i++) {
        n += m->budget.lines[i].is_warning;
    }
    return n;
}
