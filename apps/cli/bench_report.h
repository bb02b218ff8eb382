/* Results of `sluice bench transfer` for people and programs. */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include "bench_transfer.h"

/* What was measured where. */
typedef struct bench_about {
    const char *machine;
    const char *device;
    const char *source; /* path of the model, or "noise" */
    bool is_cold;       /* the page cache was dropped before each run */
} bench_about;

/* GB are 10^9 bytes. */
void bench_print_table(const bench_about *about, const bench_transfer_result *result);

/*
 * {"machine","device","source","cold","bytes","limit_is_pinned","chosen": route of auto, "auto" if there were too few
 * bytes to choose,"rows":[{"name","about","route","threads","slots","slot_bytes": 0 = as a load takes,"gb_s",
 * "gb_s_median","of_limit","of_disk": of the best row "disk", null without one,"of_set","setup_s","cpu_s","uploads",
 * "waits","stalls","failed": null or why}]}.
 * Errors: SL_ENOMEM.
 */
int bench_print_json(const bench_about *about, const bench_transfer_result *result,
        sl_error *reterr) SL_MUST_CHECK;

/* A line of names, then a line a row; of_disk is empty without a row "disk". Errors: those of sl__out_file. */
int bench_write_csv(const char *path, const bench_about *about, const bench_transfer_result *result,
        sl_error *reterr) SL_MUST_CHECK;

#endif
