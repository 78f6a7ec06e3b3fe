/* Products as a session begins, on memory that is nobody's: how long each way takes, and what it makes of what is no number. */
#include "base/half.h"
#include "runtime/cuda/products_parts.h"

enum {
    PLACE = 256,       /* what each matrix is aligned at, but for where its first element lies in it, */
    OFFSET = 64,       /* which is kept below this */
    NO_NUMBERS = 0xff, /* bytes that are none, of every type of floats */
    ROUNDS = 3,        /* the shortest of which counts, */
    RUNS = 4           /* each of so many runs */
};

/* ---- memory ---- */

static size_t stack_bytes(const MatrixStack *s, int64_t n)
{
    return product_bytes(s, (n - 1) * s->step + (s->columns - 1) * s->line + s->rows);
}

/* The next place for so many bytes, as far from a multiple as where they lie in a run. */
static CudaAddress next_place(size_t *at, size_t bytes, size_t from)
{
    const CudaAddress place = *at + from % OFFSET;
    *at = (place + bytes + PLACE - 1) / PLACE * PLACE;
    return place;
}

/* Where everything lies from byte 0 on; how many bytes that takes. */
static size_t lay_out(const KernelProduct *k, ProductPlaces *to, CudaAddress *scratch, size_t scratch_bytes)
{
    const StackProduct *is = &k->is;
    size_t at = 0;
    *to = (ProductPlaces){ .a = next_place(&at, stack_bytes(&is->a, is->n), product_bytes(&is->a, is->a.from)),
                           .b = next_place(&at, stack_bytes(&is->b, is->n), product_bytes(&is->b, is->b.from)),
                           .d = next_place(&at, stack_bytes(&is->d, is->n), product_bytes(&is->d, is->d.from)) };
    if (is->end.added != NO_ARGUMENT)
        to->c = next_place(&at, stack_bytes(&is->d, is->n), 0);
    if (is->end.bias != NO_ARGUMENT)
        to->bias = next_place(&at, (size_t)is->d.rows * (size_t)dtype_bits(is->end.bias_type) / 8, 0);
    *scratch = next_place(&at, scratch_bytes, 0);
    return at;
}

static void give_room_back(TrialRoom *r, Device *device)
{
    device_wait(device);
    if (r->at)
        (void)device->driver.give_back(r->at);
    r->at = 0;
    r->bytes = 0;
}

static bool open_room(TrialRoom *r, Device *device, size_t bytes)
{
    if (r->bytes >= bytes)
        return true;
    give_room_back(r, device);
    if (!device_well(device))
        return false;
    const int code = device->driver.alloc(&r->at, bytes);
    if (code != CUDA_OK)
        r->at = 0;
    if (code == CUDA_NO_MEMORY || !device_did(device, code, "taking memory to measure on"))
        return false;
    r->bytes = bytes;
    return true;
}

bool trial_room(Products *p, size_t bytes, unsigned char byte)
{
    Device *device = p->device;
    return open_room(&p->room, device, bytes) && device_well(device) &&
           device_did(device, device->driver.set(p->room.at, byte, bytes, device->stream), "setting memory");
}

/* The same, everything of it bytes of one kind, and the places in it. */
static bool prepare(Products *p, const KernelProduct *k, size_t scratch_bytes, unsigned char byte, ProductPlaces *at,
                    CudaAddress *scratch)
{
    const TrialRoom *r = &p->room;
    if (!trial_room(p, lay_out(k, at, scratch, scratch_bytes), byte))
        return false;
    *at = (ProductPlaces){ at->a + r->at, at->b + r->at, k->is.end.added == NO_ARGUMENT ? 0 : at->c + r->at,
                           at->d + r->at, k->is.end.bias == NO_ARGUMENT ? 0 : at->bias + r->at };
    *scratch += r->at;
    return true;
}

/* ---- a way that does not run ---- */

/* Whether it ran: a way that the library does not take after all is no failure. */
static bool runs(Products *p, const KernelProduct *k, const CublasChoice *way, const ProductPlaces *at,
                 CudaAddress scratch)
{
    const int code = product_multiply(p, k, way, at, scratch, p->device->stream);
    if (code == CUBLAS_OK)
        return true;
    if (code != CUBLAS_NOT_SUPPORTED && code != CUBLAS_INVALID)
        (void)device_failed(p->device, "trying a way to multiply", p->library.error_name(code));
    return false;
}

/* ---- what is no number ---- */

static bool is_nan(DType type, const unsigned char *bytes)
{
    uint16_t half;
    float wide;
    memcpy(&half, bytes, sizeof half);
    memcpy(&wide, bytes, sizeof wide);
    const float x = type == F32 ? wide : type == BF16 ? bf16_to_f32(half) : f16_to_f32(half);
    return x != x;
}

bool product_keeps_nan(Products *p, const KernelProduct *k, const CublasChoice *way)
{
    Device *device = p->device;
    ProductPlaces at;
    CudaAddress scratch;
    unsigned char made[sizeof(float)] = { 0 };
    const size_t bytes = product_bytes(&k->is.d, 1);
    if (!device_well(device) || !prepare(p, k, way->scratch, NO_NUMBERS, &at, &scratch) ||
        !device_did(device, device->driver.set(at.d, 0, bytes, device->stream), "setting memory") ||
        !runs(p, k, way, &at, scratch))
        return false;
    space_read(&device->space, made, (const void *)(uintptr_t)at.d, bytes);
    return device_well(device) && is_nan(k->is.d.type, made);
}

/* ---- times ---- */

static bool open_events(TrialRoom *r, Device *device)
{
    CudaEvent **const both[] = { &r->from, &r->to };
    for (size_t i = 0; i < COUNT(both); i++)
        if (!*both[i] && (!device_well(device) ||
                          !device_did(device, device->driver.event(both[i], CUDA_EVENT_TIMES), "making an event")))
            return false;
    return true;
}

static bool record(Device *device, CudaEvent *event)
{
    return device_well(device) &&
           device_did(device, device->driver.record(event, device->stream), "recording an event");
}

/* Seconds of one run of several. */
static double round_seconds(Products *p, TrialRun *run, void *user)
{
    Device *device = p->device;
    TrialRoom *r = &p->room;
    float milliseconds = 0;
    bool ran = record(device, r->from);
    for (int i = 0; i < RUNS && ran; i++)
        ran = run(user);
    if (!ran || !record(device, r->to))
        return CHOICE_UNKNOWN;
    device_wait(device);
    if (!device_well(device) ||
        !device_did(device, device->driver.elapsed(&milliseconds, r->from, r->to), "asking for times"))
        return CHOICE_UNKNOWN;
    return (double)milliseconds / 1e3 / RUNS;
}

double trial_seconds(Products *p, TrialRun *run, void *user)
{
    double best = CHOICE_UNKNOWN;
    bool ran = device_well(p->device) && open_events(&p->room, p->device) && run(user); /* the first run is slower */
    for (int i = 0; i < ROUNDS && ran; i++) {
        const double seconds = round_seconds(p, run, user);
        ran = seconds >= 0;
        best = best < 0 || seconds < best ? seconds : best;
    }
    return !device_well(p->device) ? CHOICE_FAILED : ran ? best : CHOICE_UNKNOWN;
}

/* A product on the memory that it is tried on. */
typedef struct Tried {
    const ProductTimes *of;
    const CublasChoice *way;
    ProductPlaces at;
    CudaAddress scratch;
} Tried;

static bool run_tried(void *tried)
{
    const Tried *t = tried;
    return runs(t->of->p, t->of->k, t->way, &t->at, t->scratch);
}

double product_seconds(void *times, int way)
{
    const ProductTimes *of = times;
    Products *p = of->p;
    Tried t = { .of = of, .way = &of->ways[way] };
    if (!device_well(p->device) || !prepare(p, of->k, t.way->scratch, TRIAL_NUMBERS, &t.at, &t.scratch))
        return device_well(p->device) ? CHOICE_UNKNOWN : CHOICE_FAILED;
    return trial_seconds(p, run_tried, &t);
}

void product_end_trials(Products *p)
{
    Device *device = p->device;
    TrialRoom *r = &p->room;
    if (r->at)
        give_room_back(r, device);
    if (r->from)
        (void)device->driver.end_event(r->from);
    if (r->to)
        (void)device->driver.end_event(r->to);
    r->from = r->to = NULL;
}
