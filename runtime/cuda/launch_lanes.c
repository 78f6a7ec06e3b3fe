/* Launches that are recorded as one graph, side by side where they may be: data and weight gradients of a layer, which both read
 * what came from behind and write places of their own.
 *
 * Two launches of which one writes what the other reads or writes keep their order; nothing else does.  Each goes behind the last one
 * that it waits for, where that is the end of a lane, and otherwise into the lane whose end is oldest. */
#include <string.h>

#include "runtime/cuda/launches_parts.h"

enum { LANE_START = -1, LANE_NONE = -1 };

/* Where a launch goes. */
typedef struct LaunchLane {
    int lane;         /* LANE_NONE: it does not run */
    int waits[LANES]; /* for this launch of each; LANE_START: for none */
    CudaEvent *event; /* behind it, where somebody waits for it */
    bool awaited, last;
} LaunchLane;

/* Bytes that a launch touches. */
typedef struct Touched {
    CudaAddress from, end;
    bool written;
} Touched;

typedef struct Touches {
    Touched *list;
    int n;
} Touches;

static void touch(Touches *t, const Tensor *x, bool written)
{
    if (x && x->bytes)
        t->list[t->n++] = (Touched){ device_address(x->data), device_address(x->data) + x->bytes, written };
}

static Touches touches_of(const ProgramRunner *p, int launch, Arena *scratch)
{
    const LaunchRun *run = &p->launches[launch];
    const Launch *l = run->launch;
    const int factors = run->product ? l->contraction->n_in : 0;
    Touches t = { NEWS(scratch, Touched, l->n_in + l->n_out + factors + 2), 0 };
    for (int i = 0; i < factors; i++)
        touch(&t, run->factors[i], false);
    if (run->product)
        touch(&t, run->product, true);
    for (int i = 0; i < l->n_in; i++)
        touch(&t, run->in[i], false);
    for (int i = 0; i < l->n_out; i++)
        touch(&t, run->out[i], true);
    return t;
}

static bool meet(const Touches *a, const Touches *b)
{
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++) {
            const Touched *x = &a->list[i], *y = &b->list[k];
            if ((x->written || y->written) && x->from < y->end && y->from < x->end)
                return true;
        }
    return false;
}

/* ---- lanes ---- */

/* What is known as launches are handed out. */
typedef struct Lanes {
    int end[LANES];          /* the last launch of each; LANE_START: none */
    int known[LANES][LANES]; /* of each, up to which launch of another all is done before its end */
} Lanes;

static int oldest(const Lanes *l)
{
    int found = 0;
    for (int i = 1; i < LANES; i++)
        if (l->end[i] < l->end[found])
            found = i;
    return found;
}

static int choose(const Lanes *l, const int *needs)
{
    for (int i = 0; i < LANES; i++)
        if (needs[i] != LANE_START && needs[i] == l->end[i])
            return i;
    return oldest(l);
}

/* A lane's end is this launch now, behind what it waits for. */
static void put(Lanes *l, LaunchLane *to, int launch, const int *needs)
{
    int *known = l->known[to->lane];
    for (int i = 0; i < LANES; i++) {
        to->waits[i] = LANE_START;
        if (i == to->lane || needs[i] <= known[i])
            continue;
        to->waits[i] = needs[i];
        known[i] = needs[i];
    }
    l->end[to->lane] = launch;
}

/* Hands out launches; how many of them are beside the first lane.  `lanes` begins with the first. */
static int plan(const ProgramRunner *p, int from, int end, LaunchLane *lanes, Arena *scratch)
{
    Lanes l;
    Touches *touched = NEWS(scratch, Touches, end - from);
    int beside = 0;
    for (int i = 0; i < LANES; i++) {
        l.end[i] = LANE_START;
        for (int k = 0; k < LANES; k++)
            l.known[i][k] = LANE_START;
    }
    for (int i = from; i < end; i++) {
        int needs[LANES];
        LaunchLane *to = &lanes[i - from];
        *to = (LaunchLane){ .lane = LANE_NONE };
        if (!program_wants(p, i))
            continue;
        touched[i - from] = touches_of(p, i, scratch);
        for (int k = 0; k < LANES; k++)
            needs[k] = LANE_START;
        for (int k = i - 1; k >= from; k--)
            if (lanes[k - from].lane != LANE_NONE && needs[lanes[k - from].lane] == LANE_START &&
                meet(&touched[k - from], &touched[i - from]))
                needs[lanes[k - from].lane] = k;
        to->lane = launch_of(p, i)->how->launch.scratch > LANE_SCRATCH ? 0 : choose(&l, needs);
        put(&l, to, i, needs);
        beside += to->lane != 0;
    }
    for (int i = from; i < end; i++)
        for (int k = 0; k < LANES && lanes[i - from].lane != LANE_NONE; k++)
            if (lanes[i - from].waits[k] != LANE_START)
                lanes[lanes[i - from].waits[k] - from].awaited = true;
    for (int k = 1; k < LANES; k++)
        if (l.end[k] != LANE_START)
            lanes[l.end[k] - from].awaited = lanes[l.end[k] - from].last = true;
    return beside;
}

/* ---- recording ---- */

size_t lanes_scratch(size_t most)
{
    const size_t each = most < LANE_SCRATCH ? lane_rounded(most) : LANE_SCRATCH;
    return most ? lane_rounded(most) + (LANES - 1) * each : 0;
}

/* Where a lane works: each has its own part of the scratch. */
static char *scratch_of(const ProgramRunner *p, int lane)
{
    const size_t most = launches_of(p)->scratch, each = most < LANE_SCRATCH ? lane_rounded(most) : LANE_SCRATCH;
    return lane && most ? p->scratch + lane_rounded(most) + (size_t)(lane - 1) * each : p->scratch;
}

/* What runs for recording: the streams of lanes, and an event where they part. */
typedef struct Recorder {
    ProgramRunner *p;
    Device *device;
    CudaStream *streams[LANES];
    CudaEvent *start;
    bool beside, parted[LANES]; /* whether there is more than one lane; which were begun */
} Recorder;

static bool event(Recorder *r, CudaEvent **made)
{
    return device_well(r->device) &&
           device_did(r->device, r->device->driver.event(made, CUDA_EVENT_ORDER), "making an event");
}

static void wait_for(Recorder *r, int lane, CudaEvent *e)
{
    if (device_well(r->device))
        (void)device_did(r->device, r->device->driver.stream_waits(r->streams[lane], e, 0), "recording a step");
}

static void stand(Recorder *r, int lane, CudaEvent *e)
{
    if (device_well(r->device))
        (void)device_did(r->device, r->device->driver.record(e, r->streams[lane]), "recording a step");
}

static void open_recorder(Recorder *r, LaunchLane *lanes, int n)
{
    Device *device = r->device;
    r->streams[0] = device->stream;
    if (!r->beside)
        return;
    for (int i = 1; i < LANES; i++) {
        CudaStream **s = &device->beside[i - 1];
        if (!*s && device_well(device))
            (void)device_did(device, device->driver.stream(s, CUDA_STREAM_APART), "making a stream");
        r->streams[i] = *s;
    }
    (void)event(r, &r->start);
    for (int i = 0; i < n; i++)
        if (lanes[i].awaited)
            (void)event(r, &lanes[i].event);
}

static void close_recorder(Recorder *r, const LaunchLane *lanes, int n)
{
    for (int i = 0; i < n; i++)
        if (lanes[i].event)
            (void)r->device->driver.end_event(lanes[i].event);
    if (r->start)
        (void)r->device->driver.end_event(r->start);
}

static void record_launch(Recorder *r, LaunchLane *lanes, int from, int i)
{
    const LaunchLane *to = &lanes[i - from];
    if (to->lane && !r->parted[to->lane])
        wait_for(r, to->lane, r->start);
    r->parted[to->lane] = true;
    for (int k = 0; k < LANES; k++)
        if (to->waits[k] != LANE_START)
            wait_for(r, to->lane, lanes[to->waits[k] - from].event);
    launch_works_in(r->p, i, scratch_of(r->p, to->lane));
    launch_on(r->p, i, r->streams[to->lane]);
    if (to->awaited)
        stand(r, to->lane, to->event);
}

static void record_lanes(Recorder *r, LaunchLane *lanes, int from, int end)
{
    memset(r->parted, 0, sizeof r->parted);
    if (r->beside)
        stand(r, 0, r->start);
    for (int i = from; i < end; i++)
        if (lanes[i - from].lane != LANE_NONE)
            record_launch(r, lanes, from, i);
    for (int i = from; i < end; i++)
        if (lanes[i - from].last)
            wait_for(r, 0, lanes[i - from].event);
}

/* Late launches behind all others, and behind what decides about them. */
static void record_all(Recorder *r, LaunchLane *lanes, int from, int end)
{
    const int late = launches_late(r->p, end);
    record_lanes(r, lanes, from, late);
    if (!launches_of(r->p)->commit.decides)
        return;
    if (device_well(r->device))
        commit_decide(r->p);
    record_lanes(r, lanes + (late - from), late, end);
    if (device_well(r->device))
        commit_move(r->p);
}

/* Between the beginning of a capture and its end; where that fails launches have not run, and the error sticks. */
static CudaGraph *capture(Recorder *r, LaunchLane *lanes, int from, int end)
{
    const Driver *driver = &r->device->driver;
    CudaGraph *graph = NULL;
    if (!device_well(r->device) ||
        !device_did(r->device, driver->capture(r->device->stream, CUDA_CAPTURE_THREAD), "recording a step"))
        return NULL;
    record_all(r, lanes, from, end);
    if (!device_did(r->device, driver->end_capture(r->device->stream, &graph), "recording a step") && !graph)
        (void)driver->end_capture(r->device->stream,
                                  &graph); /* a stream that still records lets nothing be given back */
    return graph;
}

void launches_record(ProgramRunner *p, CudaGraphExec **made, int from, int end)
{
    Device *device = launches_of(p)->device;
    Recorder r = { .p = p, .device = device };
    Arena scratch;
    arena_open(&scratch, p->ir->memory);
    LaunchLane *lanes = NEWS(&scratch, LaunchLane, end - from);
    const int late = launches_late(p, end);
    r.beside = plan(p, from, late, lanes, &scratch) + plan(p, late, end, lanes + (late - from), &scratch) > 0;
    open_recorder(&r, lanes, end - from);
    CudaGraph *graph = capture(&r, lanes, from, end);
    if (graph && device_well(device))
        (void)device_did(device, device->driver.instantiate(made, graph, 0), "making a graph of a step");
    if (graph)
        (void)device->driver.end_graph(graph);
    close_recorder(&r, lanes, end - from);
    arena_close(&scratch);
}
