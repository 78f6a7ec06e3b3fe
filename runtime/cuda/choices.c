#include "runtime/cuda/choices.h"

#include "base/clock.h"

static bool is_choice(const char *name);

static const StoreKind store_of_choices = {
    .ending = ".choice",
    .magic = "qcc choices 1\n",
    .without = "nothing is measured without it",
    .anew = "is damaged; its choice is made anew",
    .lost = "what was measured is not kept",
    .is_ours = is_choice,
    .stays = true,
};

static bool is_choice(const char *name)
{
    return store_is_name(name, store_of_choices.ending);
}

void choices_open(Choices *c, const KernelCache *cache, Diag *d, Arena *arena)
{
    *c = (Choices){ .measured = 0 };
    kernel_store_open(&c->store, &store_of_choices, cache, d, arena);
}

/* Whether something is kept, and which way it is; the first where it is none. */
static bool find(Choices *c, const KernelKey *key, const Choice *choice, int *way)
{
    Str kept;
    *way = 0;
    if (!kernel_store_find(&c->store, key, &kept))
        return false;
    for (int i = 0; i < choice->n; i++)
        if (str_equal(kept, choice->ways[i]))
            *way = i;
    return true;
}

/* Below 0: measuring failed. */
static int fastest(const Choice *choice)
{
    double best = -1;
    int found = 0;
    for (int i = 0; i < choice->n; i++) {
        const double seconds = choice->seconds(choice->user, i);
        if (seconds <= CHOICE_FAILED)
            return -1;
        if (seconds < 0 || (best >= 0 && seconds >= best))
            continue;
        best = seconds;
        found = i;
    }
    return found;
}

int choice_make(Choices *c, const Choice *choice)
{
    const KernelKey key = store_key(&store_of_choices, choice->words);
    int way;
    if (find(c, &key, choice, &way) || c->store.closed)
        return way;
    const double began = clock_seconds();
    const int best = fastest(choice);
    if (best < 0)
        return 0;
    kernel_store_keep(&c->store, &key, choice->ways[best]);
    c->measured += find(c, &key, choice, &way);
    c->seconds += clock_seconds() - began;
    return way;
}

void choices_settle(Choices *c)
{
    kernel_store_close(&c->store);
    c->store.wrote = false;
}
