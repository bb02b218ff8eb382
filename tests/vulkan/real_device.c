#include "real_device.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s2/placement.h"

#define SKIPPED 77

const char *real_device_find(int *ret_status)
{
    static char name[64];
    const sl_logger quiet = {0};
    const char *wanted = getenv("SLUICE_TEST_DEVICE");
    sl_device_info *infos = NULL;
    size_t n = 0;
    sl_error err = {0};
    if (s2_devices_list(&quiet, &infos, &n, &err) < 0) {
        printf("failed: %s\n", err.msg);
        *ret_status = 1;
        return NULL;
    }
    for (size_t i = n; i > 0; i--) {
        const char *this = infos[i - 1].name;
        if (wanted ? strcmp(this, wanted) == 0 : strncmp(this, "vulkan", 6) == 0) {
            snprintf(name, sizeof name, "%s", this);
        }
    }
    s2_devices_free(infos);
    if (name[0] == '\0') {
        bool is_needed = wanted || getenv("SLUICE_NEED_VULKAN");
        printf("%s: ggml knows no %s device\n", is_needed ? "failed" : "skipped",
                wanted ? wanted : "Vulkan");
        *ret_status = is_needed ? 1 : SKIPPED;
        return NULL;
    }
    return name;
}
