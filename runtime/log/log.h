/* The log of a run: one JSON object a line.  Fields that do not apply are absent, numbers that are not finite are the
 * strings "nan", "inf" and "-inf", and only step lines have the key "loss". */
#ifndef RUNTIME_LOG_LOG_H
#define RUNTIME_LOG_LOG_H

#include "base/diag.h"

enum { LOG_SCHEMA = 1 };

typedef enum LogKind { LOG_ABSENT, LOG_TEXT, LOG_INT, LOG_F32, LOG_F64, LOG_FLAG } LogKind;

/* A value of a line; the zero value is one that is absent. */
typedef struct LogValue {
    LogKind kind;
    const char *text;
    int64_t i;
    double x;
} LogValue;

static inline LogValue logged_text(const char *text)
{
    return (LogValue){ .kind = text ? LOG_TEXT : LOG_ABSENT, .text = text };
}

static inline LogValue logged_int(int64_t i)
{
    return (LogValue){ .kind = LOG_INT, .i = i };
}

static inline LogValue logged_f32(float x)
{
    return (LogValue){ .kind = LOG_F32, .x = (double)x };
}

static inline LogValue logged_f64(double x)
{
    return (LogValue){ .kind = LOG_F64, .x = x };
}

static inline LogValue logged_flag(bool flag)
{
    return (LogValue){ .kind = LOG_FLAG, .i = flag };
}

/* clang-format off */
#define LOG_START_FIELDS(_) _(run) _(qcc) _(model_hash) _(command) _(device) _(resumed_from)
#define LOG_STEP_FIELDS(_)  _(step) _(epoch) _(loss) _(lr) _(grad_norm) _(loss_scale) _(skipped) _(items_per_s)
#define LOG_EPOCH_FIELDS(_) _(step) _(epoch) _(steps) _(train_loss)
#define LOG_VAL_FIELDS(_)   _(step) _(epoch) _(samples) _(best)
#define LOG_SKIP_FIELDS(_)  _(step) _(reason) _(where) _(loss_scale)
#define LOG_SAVE_FIELDS(_)  _(step) _(file) _(bytes) _(best)
#define LOG_NOTE_FIELDS(_)  _(step) _(text)
#define LOG_QUANT_FIELDS(_) _(step) _(value) _(scale) _(drift) _(clipped) _(sqnr)
#define LOG_CODES_FIELDS(_)                                                                                                \
    _(step) _(weight) _(changed) _(moved) _(ends) _(drift) _(steps) _(updates) _(below) _(changes)
#define LOG_PRODUCT_FIELDS(_) _(step) _(node) _(operand) _(format) _(codes) _(numbers) _(zeros) _(ends)
#define LOG_END_FIELDS(_)   _(step) _(epoch) _(status) _(reason) _(skipped) _(seconds)

/*     event   struct    its fields         */
#define LOG_EVENTS(_)                         \
    _( start,  LogStart, LOG_START_FIELDS )   \
    _( step,   LogStep,  LOG_STEP_FIELDS  )   \
    _( epoch,  LogEpoch, LOG_EPOCH_FIELDS ) \
    _( val,    LogVal,   LOG_VAL_FIELDS   )   \
    _( skip,   LogSkip,  LOG_SKIP_FIELDS  )   \
    _( save,   LogSave,  LOG_SAVE_FIELDS  )   \
    _( note,   LogNote,  LOG_NOTE_FIELDS  )   \
    _( quant,  LogQuant, LOG_QUANT_FIELDS )   \
    _( codes,  LogCodes, LOG_CODES_FIELDS ) \
    _( product, LogProduct, LOG_PRODUCT_FIELDS ) \
    _( end,    LogEnd,   LOG_END_FIELDS   )
/* clang-format on */

/* What a line says beside its fields: metrics. */
typedef struct LogExtra {
    const char *name;
    LogValue value;
} LogExtra;

typedef struct Log {
    Diag *diag;
    const char *path;
    Arena arena; /* of one line */
    int fd;
    bool goes_on; /* what cannot be written is a warning from now on */
    bool lost;    /* and that has happened: the lines behind it are dropped */
} Log;

/* Opens a log that begins; what is there is replaced when it is a log, refused when it is something else.  The log
 * outlives a guarded() call and is to be closed; `path` must stay. */
Status log_open(Log *l, Memory *memory, Diag *diag, const char *path);

/* Opens the log of a run that goes on after `step`: lines from the first one of a later step on are cut off, and so is
 * a line that was not finished.  A log that is not there begins. */
Status log_resume(Log *l, Memory *memory, Diag *diag, const char *path, int64_t step);

/* From now on a line that cannot be written is a warning, and the last one: the run goes on without its log. */
void log_go_on(Log *l);

/* Gives everything back; null is allowed and an unopened (zeroed) log is fine. */
void log_close(Log *l);

/* One event: a struct of values, log_EVENT(log, values, extra, n) writes its line, log_EVENT_line(out, ...) appends it
 * to a text instead. */
/* Appends a line of fields that no table lists: {"event":"eval","samples":3}. */
void log_any_line(Text *out, const char *event, const LogExtra *fields, size_t n);

/* The same with fields that stand in the call: log_record(out, "value", { "name", logged_text(name) }, ..). */
#define log_record(out, event, ...)                                                                                    \
    log_any_line(out, event, (const LogExtra[]){ __VA_ARGS__ },                                                        \
                 sizeof((const LogExtra[]){ __VA_ARGS__ }) / sizeof(LogExtra))

#define LOG_VALUE(name) LogValue name;
#define LOG_DECLARE(event, Struct, FIELDS)                                                                             \
    typedef struct Struct {                                                                                            \
        FIELDS(LOG_VALUE)                                                                                              \
    } Struct;                                                                                                          \
    Status log_##event(Log *l, const Struct *values, const LogExtra *extra, size_t n);                                 \
    void log_##event##_line(Text *out, const Struct *values, const LogExtra *extra, size_t n);
LOG_EVENTS(LOG_DECLARE)
#undef LOG_DECLARE
#undef LOG_VALUE

#endif
