/* Every public call that enters a context, by number: what each must answer is asked of all of them. */
#ifndef TESTS_EMBED_CALLS_H
#define TESTS_EMBED_CALLS_H

#include "embed/trainee.h"

/* Open handles of one context; `new_*`, `tensor` and `text` are where results would go. */
typedef struct Handles {
    qcc_context *cx;
    qcc_model *model, *new_model;
    qcc_step *step, *new_step;
    qcc_session *session, *new_session;
    qcc_scaler *scaler, *new_scaler;
    qcc_value *value, *new_value;
    qcc_tensor tensor;
    const char *text;
    float flat[FLAT];
} Handles;

static const qcc_source no_source = { .bytes = "", .size = 0, .name = "nothing" };
static const qcc_sink no_sink = { .path = "/nowhere/at/all" };
static const char *const say_version[] = { "qcc", "--version" };

/* clang-format off */
#define CALLS(_)                                                                        \
    _(qcc_read, (h->cx, &no_source, NULL, &h->new_model))                               \
    _(qcc_run_model, (h->model, &h->tensor, 1, &h->tensor, 1))                          \
    _(qcc_emit, (h->model, "ir", NULL, &no_sink))                                       \
    _(qcc_export, (h->model, NULL, &no_sink))                                           \
    _(qcc_compile, (h->model, NULL, &h->new_step))                                      \
    _(qcc_write_step, (h->step, &no_sink))                                              \
    _(qcc_plan, (h->step, &(qcc_memory){ .size = sizeof(qcc_memory) }))                 \
    _(qcc_start, (h->step, NULL, &h->new_session))                                      \
    _(qcc_bind, (h->session, "x", &h->tensor))                                          \
    _(qcc_bind_next, (h->session, "x", &h->tensor))                                     \
    _(qcc_run, (h->session, QCC_STEP, NULL))                                            \
    _(qcc_wait_step, (h->session, NULL))                                                \
    _(qcc_view, (h->session, "w1", &h->tensor))                                         \
    _(qcc_put, (h->session, "w1", &h->tensor))                                          \
    _(qcc_find, (h->session, "w1", &h->new_value))                                      \
    _(qcc_bind_value, (h->value, &h->tensor))                                           \
    _(qcc_bind_next_value, (h->value, &h->tensor))                                      \
    _(qcc_view_value, (h->value, &h->tensor))                                           \
    _(qcc_put_value, (h->value, &h->tensor))                                            \
    _(qcc_unscale, (h->session))                                                        \
    _(qcc_abandon, (h->session))                                                        \
    _(qcc_freeze_loss_scale, (h->session, 1))                                           \
    _(qcc_scaler_open, (h->cx, 1, &h->new_scaler))                                      \
    _(qcc_scaler_join, (h->scaler, h->session))                                         \
    _(qcc_scaler_update, (h->scaler))                                                   \
    _(qcc_get_flat, (h->session, h->flat, FLAT))                                        \
    _(qcc_set_flat, (h->session, h->flat, FLAT))                                        \
    _(qcc_set_property, (h->session, "a", "b"))                                         \
    _(qcc_get_property, (h->session, "a", &h->text))                                    \
    _(qcc_save, (h->session, &no_sink))                                                 \
    _(qcc_load, (h->session, &no_source))                                               \
    _(qcc_export_session, (h->session, NULL, &no_sink))                                 \
    _(qcc_command, (h->cx, 2, say_version, &no_sink))
/* clang-format on */

enum {
#define NUMBER(name, arguments) CALL_##name,
    CALLS(NUMBER)
#undef NUMBER
        CALL_COUNT
};

static const char *const call_names[] = {
#define NAME(name, arguments) #name,
    CALLS(NAME)
#undef NAME
};

static inline qcc_status call_nth(Handles *h, int i)
{
    switch (i) {
#define CASE(name, arguments)                                                                                          \
    case CALL_##name:                                                                                                  \
        return name arguments;
        CALLS(CASE)
#undef CASE
    default:
        return QCC_INTERNAL;
    }
}

static inline bool is_call(const char *name)
{
    for (int i = 0; i < CALL_COUNT; i++)
        if (strcmp(call_names[i], name) == 0)
            return true;
    return false;
}

/* Those that read what no call changes, and the one that opens. */
static inline bool is_question(const char *name)
{
    static const char *const questions[] = { "qcc_open", "qcc_input", "qcc_output", "qcc_step_input", "qcc_parameter" };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (strcmp(questions[i], name) == 0)
            return true;
    return false;
}

#endif
