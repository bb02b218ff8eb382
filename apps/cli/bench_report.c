#include "bench_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/json_writer.h"
#include "os/os_out_file.h"
#include "report.h"

/* 0 if there is nothing to compare with. */
static double ratio(const bench_row *row, double to_bytes_per_s)
{
    return to_bytes_per_s > 0 ? row->best_bytes_per_s / to_bytes_per_s : 0;
}

static double of_limit(const bench_row *row, const bench_transfer_result *result)
{
    return ratio(row, result->rows[0].best_bytes_per_s);
}

static double of_set(const bench_row *row, const bench_transfer_result *result)
{
    return ratio(row, result->rows[1].best_bytes_per_s);
}

static double of_disk(const bench_row *row, const bench_transfer_result *result)
{
    return ratio(row, result->disk_bytes_per_s);
}

/* The route of the row of automatic choice, which is the last one. */
static const char *chosen(const bench_transfer_result *result)
{
    sl__route route = result->rows[result->n_rows - 1].route;
    return route == SL__ROUTE_AUTO ? "none, since there are too few bytes to try each"
                                   : sl__route_name(route);
}

static void print_row(const bench_row *row, const bench_transfer_result *result)
{
    char threads[24] = "-";
    char ring[48] = "-";
    char disk[24] = "-";
    if (row->failure.code < 0) {
        printf("%-11s not possible: %s\n", row->name, row->failure.msg);
        return;
    }
    if (row->n_threads > 0) {
        snprintf(threads, sizeof threads, "%zu", row->n_threads);
    }
    if (row->n_slots > 0) {
        snprintf(ring, sizeof ring, "%zux%zuK", row->n_slots, row->slot_bytes >> 10);
    }
    if (result->disk_bytes_per_s > 0) {
        snprintf(disk, sizeof disk, "%.1f%%", 100 * of_disk(row, result));
    }
    printf("%-11s %7s %8s %8.2f %8.2f %6.1f%% %8s %6.2fx %8" PRIu64 " %7" PRIu64 " %7.2f %8.1f\n",
            row->name, threads, ring, row->best_bytes_per_s / 1e9, row->median_bytes_per_s / 1e9,
            100 * of_limit(row, result), disk, of_set(row, result), row->n_uploads, row->n_stalls,
            row->cpu_s, row->setup_s * 1e3);
}

void bench_print_table(const bench_about *about, const bench_transfer_result *result)
{
    char size[32];
    printf("%s of %s to %s (%s), page cache %s\n",
            sl__byte_text(result->n_bytes, size, sizeof size), about->source, about->device,
            about->machine, about->is_cold ? "cold" : "warm");
    if (!result->has_pinned) {
        printf("The device pins no memory: the limit is that of plain memory.\n");
    }
    printf("\n%-11s %7s %8s %8s %8s %7s %8s %7s %8s %7s %7s %8s\n", "route", "threads", "ring",
            "GB/s", "median", "limit", "disk", "set", "uploads", "stalls", "CPU s", "setup ms");
    for (size_t i = 0; i < result->n_rows; i++) {
        print_row(&result->rows[i], result);
    }
    printf("\n");
    for (size_t i = 0; i < result->n_rows; i++) {
        const bench_row *row = &result->rows[i];
        if (i == 0 || strcmp(row->name, result->rows[i - 1].name) != 0) {
            printf("%-11s %s\n", row->name, row->about);
        }
    }
    printf("\nauto took: %s\n", chosen(result));
}

static void put_row(sl__json *j, const bench_row *row, const bench_transfer_result *result)
{
    sl__json_object(j);
    sl__json_put_cstr(j, "name", row->name);
    sl__json_put_cstr(j, "about", row->about);
    sl__json_put_cstr(j, "route", sl__route_name(row->route));
    sl__json_put_u64(j, "threads", row->n_threads);
    sl__json_put_u64(j, "slots", row->n_slots);
    sl__json_put_u64(j, "slot_bytes", row->slot_bytes);
    sl__json_put_f64(j, "gb_s", row->best_bytes_per_s / 1e9);
    sl__json_put_f64(j, "gb_s_median", row->median_bytes_per_s / 1e9);
    sl__json_put_f64(j, "of_limit", of_limit(row, result));
    sl__json_key(j, "of_disk");
    if (result->disk_bytes_per_s > 0) {
        sl__json_f64(j, of_disk(row, result));
    } else {
        sl__json_null(j);
    }
    sl__json_put_f64(j, "of_set", of_set(row, result));
    sl__json_put_f64(j, "setup_s", row->setup_s);
    sl__json_put_f64(j, "cpu_s", row->cpu_s);
    sl__json_put_u64(j, "uploads", row->n_uploads);
    sl__json_put_u64(j, "waits", row->n_waits);
    sl__json_put_u64(j, "stalls", row->n_stalls);
    sl__json_put_cstr(j, "failed", row->failure.code < 0 ? row->failure.msg : NULL);
    sl__json_end(j);
}

int bench_print_json(
        const bench_about *about, const bench_transfer_result *result, sl_error *reterr)
{
    sl__json j = {0};
    sl__json_object(&j);
    sl__json_put_cstr(&j, "machine", about->machine);
    sl__json_put_cstr(&j, "device", about->device);
    sl__json_put_cstr(&j, "source", about->source);
    sl__json_put_bool(&j, "cold", about->is_cold);
    sl__json_put_u64(&j, "bytes", result->n_bytes);
    sl__json_put_bool(&j, "limit_is_pinned", result->has_pinned);
    sl__json_put_cstr(&j, "chosen", sl__route_name(result->rows[result->n_rows - 1].route));
    sl__json_key(&j, "rows");
    sl__json_array(&j);
    for (size_t i = 0; i < result->n_rows; i++) {
        put_row(&j, &result->rows[i], result);
    }
    sl__json_end(&j);
    sl__json_end(&j);
    return report_json(&j, reterr);
}

/* A text as a field in quotes: those inside are doubled. */
static int write_text(sl__out_file *file, const char *text, sl_error *reterr)
{
    int r = sl__out_file_write(file, "\"", 1, reterr);
    while (*text && r == 0) {
        size_t n = strcspn(text, "\"");
        r = sl__out_file_write(file, text, n, reterr);
        text += n;
        if (r == 0 && *text == '"') {
            r = sl__out_file_write(file, "\"\"", 2, reterr);
            text++;
        }
    }
    return r < 0 ? r : sl__out_file_write(file, "\",", 2, reterr);
}

static int write_row(sl__out_file *file, const bench_about *about, const bench_row *row,
        const bench_transfer_result *result, sl_error *reterr)
{
    char line[400];
    char disk[24] = "";
    int r = write_text(file, about->machine, reterr);
    r = r < 0 ? r : write_text(file, about->device, reterr);
    r = r < 0 ? r : write_text(file, about->source, reterr);
    if (result->disk_bytes_per_s > 0) {
        snprintf(disk, sizeof disk, "%.4f", of_disk(row, result));
    }
    snprintf(line, sizeof line,
            "%s,%" PRIu64 ",%s,%s,%zu,%zu,%zu,%.3f,%.3f,%.4f,%s,%.3f,%.4f,%.3f,%" PRIu64 ",%" PRIu64
            ",%" PRIu64 ",%s\n",
            about->is_cold ? "cold" : "warm", result->n_bytes, row->name,
            sl__route_name(row->route), row->n_threads, row->n_slots, row->slot_bytes,
            row->best_bytes_per_s / 1e9, row->median_bytes_per_s / 1e9, of_limit(row, result), disk,
            of_set(row, result), row->setup_s, row->cpu_s, row->n_uploads, row->n_waits,
            row->n_stalls, row->failure.code < 0 ? "no" : "yes");
    return r < 0 ? r : sl__out_file_write(file, line, strlen(line), reterr);
}

int bench_write_csv(const char *path, const bench_about *about, const bench_transfer_result *result,
        sl_error *reterr)
{
    static const char head[] = "machine,device,source,cache,bytes,name,route,threads,slots,slot_"
                               "bytes,gb_s,gb_s_median,of_limit,"
                               "of_disk,of_set,setup_s,cpu_s,uploads,waits,stalls,possible\n";
    sl__out_file *file = NULL;
    int r = sl__out_file_open(path, 0666, &file, reterr);
    if (r < 0) {
        return r;
    }
    r = sl__out_file_write(file, head, sizeof head - 1, reterr);
    for (size_t i = 0; i < result->n_rows && r == 0; i++) {
        r = write_row(file, about, &result->rows[i], result, reterr);
    }
    if (r == 0) {
        r = sl__out_file_commit(&file, reterr);
    }
    sl__out_file_discard(&file);
    return r;
}
