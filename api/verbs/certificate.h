/* The certificate of an exported file: what was compared, and what came of it, as JSON (docs/certificate.md). */
#ifndef API_VERBS_CERTIFICATE_H
#define API_VERBS_CERTIFICATE_H

#include "api/verbs/export.h"
#include "api/deployed/parity.h"
#include "frontends/onnx/fusions.h"

enum { CERTIFICATE_SCHEMA = 1 };

/* A result of the model, compared. */
typedef struct CertifiedOutput {
    const char *name;
    int64_t n, differ;
    double largest; /* difference */
} CertifiedOutput;

typedef struct Certificate {
    const Exported *exported;
    const Parity *parity;
    const Fusions *fused; /* null: the file is for others than ONNX Runtime */
    const CertifiedOutput *outputs;
    size_t n_outputs;
    int64_t samples;
    bool passed;
} Certificate;

/* Writes it. */
Status certificate_write(Command *c, const char *path, const Certificate *certificate);

#endif
