#include "api/told/memory_told.h"

#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "runtime/log/log.h"

const char *step_memory_doubt(Arena *arena, const StepMemory *m)
{
    if (!m->estimated)
        return "";
    return arena_printf(arena, "; an estimate: the evaluator runs it%s%s", m->why ? ", for it has " : "",
                        m->why ? m->why : "");
}

const char *step_memory_text(Arena *arena, const StepMemory *m)
{
    Text t;
    text_open(&t, arena);
    text_printf(&t, "%s: weights %s, optimizer %s", bytes_text(arena, m->total), bytes_text(arena, m->weights),
                bytes_text(arena, m->optimizer));
    if (m->other_state)
        text_printf(&t, ", other states %s", bytes_text(arena, m->other_state));
    text_printf(&t, ", gradients %s, activations %s", bytes_text(arena, m->gradients),
                bytes_text(arena, m->activations));
    if (m->model)
        text_printf(&t, ", model %s", bytes_text(arena, m->model));
    if (!m->estimated)
        text_printf(&t, ", scratch %s a thread", bytes_text(arena, m->scratch));
    text_add(&t, step_memory_doubt(arena, m));
    return text_get(&t);
}

/* ---- by what it is for, and by type ---- */

static const char *const part_words[] = {
#define WORDS(part, sum, words) words,
    FOOTPRINT_PARTS(WORDS)
#undef WORDS
};

static const char *const sum_words[] = {
#define SUM(part, sum, words) #sum,
    FOOTPRINT_PARTS(SUM)
#undef SUM
};

static const char *const arena_words[ARENA_KINDS] = { "kept", "gradients", "transient" };

/* ", moments f32 8.0 kB, i8 2.1 kB": a list of types goes on with the next part. */
static void add_types(Text *t, Arena *arena, const char *words, const uint64_t by_type[DTYPE_COUNT])
{
    bool first = true;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (!by_type[i])
            continue;
        text_add(t, t->n ? ", " : "");
        if (first && words)
            text_printf(t, "%s ", words);
        text_printf(t, "%s %s", dtype_name((DType)i), bytes_text(arena, by_type[i]));
        first = false;
    }
}

/* The parts of a sum; where it is what it has but one of, the words go. */
static const char *parts_text(Arena *arena, const StepMemory *m, const char *sum)
{
    Text t;
    text_open(&t, arena);
    for (int i = 0; i < FOOTPRINT_PART_COUNT; i++)
        if (strcmp(sum_words[i], sum) == 0)
            add_types(&t, arena, strcmp(part_words[i], sum) == 0 ? NULL : part_words[i], m->parts[i]);
    if (strcmp(sum, "activations") == 0)
        text_printf(&t, "%sother values %s", t.n ? ", " : "", bytes_text(arena, m->values));
    return text_get(&t);
}

static void tell_arena(Text *t, Arena *arena, const StepMemory *m)
{
    Text kept, peak;
    text_open(&kept, arena);
    text_open(&peak, arena);
    add_types(&kept, arena, NULL, m->arena.kept);
    for (int i = 0; i < ARENA_KINDS; i++)
        add_types(&peak, arena, arena_words[i], m->arena.peak[i]);
    if (kept.n)
        text_printf(t, "  %-14s where backward begins: %s\n", "kept", text_get(&kept));
    if (peak.n)
        text_printf(t, "  %-14s %s: %s\n", "at the peak", step_part_name(m->arena.part), text_get(&peak));
}

typedef struct MemoryRow {
    const char *words, *key; /* for people and for programs: as qcc_memory and the parts say it */
    uint64_t bytes;
    bool told;
} MemoryRow;

enum { MEMORY_ROWS = 9 };

static void rows_of(const StepMemory *m, MemoryRow rows[MEMORY_ROWS])
{
    const MemoryRow all[MEMORY_ROWS] = {
        { "weights", "weights", m->weights, true },
        { "optimizer", "optimizer", m->optimizer, true },
        { "other states", "other_state", m->other_state, true },
        { "gradients", "gradients", m->gradients, true },
        { "activations", "activations", m->activations, true },
        { "scratch", "scratch", m->scratch, !m->estimated },
        { "model", "model", m->model, m->model > 0 },
        { "all", "total", m->total, true },
        { "to validate", "validation", m->validation, m->validation > 0 },
    };
    memcpy(rows, all, sizeof all);
}

/* A record of each type that there is something of. */
static void type_records(Text *t, const char *kind, const char *part, const uint64_t by_type[DTYPE_COUNT])
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (by_type[i])
            log_record(t, "memory", { "kind", logged_text(kind) }, { "part", logged_text(part) },
                       { "type", logged_text(dtype_name((DType)i)) }, { "bytes", logged_int((int64_t)by_type[i]) });
}

void step_memory_records(Text *t, const StepMemory *m)
{
    MemoryRow rows[MEMORY_ROWS];
    rows_of(m, rows);
    for (size_t i = 0; i < MEMORY_ROWS; i++)
        if (rows[i].told)
            log_record(t, "memory", { "kind", logged_text(rows[i].key) },
                       { "bytes", logged_int((int64_t)rows[i].bytes) });
    for (int i = 0; i < FOOTPRINT_PART_COUNT; i++)
        type_records(t, sum_words[i], part_words[i], m->parts[i]);
    type_records(t, "kept", NULL, m->arena.kept);
    for (int i = 0; i < ARENA_KINDS; i++)
        type_records(t, "peak", arena_words[i], m->arena.peak[i]);
}

void step_memory_table(Text *t, const qcc_step *s, const StepMemory *m)
{
    MemoryRow rows[MEMORY_ROWS];
    Arena *arena = &s->cx->scratch;
    rows_of(m, rows);
    text_printf(t, "memory at batch %" PRId64 "%s\n", s->facts.batch, step_memory_doubt(arena, m));
    for (size_t i = 0; i < MEMORY_ROWS; i++) {
        const char *parts = parts_text(arena, m, rows[i].key);
        if (rows[i].told)
            text_printf(t, "  %-14s %14s   %15s bytes%s%s\n", rows[i].words, bytes_text(arena, rows[i].bytes),
                        grouped(arena, (int64_t)rows[i].bytes),
                        i + 1 == MEMORY_ROWS ? " more"
                        : parts[0]           ? "   "
                                             : "",
                        parts);
    }
    tell_arena(t, arena, m);
}
