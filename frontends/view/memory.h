/* How much memory is taken while a graph runs, as a drawing. */
#ifndef FRONTENDS_VIEW_MEMORY_H
#define FRONTENDS_VIEW_MEMORY_H

#include "frontends/view/quill.h"
#include "frontends/view/view.h"

/* Puts a chart: a bar for each launch, or for each few of them the one that takes most, the highest of all marked; each
 * says what it is where the pointer rests, and leads to it. */
void view_memory(Quill *q, const ViewProgram *p, size_t page);

#endif
