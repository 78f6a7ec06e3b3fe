/* Tensors of a model file as parameters. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "frontends/onnx/file/payload.h"
#include "frontends/onnx/read/importer.h"

Status import_payload(Importer *im, const Onnx__TensorProto *t, Payload **payload)
{
    TensorInfo info;
    DType dtype;
    Diag *d = im->ir->diag;
    const char *where = im->where;
    if (!dtype_from_onnx(t->data_type, &dtype))
        return t->data_type > 0 && t->data_type < ONNX_TYPES
                   ? fail_as(d, UNSUPPORTED, importer_place(im), "element type %d (complex) is not one we have",
                             t->data_type)
                   : fail(d, importer_place(im), "element type %d does not exist", t->data_type);
    TRY(tensor_info(im->spine, d, where, t, &info));
    if (info.rank > MAX_RANK)
        return fail(d, importer_place(im), "%d dimensions are more than the limit rank (%d)", info.rank, MAX_RANK);
    TRY(tensor_check(im->spine, d, where, t, &info));
    const Type *type = type_tensor(&im->ir->types, dtype, info.rank, info.dims);
    *payload = payload_of_proto(im->spine, im->arena, type, t, where);
    return OK;
}

/* Position of a non-zero in the dense tensor, -1 when it lies outside. */
static int64_t dense_position(const Tensor *indices, int64_t i, const Type *dense)
{
    const int rank = indices->type->rank;
    if (rank == 1) {
        const int64_t at = tensor_get_i64(indices, i);
        return at >= 0 && at < type_elements(dense) ? at : -1;
    }
    int64_t at = 0;
    for (int k = 0; k < dense->rank; k++) {
        const int64_t index = tensor_get_i64(indices, i * dense->rank + k);
        if (index < 0 || index >= dense->dims[k])
            return -1;
        at = at * dense->dims[k] + index;
    }
    return at;
}

static Status dense_type(Importer *im, const Onnx__SparseTensorProto *t, DType dtype, const Type **type)
{
    Diag *d = im->ir->diag;
    int64_t elements;
    if (t->n_dims > MAX_RANK)
        return fail(d, importer_place(im), "%zu dimensions are more than the limit rank (%d)", t->n_dims, MAX_RANK);
    for (size_t i = 0; i < t->n_dims; i++)
        if (t->dims[i] < 0 || t->dims[i] > im->ir->limits.dim)
            return fail(d, importer_place(im),
                        "dimension %zu is %" PRId64 ", wanted is from 0 to the limit dim (%" PRId64 ")", i, t->dims[i],
                        im->ir->limits.dim);
    if (!checked_product_i64(t->dims, (int)t->n_dims, im->ir->limits.elements, &elements))
        return fail(d, importer_place(im), "the number of elements exceeds the limit elements (%" PRId64 ")",
                    im->ir->limits.elements);
    size_t bytes;
    if (!dtype_bytes(dtype, elements, &bytes) || bytes > (size_t)im->ir->limits.fold_total)
        return fail(d, importer_place(im), "dense it would be larger than the limit fold_total (%" PRId64 ")",
                    im->ir->limits.fold_total);
    *type = type_tensor(&im->ir->types, dtype, (int)t->n_dims, t->dims);
    return OK;
}

static Status scatter_values(Importer *im, const Tensor *values, const Tensor *indices, Tensor *dense)
{
    const int64_t n = tensor_elements(values);
    const Type *it = indices->type;
    if (it->dtype != I64 || it->rank < 1 || it->rank > 2 || it->dims[0] != n ||
        (it->rank == 2 && it->dims[1] != dense->type->rank))
        return fail(im->ir->diag, importer_place(im), "%" PRId64 " values have indices %s", n,
                    type_text(im->arena, it));
    int64_t last = -1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = dense_position(indices, i, dense->type);
        if (at <= last)
            return fail(im->ir->diag, importer_place(im), "index %" PRId64 " is %s", i,
                        at < 0 ? "outside the tensor" : "not in ascending order");
        last = at;
        if (dtype_is_float(values->type->dtype))
            tensor_set_f64(dense, at, tensor_get_f64(values, i));
        else
            tensor_set_i64(dense, at, tensor_get_i64(values, i));
    }
    return OK;
}

Status import_sparse(Importer *im, const Onnx__SparseTensorProto *t, Payload **payload)
{
    Payload *values, *indices;
    const Type *type = NULL;
    if (!t->values || !t->indices)
        return fail(im->ir->diag, importer_place(im), "a sparse tensor has values and indices");
    TRY(import_payload(im, t->values, &values));
    TRY(import_payload(im, t->indices, &indices));
    if (values->type->dtype == STRING)
        return fail_as(im->ir->diag, UNSUPPORTED, importer_place(im), "sparse strings are not read");
    TRY(dense_type(im, t, values->type->dtype, &type));
    const Tensor *v = payload_cached(values, im->ir->diag);
    const Tensor *k = payload_cached(indices, im->ir->diag);
    if (!v || !k)
        return INVALID;
    Tensor *dense = tensor_new(im->arena, type);
    TRY(scatter_values(im, v, k, dense));
    *payload = payload_of(im->arena, dense);
    return OK;
}
