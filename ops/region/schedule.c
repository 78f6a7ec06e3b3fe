#include "ops/region/schedule.h"

typedef struct RunLimits {
    const char *name;
    int64_t longest, lone, fewest;
    const char *why;
} RunLimits;

static const RunLimits limits[] = {
#define SCHEDULE(word, longest, lone, fewest, why) { #word, longest, lone, fewest, why },
#include "ops/region/schedules.def"
};

RegionSchedule region_schedule(const Region *r)
{
    if (r->contraction)
        return RUNS_contract;
    if (region_has_channels(r))
        return RUNS_channels;
    return r->cut == REGION_UNCUT ? RUNS_flat : RUNS_rows;
}

const char *schedule_name(RegionSchedule s)
{
    return limits[s].name;
}

const char *schedule_limits(const Region *r)
{
    const RunLimits *l = &limits[region_schedule(r)];
    return r->length > (r->rows < l->fewest ? l->lone : l->longest) ? l->why : NULL;
}
