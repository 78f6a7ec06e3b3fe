#include "base/foreign.h"

#include <string.h>

#include "base/status.h"

#define EXPORT_IT "torch.onnx.export(model, example, 'model.onnx')"
#define NO_PICKLE "numpy.save('x.npy', x, allow_pickle=False)"

static const Foreign kinds[] = {
#define FOREIGN(at, magic, what, for_model, for_data, is_data)                                                         \
    { at, sizeof(magic) - 1, magic, what, for_model, for_data, is_data },
#include "base/foreign.def"
#undef FOREIGN
};

const Foreign *foreign_find(const void *bytes, size_t n, size_t least)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const Foreign *f = &kinds[i];
        if (f->n >= least && n >= f->at + f->n && memcmp((const char *)bytes + f->at, f->magic, f->n) == 0)
            return f;
    }
    return NULL;
}

const Foreign *foreign_torch(void)
{
    return &kinds[0];
}
