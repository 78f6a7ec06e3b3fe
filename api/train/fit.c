/* Quantizers see the data, between what is done before ranges are known and behind that. */
#include "api/train/fit.h"

/* Copies of what the model reads of the first batches. */
static Status keep_batches(const Fit *f, Heap *heap, Batches *kept)
{
    Arena *arena = &f->c->cx->scratch;
    const char **names = NEWS(arena, const char *, f->data->n_inputs + 1);
    const int64_t have = feed_batches(f->feed);
    for (size_t i = 0; i < f->data->n_inputs; i++)
        names[i] = f->data->inputs[i].name;
    *kept = (Batches){ .names = names, .n_names = f->data->n_inputs };
    for (int64_t i = 0; i < f->most && (have < 0 || i < have); i++) {
        Batch batch;
        TRY(feed_batch(f->feed, &f->c->cx->diag, 0, i, &batch));
        if (!batch.rows)
            return OK;
        GROW(arena, kept->values, kept->n, kept->cap);
        const Tensor **values = NEWS(arena, const Tensor *, kept->n_names + 1);
        for (size_t v = 0; v < kept->n_names; v++) {
            Tensor *own = batch.values[v] ? tensor_alloc(heap, batch.values[v]->type) : NULL;
            if (own && own->bytes)
                memcpy(own->data, batch.values[v]->data, own->bytes);
            values[v] = own;
        }
        kept->values[kept->n++] = values;
    }
    return OK;
}

/* Ranges behind an equalization, which is taken back where results are further from those of floats with it. */
static Status equalize(const Fit *f, const Batches *batches, Heap *heap, Text *told)
{
    size_t n;
    double with, without;
    Text words;
    text_open(&words, &f->step->arena);
    const NamedTensor *before = ptq_states(f->run, heap, &f->c->cx->scratch, &n);
    TRY(f->see(f->user, f->most));
    TRY(ptq_results(f->step, f->run, batches, f->plan->corrects, &without));
    TRY(ptq_put_back(f->run, before, n));
    TRY(ptq_equalize(f->step, f->run, batches, &words));
    TRY(f->see(f->user, f->most));
    const NamedTensor *equal = ptq_states(f->run, heap, &f->c->cx->scratch, &n);
    TRY(ptq_results(f->step, f->run, batches, f->plan->corrects, &with));
    if (with >= without) {
        text_add(told, text_get(&words));
        text_printf(told, "  results        %.1f dB, %.1f dB without these factors\n", with, without);
        return ptq_put_back(f->run, equal, n);
    }
    text_printf(told, "  equalized      nothing: results would be %.1f dB instead of %.1f dB\n", with, without);
    TRY(ptq_put_back(f->run, before, n));
    return f->see(f->user, f->most);
}

static Status fit(const Fit *f, const Batches *batches, Heap *heap, Text *told)
{
    const uint64_t seed = (uint64_t)option_count(&f->c->line, OPT_seed, 0);
    text_printf(told, "%-16s %s\n", "ptq", option_text(&f->c->line, OPT_ptq));
    TRY(f->plan->equalizes ? equalize(f, batches, heap, told) : f->see(f->user, f->most));
    return ptq_layers(f->step, f->run, batches, f->plan, seed, told);
}

Status fit_codes(const Fit *f, const char **told)
{
    Batches batches;
    Heap heap;
    Text words;
    heap_open(&heap, &f->c->cx->memory);
    text_open(&words, &f->step->arena);
    Status status = keep_batches(f, &heap, &batches);
    if (status == OK)
        status = fit(f, &batches, &heap, &words);
    heap_close(&heap);
    *told = text_get(&words);
    return status;
}
