/* A life of training in one call: what the tests of threads, memory and odd hosts do again and again. */
#ifndef TESTS_EMBED_EVERYTHING_H
#define TESTS_EMBED_EVERYTHING_H

#include "embed/trainee.h"

/* Reads, compiles, trains, saves, loads, exports; `flat`: the parameters at its end. */
static inline qcc_status everything(Host *h, float flat[FLAT])
{
    static const char *const places[] = { "a", "b" };
    const qcc_context_options o = options_of(h);
    qcc_context *cx = NULL;
    Trainee *t = calloc(1, sizeof *t);
    Bytes *file = calloc(1, sizeof *file);
    qcc_status status = t && file ? qcc_open(&o, &cx) : QCC_NO_MEMORY;
    if (status == QCC_OK)
        status = trainee_try(t, cx, TRAINEE_OPTIONS " --clip-norm 1 --ema 0.9");
    if (status == QCC_OK)
        status = trainee_bind(t);
    for (unsigned i = 0; status == QCC_OK && i < 4; i++) {
        trainee_fill(t, i);
        status = qcc_run(t->session, i == 1 ? QCC_FORWARD | QCC_BACKWARD | QCC_ACCUMULATE : QCC_STEP, NULL);
        if (status == QCC_OK)
            status = qcc_set_property(t->session, places[i % 2], "here");
    }
    qcc_sink sink = { .write = bytes_put, .user = file };
    if (status == QCC_OK)
        status = qcc_save(t->session, &sink);
    const qcc_source source = file ? bytes_source(file) : (qcc_source){ 0 };
    if (status == QCC_OK)
        status = qcc_load(t->session, &source);
    if (status == QCC_OK)
        status = qcc_get_flat(t->session, flat, FLAT);
    if (status == QCC_OK)
        status = qcc_set_flat(t->session, flat, FLAT);
    if (file)
        file->n = 0;
    if (status == QCC_OK)
        status = qcc_export_session(t->session, NULL, &sink);
    if (file)
        file->n = 0;
    if (status == QCC_OK)
        status = qcc_export_session(t->session, "--dtype fp16 --keep-io '*'", &sink);
    if (file)
        file->n = 0;
    if (status == QCC_OK)
        status = qcc_write_step(t->step, &sink);
    qcc_close(cx);
    free(t);
    free(file);
    return status;
}

#endif
