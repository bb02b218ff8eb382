/* Facts of this process and machine. Any thread. */
#ifndef SL_OS_PROCESS_H
#define SL_OS_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/* Memory of this process in bytes; a figure that the system does not give is 0. */
typedef struct sl__rss {
    uint64_t anon_bytes; /* private memory: heap, stacks, buffers */
    uint64_t file_bytes; /* mapped file pages that are present */
    uint64_t peak_bytes; /* highest resident size so far, of any kind */
} sl__rss;
sl__rss sl__process_rss(void);

/* Processors this process may run on, at least 1 (affinity and cgroup quota respected). */
unsigned sl__n_cpus(void);

size_t sl__page_bytes(void);

/* Asks for large pages behind memory of this process's own, which is not touched yet; where there are none nothing changes. */
void sl__advise_large_pages(void *data, size_t n_bytes);

#endif
