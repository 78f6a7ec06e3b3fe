#include "frontends/view/memory.h"

#include <limits.h>

enum { WIDTH = 300, HEIGHT = 80, MOST_BARS = 300 };

static int peak_of(const ViewProgram *p)
{
    int peak = 0;
    for (int i = 1; i < p->n; i++)
        if (p->launches[i].alive > p->launches[peak].alive)
            peak = i;
    return peak;
}

/* "forward matmul /fc1/MatMul" */
static void put_launch(Quill *q, const ViewLaunch *l)
{
    text_printf(&q->text, "%s %s%s", l->part, l->kind, l->name ? " " : "");
    if (l->name)
        quill_html(q, l->name, INT_MAX, false);
}

/* A bar, which leads to its launch. */
static void put_bar(Quill *q, const ViewProgram *p, size_t page, int launch, double x, double width, bool is_peak)
{
    const ViewLaunch *l = &p->launches[launch];
    const double top = p->arena ? (double)l->alive / (double)p->arena * HEIGHT : 0;
    text_printf(&q->text,
                "<a href=\"#l%zu-%d\"><rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"%s><title>launch %d, ",
                page, launch, x, HEIGHT - top, width, top, is_peak ? " fill=\"#d33\" data-peak=\"\"" : "", launch);
    put_launch(q, l);
    text_printf(&q->text, ": %zu bytes</title></rect></a>\n", l->alive);
}

void view_memory(Quill *q, const ViewProgram *p, size_t page)
{
    if (!p->n)
        return;
    const int peak = peak_of(p), each = (p->n + MOST_BARS - 1) / MOST_BARS, bars = (p->n + each - 1) / each;
    text_add(&q->text, "<p>arena of @");
    quill_html(q, p->graph->name ? p->graph->name : "graph", INT_MAX, false);
    text_printf(&q->text, ": %zu bytes, most at launch %d of %d, ", p->arena, peak, p->n);
    put_launch(q, &p->launches[peak]);
    text_printf(&q->text,
                "</p>\n<svg class=\"memory\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" fill=\"#59c\">\n", WIDTH,
                HEIGHT, WIDTH, HEIGHT);
    for (int b = 0; b < bars; b++) {
        int most = b * each;
        for (int i = most; i < p->n && i < (b + 1) * each; i++)
            most = p->launches[i].alive > p->launches[most].alive ? i : most;
        put_bar(q, p, page, most, (double)b * WIDTH / bars, (double)WIDTH / bars, most == peak);
        quill_rest(q);
    }
    text_add(&q->text, "</svg>\n");
}
