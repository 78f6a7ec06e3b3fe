#include "frontends/view/memory.h"

#include <limits.h>

enum { WIDTH = 300, HEIGHT = 80, MOST_BARS = 300 };

static int peak_of(const ViewMemory *m)
{
    int peak = 0;
    for (int i = 1; i < m->n; i++)
        if (m->alive[i] > m->alive[peak])
            peak = i;
    return peak;
}

static void put_bar(Quill *q, const ViewMemory *m, int launch, double x, double width, bool is_peak)
{
    const double top = m->arena ? (double)m->alive[launch] / (double)m->arena * HEIGHT : 0;
    text_printf(&q->text, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"%s><title>launch %d, ", x,
                HEIGHT - top, width, top, is_peak ? " fill=\"#d33\" data-peak=\"\"" : "", launch);
    quill_html(q, m->what[launch], INT_MAX, false);
    text_printf(&q->text, ": %zu bytes</title></rect>\n", m->alive[launch]);
}

void view_memory(Quill *q, const ViewMemory *m)
{
    if (!m->n)
        return;
    const int peak = peak_of(m), each = (m->n + MOST_BARS - 1) / MOST_BARS, bars = (m->n + each - 1) / each;
    text_add(&q->text, "<p>arena of @");
    quill_html(q, m->graph, INT_MAX, false);
    text_printf(&q->text, ": %zu bytes, most at launch %d of %d, ", m->arena, peak, m->n);
    quill_html(q, m->what[peak], INT_MAX, false);
    text_printf(&q->text,
                "</p>\n<svg class=\"memory\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" fill=\"#59c\">\n", WIDTH,
                HEIGHT, WIDTH, HEIGHT);
    for (int b = 0; b < bars; b++) {
        int most = b * each;
        for (int i = most; i < m->n && i < (b + 1) * each; i++)
            most = m->alive[i] > m->alive[most] ? i : most;
        put_bar(q, m, most, (double)b * WIDTH / bars, (double)WIDTH / bars, most == peak);
        quill_rest(q);
    }
    text_add(&q->text, "</svg>\n");
}
