#include "runtime/space.h"

bool space_holds(const Space *s, const Type *type)
{
    return s && tensor_holds(type);
}

Tensor *space_tensor(Space *s, Heap *heap, const Type *type)
{
    size_t bytes;
    if (!space_holds(s, type))
        return tensor_alloc(heap, type);
    if (!type_bytes(type, &bytes))
        memory_exhausted(heap->memory);
    Tensor *t = heap_alloc(heap, sizeof(Tensor));
    *t = (Tensor){ .type = type, .bytes = bytes, .refs = 1 };
    t->data = s->does->take(s, bytes ? bytes : 1);
    return t;
}

void space_drop(Space *s, Heap *heap, Tensor *t)
{
    if (t->refs == 1 && space_holds(s, t->type))
        s->does->give(s, t->data);
    tensor_drop(heap, t);
}
