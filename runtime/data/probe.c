/* One file by itself: its type, or its whole array. */
#include "runtime/data/samples.h"

#include <string.h>

Status data_probe(Memory *m, Types *types, Diag *d, const Limits *limits, const DataOptions *options,
                  const DataSpec *spec, const Type **type)
{
    Arena scratch;
    Samples s;
    uint64_t held = 0;
    *type = NULL;
    if (spec->kind != DATA_FILE || strcmp(spec->path, "-") == 0)
        return OK;
    arena_open(&scratch, m);
    const SamplesQuery q = { .memory = m,
                             .types = types,
                             .arena = &scratch,
                             .d = d,
                             .limits = limits,
                             .options = options,
                             .spec = spec,
                             .held = &held,
                             .probing = true };
    const Status status = samples_open(&s, &q);
    if (status == OK) {
        *type = s.rank ? samples_type(&s, types) : NULL;
        samples_close(&s);
    }
    arena_close(&scratch);
    return status;
}

Status data_tensor(Types *types, Heap *heap, Diag *d, const Limits *limits, const DataOptions *options,
                   const DataSpec *spec, const Type *declared, Tensor **value)
{
    Arena scratch;
    Samples s;
    uint64_t held = 0;
    Fault f = { 0 };
    arena_open(&scratch, heap->memory);
    const SamplesQuery q = { .memory = heap->memory,
                             .types = types,
                             .arena = &scratch,
                             .d = d,
                             .limits = limits,
                             .options = options,
                             .spec = spec,
                             .wanted = declared,
                             .held = &held };
    Status status = samples_open(&s, &q);
    if (status == OK) {
        Tensor *t = tensor_alloc(heap, samples_type(&s, types));
        status = samples_read(&s, &f, 0, samples_elements(&s), t->data);
        if (status == OK)
            *value = t;
        else
            (void)fault_send(&f, d), tensor_drop(heap, t);
        samples_close(&s);
    }
    arena_close(&scratch);
    return status;
}
