/* How a region runs: one of few ways, each with its limits (ops/region/schedules.def). */
#ifndef OPS_REGION_SCHEDULE_H
#define OPS_REGION_SCHEDULE_H

#include "ops/region/region.h"

typedef enum RegionSchedule {
#define SCHEDULE(word, longest, lone, fewest, why) RUNS_##word,
#include "ops/region/schedules.def"
} RegionSchedule;

/* The way that a closed region runs. */
RegionSchedule region_schedule(const Region *r);

/* The word for it. */
const char *schedule_name(RegionSchedule s);

/* Why calls that would be such a region rather stay apart; null: nothing is against it. */
const char *schedule_limits(const Region *r);

#endif
