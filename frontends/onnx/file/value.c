#include "frontends/onnx/file/value.h"

#include <string.h>

#include "frontends/onnx/file/payload.h"

enum { DEEPEST = 16 };

typedef struct Reader {
    Ir *ir;
    Heap *heap;
    Spine spine;
    Place place;
} Reader;

static Status read_tensor(Reader *r, const Onnx__TensorProto *t, const Type *declared, Tensor **value)
{
    TensorInfo info;
    DType dtype;
    Diag *d = r->ir->diag;
    TRY(tensor_info(&r->spine, d, NULL, t, &info));
    if (!dtype_from_onnx(info.dtype, &dtype) || info.rank > MAX_RANK)
        return fail_as(d, UNSUPPORTED, r->place, "element type %d, rank %d", info.dtype, info.rank);
    if (dtype == U16 && declared && declared->kind == TYPE_TENSOR &&
        (declared->dtype == BF16 || declared->dtype == F16))
        dtype = declared->dtype;
    TRY(tensor_check(&r->spine, d, NULL, t, &info));
    const Type *type = type_tensor(&r->ir->types, dtype, info.rank, info.dims);
    TRY(tensor_wants_numbers(d, r->place, "the value", type));
    *value = tensor_alloc(r->heap, type);
    return tensor_read(&r->spine, d, NULL, t, (*value)->data, (*value)->bytes);
}

static Status read_sequence(Reader *r, const Onnx__SequenceProto *s, const Type *declared, int depth, Tensor **value)
{
    const Type *element = declared && declared->kind == TYPE_SEQ ? declared->parts[0] : NULL;
    const size_t n = s->n_tensor_values ? s->n_tensor_values : s->n_sequence_values;
    Tensor **items = NEWS(r->ir->diag->arena, Tensor *, n + 1);
    if (depth == DEEPEST)
        return fail(r->ir->diag, r->place, "sequences nest deeper than %d", DEEPEST);
    for (size_t i = 0; i < n; i++) {
        if (s->n_tensor_values)
            TRY(read_tensor(r, s->tensor_values[i], element, &items[i]));
        else
            TRY(read_sequence(r, s->sequence_values[i], element, depth + 1, &items[i]));
    }
    if (!element)
        element = n ? items[0]->type : type_unranked(&r->ir->types, F32);
    *value = tensor_group(r->heap, type_seq(&r->ir->types, element), n, items);
    return OK;
}

static Status read_optional(Reader *r, const Onnx__OptionalProto *o, const Type *declared, Tensor **value)
{
    const Type *element = declared && declared->kind == TYPE_OPTIONAL ? declared->parts[0] : NULL;
    Tensor *item = NULL;
    if (o->tensor_value)
        TRY(read_tensor(r, o->tensor_value, element, &item));
    else if (o->sequence_value)
        TRY(read_sequence(r, o->sequence_value, element, 0, &item));
    if (!element)
        element = item ? item->type : type_unranked(&r->ir->types, F32);
    *value = tensor_group(r->heap, type_optional(&r->ir->types, element), item ? 1 : 0, &item);
    return OK;
}

Status onnx_value_read(Ir *ir, Heap *heap, const char *path, const char *name, const Type *declared, Tensor **value)
{
    Reader r = { .ir = ir, .heap = heap, .place = { .file = path, .where = name, .byte = -1 } };
    const TypeKind kind = declared ? declared->kind : TYPE_TENSOR;
    const ProtobufCMessageDescriptor *type = kind == TYPE_SEQ        ? &onnx__sequence_proto__descriptor
                                             : kind == TYPE_OPTIONAL ? &onnx__optional_proto__descriptor
                                                                     : &onnx__tensor_proto__descriptor;
    TRY(source_open(&r.spine.source, ir->memory, ir->diag, path));
    TRY(spine_read(&r.spine, ir->memory, ir->diag, &ir->limits, type));
    Status status;
    if (kind == TYPE_SEQ)
        status = read_sequence(&r, r.spine.sequence, declared, 0, value);
    else if (kind == TYPE_OPTIONAL)
        status = read_optional(&r, r.spine.optional, declared, value);
    else
        status = read_tensor(&r, r.spine.tensor, declared, value);
    spine_close(&r.spine);
    return status;
}
