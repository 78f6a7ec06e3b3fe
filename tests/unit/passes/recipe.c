/* Optimizers, groups and schedules as people write them: what they become, and what is said about mistakes. */
#include "passes/recipe/optimizer_read.h"
#include "passes/recipe/settings.h"
#include "support/language.h"
#include "unit/check.h"

static const struct {
    const char *words, *text; /* what they become, in words again */
} kinds[] = {
    { "sgd", "sgd lr 0.001" },
    { "sgd:lr=0.1,weight_decay=1e-4", "sgd lr 0.1, weight_decay 0.0001" },
    { "sgd:lr=0.1,momentum=0.9", "momentum lr 0.1" },
    { "sgd:momentum=0.5,nesterov", "nesterov lr 0.001, momentum 0.5" },
    { "sgd:momentum=0.5,nesterov=True", "nesterov lr 0.001, momentum 0.5" },
    { "momentum:dampening=0.1", "momentum lr 0.001, dampening 0.1" },
    { "adam:betas=0.8/0.99,eps=1e-6", "adam lr 0.001, beta1 0.8, beta2 0.99, eps 1e-6" },
    { "adam:betas=(0.8, 0.99),amsgrad=1", "adam lr 0.001, beta1 0.8, beta2 0.99, amsgrad on" },
    { "adam:betas=[0.8,0.99],learning_rate=1", "adam lr 1, beta1 0.8, beta2 0.99" },
    { "adamw", "adamw lr 0.001" },
    { "adamw:lr=3e-4,weight_decay=0", "adamw lr 0.0003, weight_decay 0" },
    { "adam:weight_decay=0.01,decoupled=true", "adamw lr 0.001" },
    { "adagrad:lr_decay=0.1,initial_accumulator_value=0.5",
      "adagrad lr 0.01, lr_decay 0.1, initial_accumulator_value 0.5" },
    { "rmsprop:alpha=0.9,centered=true,momentum=0.5", "rmsprop lr 0.01, alpha 0.9, momentum 0.5, centered on" },
    { "lamb:epsilon=1e-5", "lamb lr 0.001, eps 1e-5" },
    { "lion:beta1=0.95", "lion lr 0.0001, beta1 0.95" },
    { "adamw8bit:eps=1e-6", "adamw8bit lr 0.001, eps 1e-6" },
    { "adamw:states=4bit,states_min=1024", "adamw lr 0.001, states 4bit, states_min 1024" },
    { "adamw:states=8bit,sticky=true", "adamw8bit lr 0.001, sticky on" },
    { "lion8bit:states=fp8", "lion lr 0.0001, states fp8" },
};

static Status read_words(Language *l, const OptimizerWords *words, Recipe *r)
{
    *r = (Recipe){ .n_groups = 0 };
    return recipe_read_optimizer(r, words, &l->ops, &l->arena, &l->diag);
}

static void kinds_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        Language l;
        Recipe r;
        language_open(&l);
        const Status status = read_words(&l, &(OptimizerWords){ .optimizer = kinds[i].words }, &r);
        check_that(status == OK, "%s: %s", kinds[i].words, text_get(&l.messages));
        assert_string_equal(optimizer_text(&l.arena, &l.ops, &r.groups[0]), kinds[i].text);
        assert_false(r.groups[0].spares_vectors);
        language_close(&l);
    }
}

static void groups_change_what_they_say(void **state)
{
    const char *groups[] = { "op:Conv:lr=0.1x", "bias$:lr=0.5,weight_decay=0" };
    const OptimizerWords words = { .lr = "2", .groups = groups, .n_groups = 2 };
    Language l;
    Recipe r;
    (void)state;
    language_open(&l);
    assert_int_equal(read_words(&l, &words, &r), OK);
    assert_int_equal(r.n_groups, 3);
    assert_string_equal(optimizer_text(&l.arena, &l.ops, &r.groups[0]), "adamw lr 2");
    assert_string_equal(optimizer_text(&l.arena, &l.ops, &r.groups[1]), "adamw lr 0.2");
    assert_string_equal(optimizer_text(&l.arena, &l.ops, &r.groups[2]), "adamw lr 0.5, weight_decay 0");
    assert_string_equal(r.groups[1].selector, "op:Conv");
    assert_true(r.groups[0].spares_vectors && r.groups[1].spares_vectors && !r.groups[2].spares_vectors);
    language_close(&l);
}

/* A group may have another optimizer: its kind's settings and rate, then what is said, in any order. */
static void groups_have_optimizers(void **state)
{
    const char *groups[] = { "^fc2$:optimizer=sgd,lr=0.1,momentum=0.9", "b:lr=2x,optimizer=lion", "c:optimizer=adamw" };
    const OptimizerWords words = { .lr = "2", .groups = groups, .n_groups = 3 };
    Language l;
    Recipe r;
    (void)state;
    language_open(&l);
    check_that(read_words(&l, &words, &r) == OK, "%s", text_get(&l.messages));
    assert_string_equal(optimizer_text(&l.arena, &l.ops, &r.groups[1]), "momentum lr 0.1");
    assert_string_equal(optimizer_text(&l.arena, &l.ops, &r.groups[2]), "lion lr 4");
    assert_string_equal(optimizer_text(&l.arena, &l.ops, &r.groups[3]), "adamw lr 0.001");
    assert_string_equal(r.groups[1].selector, "^fc2$");
    assert_true(r.groups[0].spares_vectors && !r.groups[1].spares_vectors && !r.groups[3].spares_vectors);
    language_close(&l);
}

static void schedules_are_read(void **state)
{
    Language l;
    Recipe r;
    (void)state;
    language_open(&l);
    assert_int_equal(read_words(&l, &(OptimizerWords){ .schedule = "cosine:warmup=500,eta_min=1e-6,T_max=10" }, &r),
                     OK);
    assert_true(r.schedule.kind == SCHEDULE_COSINE && r.schedule.warmup == 500 && r.schedule.total == 10);
    assert_true(r.schedule.min_lr == 1e-6 && r.schedule.warmup_ratio == 0);
    assert_int_equal(read_words(&l, &(OptimizerWords){ .schedule = "onecycle" }, &r), OK);
    assert_true(r.schedule.kind == SCHEDULE_ONECYCLE && r.schedule.warmup_ratio == 0.3);
    assert_true(r.schedule.div_factor == 25 && r.schedule.final_div_factor == 1e4);
    assert_int_equal(read_words(&l, &(OptimizerWords){ .schedule = "onecycle:pct_start=0.1" }, &r), OK);
    assert_true(r.schedule.warmup_ratio == 0.1);
    assert_int_equal(read_words(&l, &(OptimizerWords){ .schedule = "step:step_size=30,gamma=0.5,warmup=3" }, &r), OK);
    assert_true(r.schedule.kind == SCHEDULE_STEP && r.schedule.every == 30 && r.schedule.factor == 0.5);
    assert_true(r.schedule.warmup == 3);
    static const char *const stairs[] = { "multistep:at=3/60/900", "multistep:milestones=[3, 60,900]" };
    for (size_t i = 0; i < COUNT(stairs); i++) {
        assert_int_equal(read_words(&l, &(OptimizerWords){ .schedule = stairs[i] }, &r), OK);
        assert_true(r.schedule.kind == SCHEDULE_MULTISTEP && r.schedule.n_at == 3 && r.schedule.factor == 0.1);
        assert_true(r.schedule.at[0] == 3 && r.schedule.at[1] == 60 && r.schedule.at[2] == 900);
    }
    language_close(&l);
}

static const char *const one_group[] = { "x",
                                         "bias:",
                                         "bias:lr=0.1y",
                                         ":lr=1",
                                         "b:what=1",
                                         "b:optimizer=adamx",
                                         "b:lr=1,optimizer=sgd,beta1=0",
                                         "b:optimizer=",
                                         "b:optimizer=nesterov,dampening=0.5",
                                         "b:optimiser=sgd" };

static const struct {
    OptimizerWords words;
    const char *message;
} mistakes[] = {
    { { .optimizer = "adamx" }, "--optimizer: no optimizer is called adamx\n  try: adam\n" },
    { { .optimizer = "q" },
      "--optimizer: no optimizer is called q\n  try: sgd, momentum, nesterov, adam, adamw, adagrad, rmsprop, lamb, "
      "lion, momentum8bit, "
      "adam8bit, adamw8bit, lion8bit\n" },
    { { .optimizer = "adam:weight_decy=1" }, "--optimizer: adam has no setting weight_decy\n  try: weight_decay\n" },
    { { .optimizer = "lion:zzzzzz=1" },
      "--optimizer: lion has no setting zzzzzz\n  try: lr, sticky, scale_decay, beta1, beta2, weight_decay, "
      "states, states_min, betas\n" },
    { { .optimizer = "adamw:states=6bit" },
      "--optimizer: adamw: states is '6bit', wanted is 8bit, 4bit, fp8 or f32\n" },
    { { .optimizer = "adamw:states_min=1.5" },
      "--optimizer: adamw: states_min is '1.5', wanted is a number of elements\n" },
    { { .optimizer = "sgd:largest=7" },
      "--optimizer: sgd has no setting largest\n  try: lr, sticky, scale_decay, momentum, dampening, weight_decay, "
      "nesterov, states, states_min\n" },
    { { .optimizer = "sgd:lr=fast" }, "--optimizer: sgd: lr is 'fast', wanted is a number, 0 or more\n" },
    { { .optimizer = "sgd:lr=-1" }, "--optimizer: sgd: lr is '-1', wanted is a number, 0 or more\n" },
    { { .optimizer = "sgd:lr=nan" }, "--optimizer: sgd: lr is 'nan', wanted is a number, 0 or more\n" },
    { { .optimizer = "adam:beta1=1" }, "--optimizer: adam: beta1 is '1', wanted is a number from 0 to below 1\n" },
    { { .optimizer = "adam:betas=0.9" }, "--optimizer: adam: betas is '0.9', wanted is two numbers, as 0.9/0.999\n" },
    { { .optimizer = "adam:betas=0.9/1.5" },
      "--optimizer: adam: beta2 is '1.5', wanted is a number from 0 to below 1\n" },
    { { .optimizer = "adam:amsgrad=maybe" }, "--optimizer: adam: amsgrad is 'maybe', wanted is true or false\n" },
    { { .optimizer = "adam:lr" }, "--optimizer: adam: lr is '', wanted is a number, 0 or more\n" },
    { { .optimizer = "adam:lr=1,lr=2" }, "--optimizer: adam: lr is there twice\n" },
    { { .optimizer = "adam:lr=1," }, "--optimizer: adam: nothing stands where key=value is wanted\n" },
    { { .optimizer = "sgd:nesterov" }, "--optimizer: sgd: nesterov wants a momentum and no dampening\n" },
    { { .lr = "much" }, "--lr: lr is 'much', wanted is a number, 0 or more\n" },
    { { .groups = &one_group[0], .n_groups = 1 }, "--group: 'x' is no SELECTOR:key=value\n" },
    { { .groups = &one_group[1], .n_groups = 1 }, "--group: 'bias:' is no SELECTOR:key=value\n" },
    { { .groups = &one_group[2], .n_groups = 1 }, "--group: bias: lr is '0.1y', wanted is a number, 0 or more\n" },
    { { .groups = &one_group[3], .n_groups = 1 }, "--group: ':lr=1' is no SELECTOR:key=value\n" },
    { { .groups = &one_group[4], .n_groups = 1 },
      "--group: b has no setting what\n  try: lr, sticky, scale_decay, beta1, beta2, eps, weight_decay, decoupled, "
      "amsgrad, states, states_min, betas, optimizer\n" },
    { { .groups = &one_group[5], .n_groups = 1 }, "--group: no optimizer is called adamx\n  try: adam\n" },
    { { .groups = &one_group[6], .n_groups = 1 },
      "--group: b: sgd has no setting beta1\n  try: lr, sticky, scale_decay, momentum, dampening, weight_decay, "
      "nesterov, states, states_min, optimizer\n" },
    { { .groups = &one_group[7], .n_groups = 1 }, "--group: b: optimizer is '', wanted is the name of an optimizer\n" },
    { { .groups = &one_group[8], .n_groups = 1 },
      "--group: b: nesterov: nesterov wants a momentum and no dampening\n" },
    { { .groups = &one_group[9], .n_groups = 1 }, "--group: b has no setting optimiser\n  try: optimizer\n" },
    { { .schedule = "cosin" }, "--schedule: no schedule is called cosin\n  try: cosine\n" },
    { { .schedule = "constant:min_lr=1" }, "--schedule: constant has no setting min_lr\n  try: warmup\n" },
    { { .schedule = "step" }, "--schedule: step: every is '', wanted is a count of steps, 1 or more\n" },
    { { .schedule = "step:every=0" }, "--schedule: step: every is '', wanted is a count of steps, 1 or more\n" },
    { { .schedule = "step:at=3" }, "--schedule: step has no setting at\n  try: every, factor, warmup\n" },
    { { .schedule = "multistep:factor=0.5" },
      "--schedule: multistep: at is '', wanted is counts of steps, as 30/60/90\n" },
    { { .schedule = "multistep:at=30/x" },
      "--schedule: multistep: at is '30/x', wanted is counts of steps, as 30/60/90\n" },
    { { .schedule = "multistep:at=0/3" },
      "--schedule: multistep: at is '0/3', wanted is counts of steps, as 30/60/90\n" },
    { { .schedule = "linear:warmup=-1" }, "--schedule: linear: warmup is '-1', wanted is a count, 0 or more\n" },
    { { .schedule = "onecycle:div_factor=0" },
      "--schedule: onecycle: div_factor is '0', wanted is a number, 1 or more\n" },
};

static void mistakes_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        Language l;
        Recipe r;
        language_open(&l);
        assert_int_equal(read_words(&l, &mistakes[i].words, &r), USAGE);
        assert_string_equal(text_get(&l.messages), mistakes[i].message);
        language_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_read),         cmocka_unit_test(groups_change_what_they_say),
        cmocka_unit_test(groups_have_optimizers), cmocka_unit_test(schedules_are_read),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
