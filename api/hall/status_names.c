/* Names of what the public header counts. */
#include "ir/type.h"
#include "qcc/qcc.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

/* clang-format off */
#define SAME(id, text, bits, class, onnx) _Static_assert((int)QCC_##id == (int)id, "element types are numbered alike");
DTYPES(SAME)
#undef SAME
/* clang-format on */

const char *qcc_version(void)
{
    return TEXT(QCC_VERSION_MAJOR) "." TEXT(QCC_VERSION_MINOR) "." TEXT(QCC_VERSION_PATCH);
}

const char *qcc_status_name(qcc_status status)
{
    switch (status) {
    case QCC_OK:
        return "ok";
    case QCC_MISMATCH:
        return "mismatch";
    case QCC_USAGE:
        return "usage";
    case QCC_INVALID:
        return "invalid";
    case QCC_UNSUPPORTED:
        return "unsupported";
    case QCC_IO:
        return "io";
    case QCC_DEVICE:
        return "device";
    case QCC_INTERNAL:
        return "internal";
    case QCC_NO_MEMORY:
        return "no memory";
    case QCC_BUSY:
        return "busy";
    case QCC_FORKED:
        return "forked";
    case QCC_ALREADY:
        return "already";
    case QCC_PENDING:
        return "pending";
    case QCC_INTERRUPTED:
        return "interrupted";
    }
    return "unknown";
}

const char *qcc_dtype_name(qcc_dtype dtype)
{
    return (int)dtype >= 0 && (int)dtype < DTYPE_COUNT ? dtype_name((DType)dtype) : NULL;
}
