/*
 * ggml's back ends as they are known to this process.
 *
 * Threads: one at a time; loading, which sets defaults in the environment, before others are started.
 */
#ifndef S2_NN_BACK_ENDS_H
#define S2_NN_BACK_ENDS_H

#include <stddef.h>

struct ggml_backend_device;

/*
 * Makes back ends known that are files of their own: those of $SLUICE_GGML_BACKENDS, or of the folder this program
 * was built with; none are loaded if ggml knows a CPU already. From then on ggml prints errors alone.
 */
void s2_back_ends_load(void);

/* The devices of all of them. */
size_t s2_back_ends_count(void);
struct ggml_backend_device *s2_back_ends_device(size_t i);

#endif
