/* Options of mixed precision and quantization: their tables, and what has no effect. */
#include "api/make/recipe.h"
#include "api/make/table_texts.h"
#include "passes/recipe/scale_read.h"

static bool is_of_quant(Option o)
{
    return o == OPT_quant || o == OPT_quant_op || o == OPT_quant_table || o == OPT_datapath || o == OPT_freeze_ranges;
}

/* Options that say something of --amp without it: what was meant to happen does not. */
static Status warn_of_idle(qcc_step *s, const CommandLine *line)
{
    for (int o = 0; o < OPT_COUNT && !option_given(line, OPT_amp); o++) {
        const OptionSpec *spec = &option_specs[o];
        if (spec->topic == TOPIC_QUANT && spec->keep == KEEP_IDENTITY && !is_of_quant((Option)o) &&
            option_given(line, (Option)o))
            TRY(warn(&s->cx->diag, (Place){ .where = spec->name, .byte = -1 },
                     "has no effect without --amp bf16 or --amp fp16"));
    }
    return OK;
}

static Status warn_of_idle_quant(qcc_step *s, const CommandLine *line)
{
    static const Option idle[] = { OPT_quant_op, OPT_quant_table, OPT_datapath, OPT_freeze_ranges };
    for (size_t i = 0; i < COUNT(idle) && !s->recipe.quantization.spec && !s->recipe.quantization.products; i++)
        if (option_given(line, idle[i]))
            TRY(warn(&s->cx->diag, (Place){ .where = option_specs[idle[i]].name, .byte = -1 },
                     "has no effect without --quant"));
    return OK;
}

static Status warn_of_scale(qcc_step *s, const CommandLine *line)
{
    const Place place = { .where = option_specs[OPT_loss_scale].name, .byte = -1 };
    if (!option_given(line, OPT_loss_scale) || !loss_scale_is_idle(&s->recipe))
        return OK;
    return warn(&s->cx->diag, place,
                "changes nothing here: gradients of f32 and bf16 do not underflow (it helps --amp fp16)");
}

Status precision_read(qcc_step *s, const CommandLine *line)
{
    TRY(warn_of_idle(s, line));
    TRY(warn_of_idle_quant(s, line));
    TRY(warn_of_scale(s, line));
    return step_read_tables(s, line);
}
