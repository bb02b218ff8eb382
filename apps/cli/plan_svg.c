/*
 * The frame of the picture: style, title, words for those who do not see it, legend, where the numbers come from.
 * The parts are drawn first, since only then the height is known; the head is written before them.
 */
#include "plan_svg.h"

#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "os/os_out_file.h"
#include "plan_canvas.h"

#define SVG_MODE 0644

/* Colours of units carry white text in both modes; scratch is grey, since it is not moved. */
static const char style[] =
        "<style>\n"
        "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu "
        "Sans',sans-serif;font-size:13px}\n"
        ".t{font-size:20px;font-weight:600}.h{font-size:14px;font-weight:600}.s{font-size:11px}\n"
        ".mid{text-anchor:middle}.end{text-anchor:end}\n"
        ".bg{fill:#fff}.ink{fill:#1b1f24}.dim{fill:#59626d}.red{fill:#b3261e}.green{fill:#1d6b3c}\n"
        ".on{fill:#fff;pointer-events:none}\n"
        ".grid,.axis,.step,.budget,.actual{fill:none}\n"
        ".grid{stroke:#e4e7eb}.axis{stroke:#8a939d}.step{stroke:#8a939d;stroke-dasharray:2 3}\n"
        ".budget{stroke:#b3261e;stroke-width:1.5;stroke-dasharray:7 4}\n"
        ".actual{stroke:#1b1f24;stroke-width:2}.peak{fill:#1b1f24}\n"
        ".layer,.bar,.swatch{stroke:#fff;stroke-width:.75}\n"
        ".u0{fill:#2f6db3}.u1{fill:#b35c1e}.u2{fill:#2f7d50}.u3{fill:#7a55b0}\n"
        ".u4{fill:#b0436a}.u5{fill:#237683}.u6{fill:#77701c}.u7{fill:#8a5a42}\n"
        ".kv{fill:#3f4852}.compute{fill:#65707c}.staging{fill:#7d8792}\n"
        ".phase{fill:#4a5560}.stall{fill:#b3261e}.failed{fill:#b3261e}\n"
        ".over{fill:url(#sluice-over);stroke:#b3261e}.stripe{stroke:#b3261e;stroke-width:2}\n"
        ".faded .layer{fill-opacity:.38}.faded .on{fill:#1b1f24}\n"
        "@media (prefers-color-scheme:dark){\n"
        ".bg{fill:#15181c}.ink{fill:#eceff3}.dim{fill:#a3adb8}.red{fill:#ff8a80}.green{fill:#"
        "7fd6a0}\n"
        ".grid{stroke:#2b3138}.axis,.step{stroke:#6b7580}\n"
        ".budget,.over,.stripe{stroke:#ff8a80}.actual{stroke:#eceff3}.peak{fill:#eceff3}\n"
        ".layer,.bar,.swatch{stroke:#15181c}.faded .on{fill:#eceff3}\n"
        ".faded .layer{fill-opacity:.55}\n"
        "}\n"
        "</style>\n"
        "<defs><pattern id=\"sluice-over\" width=\"7\" height=\"7\" "
        "patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><path class=\"stripe\" d=\"M0 0V7\"/></pattern></defs>\n";

const char *canvas_class(const plan_canvas *c, size_t i_layer, char *buf, size_t buf_bytes)
{
    size_t n_units = c->view->request->n_units;
    if (i_layer < n_units) {
        snprintf(buf, buf_bytes, "u%zu", i_layer % CANVAS_N_HUES);
    } else {
        snprintf(buf, buf_bytes, "%s", sl_mem_kind_name((sl_mem_kind)(i_layer - n_units)));
    }
    return buf;
}

const char *canvas_layer_name(const plan_canvas *c, size_t i_layer)
{
    static const char *const names[SL_MEM_KIND_COUNT] = {
            [SL_MEM_WEIGHTS] = "weights",
            [SL_MEM_KV] = "KV cache",
            [SL_MEM_COMPUTE] = "compute",
            [SL_MEM_STAGING] = "staging",
    };
    size_t n_units = c->view->request->n_units;
    return i_layer < n_units ? plan_unit_name(c->view, i_layer) : names[i_layer - n_units];
}

/* Bytes of `text` that make a line of at most n_chars, broken at a blank if there is one. */
static size_t line_bytes(const char *text, size_t n_chars)
{
    size_t n = strlen(text);
    size_t at = 0;
    size_t blank = 0;
    for (size_t i = 0; i < n_chars && at < n; i++) {
        blank = text[at] == ' ' ? at : blank;
        at++;
        while (at < n && ((unsigned char)text[at] & 0xC0) == 0x80) {
            at++;
        }
    }
    return at < n && text[at] != ' ' && blank > 0 ? blank : at;
}

double canvas_paragraph(
        plan_canvas *c, double x, double y, size_t n_chars, const char *classes, const char *text)
{
    while (*text) {
        char line[512];
        size_t n = line_bytes(text, n_chars);
        n = n < sizeof line ? n : sizeof line - 1;
        memcpy(line, text, n);
        line[n] = '\0';
        svg_put(c->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", classes, x, y);
        svg_text(c->out, line);
        svg_put(c->out, "</text>\n");
        text += n;
        text += *text == ' ';
        y += 18;
    }
    return y;
}

/* One sentence that says how the plan ends. */
static void format_verdict(const plan_view *view, char *buf, size_t buf_bytes)
{
    char moved[32];
    char total[32];
    char wait[32];
    sl_error err = {0};
    if (sl_plan_check(view->plan, &err) < 0) {
        snprintf(buf, buf_bytes, "Does not fit. %s", err.msg);
        return;
    }
    sl__byte_text(sl_plan_bytes_moved(view->plan), moved, sizeof moved);
    if (sl_plan_seconds(view->plan) <= 0) {
        snprintf(buf, buf_bytes, "Fits. %s are moved; speeds are not known.", moved);
        return;
    }
    plan_seconds_text(sl_plan_seconds(view->plan), total, sizeof total);
    plan_seconds_text(plan_wait(view), wait, sizeof wait);
    snprintf(buf, buf_bytes, "Fits. %s are moved; predicted time %s, %s%s waiting for weights.",
            moved, total, plan_wait(view) > 0 ? "of it " : "",
            plan_wait(view) > 0 ? wait : "without");
}

static void format_subtitle(const plan_view *view, char *buf, size_t buf_bytes)
{
    int n = snprintf(buf, buf_bytes, "policy %s", sl_policy_name(view->request->policy));
    for (size_t i = 0; i < view->request->n_places && n > 0 && (size_t)n < buf_bytes; i++) {
        char budget[40];
        uint64_t budget_bytes = view->request->places[i].budget_bytes;
        if (!plan_place_is_used(view, i) || budget_bytes == PLAN_NO_LIMIT) {
            continue;
        }
        plan_budget_text(budget_bytes, budget, sizeof budget);
        n += snprintf(
                buf + n, buf_bytes - (size_t)n, ", %.40s %s", plan_place_name(view, i), budget);
    }
    if (view->n_frames > 0 && n > 0 && (size_t)n < buf_bytes) {
        char speech[32];
        snprintf(buf + n, buf_bytes - (size_t)n, ", %llu frames (%s of speech)",
                (unsigned long long)view->n_frames,
                plan_seconds_text(view->speech_s, speech, sizeof speech));
    }
}

/* What a reader who does not see the picture is told. */
static void put_words(svg_out *o, const plan_view *view, const plan_actual *actual)
{
    char text[1024];
    svg_put(o, "<title id=\"sluice-title\">Memory plan of ");
    svg_text(o, plan_model_name(view));
    svg_put(o, "</title>\n<desc id=\"sluice-desc\">");
    format_subtitle(view, text, sizeof text);
    svg_text(o, text);
    svg_put(o, ". ");
    format_verdict(view, text, sizeof text);
    svg_text(o, text);
    for (size_t i = 0; i < sl_plan_n_steps(view->plan) && i < 16; i++) {
        for (size_t k = 0; k < view->request->n_places; k++) {
            char size[32];
            sl_plan_bytes peak = sl_plan_peak(view->plan, i, k);
            if (peak.total > 0) {
                svg_put(o, " Phase ");
                svg_text(o, plan_step_name(view, i));
                svg_put(o, ": %s on ", sl__byte_text(peak.total, size, sizeof size));
                svg_text(o, plan_place_name(view, k));
                svg_put(o, ".");
            }
        }
    }
    svg_put(o, "%s</desc>\n", actual ? " What a trace says is drawn over it." : "");
}

static void draw_title(plan_canvas *c)
{
    char text[1024];
    svg_put(c->out, "<text class=\"t ink\" x=\"24\" y=\"38\">");
    svg_text_cut(c->out, plan_model_name(c->view), 56);
    svg_put(c->out, c->actual ? ": planned and actual memory</text>\n" : ": memory plan</text>\n");
    format_subtitle(c->view, text, sizeof text);
    c->y = canvas_paragraph(c, 24, 61, 125, "dim", text);
    format_verdict(c->view, text, sizeof text);
    bool fits = sl_plan_is_feasible(c->view->plan);
    c->y = canvas_paragraph(c, 24, c->y, 125, fits ? "green" : "red", text);
}

/* What a place held at most, against the plan. */
static void draw_peak_deviation(plan_canvas *c, size_t i_place)
{
    char held[32];
    char planned[32];
    char text[256];
    uint64_t most = c->actual->places[i_place].peak.total;
    uint64_t plan = sl_plan_peak_of_run(c->view->plan, i_place).total;
    sl__byte_text(most, held, sizeof held);
    sl__byte_text(plan, planned, sizeof planned);
    if (plan > 0) {
        snprintf(text, sizeof text, "%.40s held %s at most, %.1f%% of the %s planned.",
                plan_place_name(c->view, i_place), held, 100.0 * (double)most / (double)plan,
                planned);
    } else {
        snprintf(text, sizeof text, "%.40s held %s at most; nothing was planned there.",
                plan_place_name(c->view, i_place), held);
    }
    c->y = canvas_paragraph(c, 24, c->y, 125, most > plan ? "red" : "ink", text);
}

static void draw_deviation(plan_canvas *c)
{
    char planned[32];
    char took[32];
    char text[256];
    const plan_actual *a = c->actual;
    plan_seconds_text(sl_plan_seconds(c->view->plan), planned, sizeof planned);
    plan_seconds_text(a->end_s, took, sizeof took);
    snprintf(text, sizeof text, "The trace: %s instead of %s%s%s.", took, planned,
            a->follows ? "" : "; its phases are not those of the plan",
            a->n_dropped > 0 ? "; its beginning was no longer there" : "");
    c->y = canvas_paragraph(c, 24, c->y, 125, "ink", text);
    for (size_t i = 0; i < a->n_places; i++) {
        if (a->places[i].peak.total > 0) {
            draw_peak_deviation(c, i);
        }
    }
}

static double legend_item(plan_canvas *c, double x, const char *css, const char *name)
{
    double width = 34 + CANVAS_CHAR_W * (double)(svg_n_chars(name) < 40 ? svg_n_chars(name) : 40);
    if (x + width > CANVAS_LEFT + CANVAS_PLOT_W) {
        x = 24;
        c->y += 20;
    }
    svg_put(c->out,
            "<rect class=\"swatch %s\" x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"12\"/><text "
            "class=\"s ink\" x=\"%.1f\" y=\"%.1f\">",
            css, x, c->y - 10, x + 19, c->y);
    svg_text_cut(c->out, name, 40);
    svg_put(c->out, "</text>\n");
    return x + width;
}

static double legend_mark(plan_canvas *c, double x, const char *markup, const char *name)
{
    double width = 40 + CANVAS_CHAR_W * (double)strlen(name);
    if (x + width > CANVAS_LEFT + CANVAS_PLOT_W) {
        x = 24;
        c->y += 20;
    }
    svg_put(c->out,
            "<g transform=\"translate(%.1f %.1f)\">%s</g><text class=\"s ink\" x=\"%.1f\" "
            "y=\"%.1f\">%s</text>\n",
            x, c->y - 10, markup, x + 25, c->y, name);
    return x + width;
}

static bool has_layer(const plan_canvas *c, size_t i_layer)
{
    for (size_t i = 0; i < c->timeline->n_spans; i++) {
        if (c->timeline->spans[i].i_layer == i_layer) {
            return true;
        }
    }
    return false;
}

static bool has_bar(const plan_canvas *c, sl_plan_event_kind kind)
{
    for (size_t i = 0; i < c->timeline->n_bars; i++) {
        if (c->timeline->bars[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static void draw_legend(plan_canvas *c)
{
    char css[24];
    double x = 24;
    c->y += 14;
    for (size_t i = 0; i < c->timeline->n_layers; i++) {
        if (has_layer(c, i)) {
            x = legend_item(c, x, canvas_class(c, i, css, sizeof css), canvas_layer_name(c, i));
        }
    }
    x = legend_mark(c, x, "<path class=\"budget\" d=\"M0 6H20\"/>", "budget");
    if (!sl_plan_is_feasible(c->view->plan)) {
        x = legend_item(c, x, "over", "above the budget");
    }
    if (has_bar(c, SL_PLAN_STALL)) {
        x = legend_item(c, x, "stall", "waits for weights");
    }
    if (has_bar(c, SL_PLAN_EVICT)) {
        x = legend_mark(c, x, "<path class=\"dim\" d=\"M4 2h10l-5 9z\"/>", "leaves");
    }
    if (c->actual) {
        (void)legend_mark(c, x, "<path class=\"actual\" d=\"M0 6H20\"/>",
                "held, as the trace says; dot: its peak");
    }
    c->y += 14;
}

static void draw_sources(plan_canvas *c)
{
    char text[512];
    if (c->view->n_sources > 0) {
        c->y = canvas_paragraph(c, 24, c->y + 22, 140, "s ink", "Where the numbers come from") - 18;
    }
    for (size_t i = 0; i < c->view->n_sources; i++) {
        const plan_source *s = &c->view->sources[i];
        snprintf(text, sizeof text, "%.100s: %.380s", s->what, s->from);
        c->y = canvas_paragraph(c, 24, c->y + 16, 140, "s dim", text) - 18;
    }
    c->y += 24;
}

static bool is_drawn(const plan_canvas *c, size_t i_place)
{
    bool has_trace = c->actual && c->actual->places[i_place].peak.total > 0;
    return plan_place_is_used(c->view, i_place) || has_trace;
}

/* The places where memory is short come first. */
static int draw_panels(plan_canvas *c, sl_error *reterr)
{
    int r = 0;
    for (int is_unlimited = 0; is_unlimited < 2; is_unlimited++) {
        for (size_t i = 0; r >= 0 && i < c->view->request->n_places; i++) {
            bool has_limit = c->view->request->places[i].budget_bytes != PLAN_NO_LIMIT;
            if (has_limit == !is_unlimited && is_drawn(c, i)) {
                r = plan_panel_draw(c, i, reterr);
            }
        }
    }
    return r;
}

static int draw_body(plan_canvas *c, sl_error *reterr)
{
    draw_title(c);
    if (c->actual) {
        draw_deviation(c);
    }
    int r = draw_panels(c, reterr);
    if (r >= 0) {
        c->y += 8;
        plan_lanes_draw(c);
        draw_legend(c);
        draw_sources(c);
    }
    return r;
}

int plan_svg_draw(const plan_view *view, const plan_actual *actual, svg_out *out, sl_error *reterr)
{
    svg_out body = {0};
    plan_timeline timeline;
    int r = plan_timeline_init(&timeline, view, reterr);
    if (r < 0) {
        return r;
    }
    /* A plan without times has no axis that a trace could share. */
    const plan_actual *shown = timeline.is_in_steps ? NULL : actual;
    plan_canvas c = {view, shown, &timeline, &body, timeline.end, 0};
    c.end = shown && shown->end_s > c.end ? shown->end_s : c.end;
    r = draw_body(&c, reterr);
    if (r >= 0) {
        svg_put(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                "viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-labelledby=\"sluice-title "
                "sluice-desc\">\n",
                CANVAS_W, c.y, CANVAS_W, c.y);
        put_words(out, view, shown);
        svg_put(out, "%s<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n", style,
                svg_result(&body, NULL) ? svg_result(&body, NULL) : "");
        bool is_dead = body.is_dead || out->is_dead;
        r = is_dead ? sl__fail_nomem(reterr, body.n, "a picture of the plan") : 0;
    }
    svg_done(&body);
    plan_timeline_done(&timeline);
    return r;
}

int plan_svg_write(
        const plan_view *view, const plan_actual *actual, const char *path, sl_error *reterr)
{
    svg_out out = {0};
    sl__out_file *file = NULL;
    size_t n = 0;
    int r = plan_svg_draw(view, actual, &out, reterr);
    if (r >= 0) {
        r = sl__out_file_open(path, SVG_MODE, &file, reterr);
    }
    if (r >= 0) {
        const char *text = svg_result(&out, &n);
        r = sl__out_file_write(file, text, n, reterr);
    }
    if (r >= 0) {
        r = sl__out_file_commit(&file, reterr);
    }
    sl__out_file_discard(&file);
    svg_done(&out);
    return r;
}
