/* The device that these tests run on. */
#ifndef REAL_DEVICE_H
#define REAL_DEVICE_H

/*
 * SLUICE_TEST_DEVICE if it is set (cuda0, ...), else the first Vulkan device; NULL if ggml knows none. Says then on standard
 * output why the tests are skipped, or that SLUICE_NEED_VULKAN asked for it; *ret_status is the program's status.
 */
const char *real_device_find(int *ret_status);

#endif
