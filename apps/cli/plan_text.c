/*
 * Names come from the command line or the program, but may hold any bytes: they are escaped and cut to their column.
 * A run of many segments repeats itself, so only its first steps are listed.
 */
#include "plan_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/status.h"

#define STEPS_MAX    24
#define WIDTH        96
#define NAME_BYTES   64
#define MOVES_COLUMN 39

typedef struct table {
    const plan_view *view;
    FILE *out;
} table;

static const char *size_text(uint64_t n, char *buf, size_t buf_bytes)
{
    if (n == 0) {
        snprintf(buf, buf_bytes, "-");
        return buf;
    }
    return sl__byte_text(n, buf, buf_bytes);
}

static const char *quote(const char *name, char *buf, size_t buf_bytes)
{
    return sl__quote(buf, buf_bytes, name, strlen(name));
}

static size_t n_shown_steps(const plan_view *view)
{
    size_t n = sl_plan_n_steps(view->plan);
    return n < STEPS_MAX ? n : STEPS_MAX;
}

static void print_head(const table *t)
{
    char name[NAME_BYTES * 2];
    char text[32];
    const plan_view *v = t->view;
    fprintf(t->out, "Plan for %s: policy %s", quote(plan_model_name(v), name, sizeof name),
            sl_policy_name(v->request->policy));
    if (v->n_frames > 0) {
        fprintf(t->out, ", %" PRIu64 " frames (%s of speech)", v->n_frames,
                plan_seconds_text(v->speech_s, text, sizeof text));
    }
    fputc('\n', t->out);
}

static void print_places(const table *t)
{
    char name[20];
    char text[3][40];
    const sl_plan_request *q = t->view->request;
    const char *most = sl_plan_is_feasible(t->view->plan) ? "peak" : "needs";
    fprintf(t->out, "\n  %-18s %11s %11s %11s  %s\n", "device", "budget", most, "floor", "link");
    for (size_t i = 0; i < q->n_places; i++) {
        uint64_t peak = plan_peak_or_need(t->view, i).total;
        uint64_t floor = sl_plan_floor(t->view->plan, i);
        bool is_short = floor > q->places[i].budget_bytes;
        fprintf(t->out, "  %-18s %11s %11s %11s  ",
                quote(plan_place_name(t->view, i), name, sizeof name),
                plan_budget_text(q->places[i].budget_bytes, text[0], sizeof text[0]),
                size_text(peak, text[1], sizeof text[1]),
                size_text(floor, text[2], sizeof text[2]));
        if (q->places[i].link_bytes_per_s > 0) {
            double speed = q->places[i].link_bytes_per_s;
            uint64_t whole = speed < 1e18 ? (uint64_t)speed : UINT64_C(1000000000000000000);
            fprintf(t->out, "%s/s%s\n", sl__byte_text(whole, text[0], sizeof text[0]),
                    is_short ? "; does not fit" : "");
        } else {
            fprintf(t->out, "-%s\n", is_short ? "; does not fit" : "");
        }
    }
}

static void print_units(const table *t)
{
    char name[28];
    char place[20];
    char second[20];
    char size[32];
    const sl_plan_request *q = t->view->request;
    const size_t *placement = sl_plan_placement(t->view->plan);
    fprintf(t->out, "\n  %-24s %11s  %-18s %s\n", "unit", "bytes", "on", "or on");
    for (size_t u = 0; u < q->n_units; u++) {
        const sl_plan_unit *unit = &q->units[u];
        bool has_second = unit->i_second != SL_PLAN_NONE && unit->i_second != unit->i_place;
        fprintf(t->out, "  %-24s %11s  %-18s %s",
                quote(plan_unit_name(t->view, u), name, sizeof name),
                unit->n_bytes > 0 ? sl__byte_text(unit->n_bytes, size, sizeof size) : "in place",
                quote(plan_place_name(t->view, unit->i_place), place, sizeof place),
                has_second ? quote(plan_place_name(t->view, unit->i_second), second, sizeof second)
                           : "-");
        if (placement && placement[u] != unit->i_place) {
            fprintf(t->out, "; would fit on %s",
                    quote(plan_place_name(t->view, placement[u]), place, sizeof place));
        }
        fputc('\n', t->out);
    }
}

static void print_peak(const table *t, size_t i_step, size_t i_place)
{
    char text[6][32];
    char place[16];
    sl_plan_bytes peak = sl_plan_peak(t->view->plan, i_step, i_place);
    for (int k = 0; k < SL_MEM_KIND_COUNT; k++) {
        size_text(peak.kind[k], text[k], sizeof text[k]);
    }
    fprintf(t->out, " %-14s %10s %10s %10s %10s %10s",
            quote(plan_place_name(t->view, i_place), place, sizeof place), text[SL_MEM_WEIGHTS],
            text[SL_MEM_KV], text[SL_MEM_COMPUTE], text[SL_MEM_STAGING],
            size_text(peak.total, text[4], sizeof text[4]));
    if (sl_plan_is_feasible(t->view->plan)) {
        uint64_t moved = plan_step_moved(t->view, i_step, i_place);
        fprintf(t->out, " %10s", size_text(moved, text[5], sizeof text[5]));
    }
    fputc('\n', t->out);
}

static void print_steps(const table *t)
{
    char name[16];
    bool fits = sl_plan_is_feasible(t->view->plan);
    fprintf(t->out, "\n  %-14s %-14s %10s %10s %10s %10s %10s%s\n", fits ? "phase" : "phase needs",
            "device", "weights", "kv", "compute", "staging", fits ? "peak" : "sum",
            fits ? "      moved" : "");
    for (size_t i = 0; i < n_shown_steps(t->view); i++) {
        bool is_first = true;
        for (size_t k = 0; k < t->view->request->n_places; k++) {
            if (sl_plan_peak(t->view->plan, i, k).total == 0) {
                continue;
            }
            const char *step = is_first ? plan_step_name(t->view, i) : "";
            fprintf(t->out, "  %-14s", quote(step, name, sizeof name));
            print_peak(t, i, k);
            is_first = false;
        }
        if (is_first) {
            fprintf(t->out, "  %-14s no memory of any device\n",
                    quote(plan_step_name(t->view, i), name, sizeof name));
        }
    }
    size_t n_more = sl_plan_n_steps(t->view->plan) - n_shown_steps(t->view);
    if (n_more > 0) {
        fprintf(t->out, "  ... and %zu phases more (--json lists all)\n", n_more);
    }
}

/* Appends a word to a list that is wrapped; returns the column. */
static size_t print_word(const table *t, size_t column, size_t indent, const char *word)
{
    char text[NAME_BYTES];
    quote(word, text, sizeof text);
    if (column + strlen(text) + 1 > WIDTH) {
        fprintf(t->out, "\n%*s", (int)indent, "");
        column = indent;
    }
    fprintf(t->out, " %s", text);
    return column + strlen(text) + 1;
}

static size_t print_moves(const table *t, size_t i_step, size_t column, sl_plan_event_kind kind,
        sl_plan_role role, const char *word)
{
    const size_t indent = MOVES_COLUMN;
    bool is_first = true;
    for (size_t i = 0; i < sl_plan_n_events(t->view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(t->view->plan, i);
        bool is_move = e->i_step == i_step && e->kind == kind && e->n_bytes > 0;
        if (!is_move || sl_plan_unit_role(t->view->plan, i_step, e->i_unit) != role) {
            continue;
        }
        if (is_first) {
            fputs(column > MOVES_COLUMN ? ";" : "", t->out);
            column = print_word(t, column + (column > MOVES_COLUMN), indent, word);
            is_first = false;
        }
        column = print_word(t, column, indent, plan_unit_name(t->view, e->i_unit));
    }
    return column;
}

static void print_timetable(const table *t)
{
    char name[16];
    char wait[32];
    char compute[32];
    fprintf(t->out, "\n  %-14s %10s %10s  %s\n", "phase", "waits", "computes", "moves");
    for (size_t i = 0; i < n_shown_steps(t->view); i++) {
        double seconds = plan_step_phase(t->view, i)->seconds;
        double waits = plan_step_wait(t->view, i);
        fprintf(t->out, "  %-14s %10s %10s ", quote(plan_step_name(t->view, i), name, sizeof name),
                waits > 0 ? plan_seconds_text(waits, wait, sizeof wait) : "-",
                seconds > 0 ? plan_seconds_text(seconds, compute, sizeof compute) : "not known");
        size_t column = MOVES_COLUMN;
        column = print_moves(t, i, column, SL_PLAN_EVICT, SL_PLAN_ABSENT, "out");
        column = print_moves(t, i, column, SL_PLAN_LOAD, SL_PLAN_NEEDED, "in");
        column = print_moves(t, i, column, SL_PLAN_LOAD, SL_PLAN_AHEAD, "ahead");
        fprintf(t->out, "%s\n", column == MOVES_COLUMN ? " -" : "");
    }
}

static void print_sum(const table *t)
{
    char moved[32];
    char total[32];
    char wait[32];
    const plan_view *v = t->view;
    size_text(sl_plan_bytes_moved(v->plan), moved, sizeof moved);
    fprintf(t->out, "\n  The run moves %s", sl_plan_bytes_moved(v->plan) > 0 ? moved : "nothing");
    if (sl_plan_seconds(v->plan) > 0) {
        plan_seconds_text(sl_plan_seconds(v->plan), total, sizeof total);
        plan_seconds_text(plan_wait(v), wait, sizeof wait);
        fprintf(t->out, " and takes %s, %s%s waiting for weights.\n", total,
                plan_wait(v) > 0 ? "of it " : "", plan_wait(v) > 0 ? wait : "without");
    } else {
        fprintf(t->out, "; speeds are not known, so it has no times.\n");
    }
}

static void print_actual(const table *t, const plan_actual *a)
{
    char took[32];
    char planned[32];
    char name[NAME_BYTES];
    plan_seconds_text(a->end_s, took, sizeof took);
    plan_seconds_text(sl_plan_seconds(t->view->plan), planned, sizeof planned);
    fprintf(t->out, "\nThe trace (policy %s%s%s)\n", quote(a->policy, name, sizeof name),
            a->follows ? "" : "; its phases are not those of the plan",
            a->n_dropped > 0 ? "; its beginning was no longer there" : "");
    fprintf(t->out, "  %-18s %11s %11s\n  %-18s %11s %11s\n", "", "planned", "actual", "time",
            planned, took);
    for (size_t i = 0; i < a->n_places; i++) {
        uint64_t plan = plan_peak_or_need(t->view, i).total;
        uint64_t held = a->places[i].peak.total;
        if (!a->places[i].is_known || (plan == 0 && held == 0)) {
            continue;
        }
        fprintf(t->out, "  %-18s %11s %11s", quote(plan_place_name(t->view, i), name, 20),
                size_text(plan, planned, sizeof planned), size_text(held, took, sizeof took));
        if (plan > 0) {
            fprintf(t->out, "  %.1f%%%s", 100.0 * (double)held / (double)plan,
                    held > plan ? ", more than planned" : "");
        }
        fputc('\n', t->out);
    }
}

static void print_sources(const table *t)
{
    if (t->view->n_sources == 0) {
        return;
    }
    fprintf(t->out, "\nWhere the numbers come from\n");
    for (size_t i = 0; i < t->view->n_sources; i++) {
        char what[NAME_BYTES];
        const plan_source *s = &t->view->sources[i];
        size_t column = 22;
        fprintf(t->out, "  %-20s", quote(s->what, what, sizeof what));
        for (const char *word = s->from; *word;) {
            char text[NAME_BYTES];
            size_t n = strcspn(word, " ");
            snprintf(text, sizeof text, "%.*s", (int)n, word);
            column = print_word(t, column, 22, text);
            word += n + (word[n] == ' ');
        }
        fputc('\n', t->out);
    }
}

void plan_print_text(const plan_view *view, const plan_actual *actual, FILE *out)
{
    table t = {view, out};
    print_head(&t);
    print_places(&t);
    print_units(&t);
    print_steps(&t);
    if (sl_plan_is_feasible(view->plan)) {
        print_timetable(&t);
        print_sum(&t);
    }
    if (actual) {
        print_actual(&t, actual);
    }
    print_sources(&t);
}
