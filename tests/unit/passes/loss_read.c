/* Losses from words and back, and what is said of words that mean nothing. */
#include "passes/recipe/loss_read.h"
#include "testing.h"

static Status words_come_back(void *arg)
{
    static const struct {
        const char *text, *back; /* null: as it went in */
    } cases[] = {
        { "cross_entropy", NULL },
        { "cross_entropy:logits", NULL },
        { "cross_entropy:onnx::Gemm_12,axis=-1,label_smoothing=0.1,ignore_index=255,weight=w.npy", NULL },
        { "cross_entropy,axis=2", NULL },
        { "cross_entropy:axis=2", "cross_entropy,axis=2" },
        { "cross_entropy:y,soft", "cross_entropy:y,soft=true" },
        { "cross_entropy:y,soft=true,sample_weight=w,reduction=sum,factor=0.5", NULL },
        { "nll:logp,ignore_index=-1", NULL },
        { "mse:boxes,reduction=mean,factor=1", "mse:boxes" },
        { "huber,delta=0.5", NULL },
        { "huber,beta=0.5", "huber,delta=0.5" },
        { "bce_logits:p,pos_weight=w.npy", "bce_logits:p,weight=w.npy" },
        { "bce_logits:p,gamma=2", NULL },
        { "focal:y,axis=1,gamma=1.5", NULL },
        { "focal:y,gamma=2,weight=w.npy", "focal:y,weight=w.npy" },
        { "output:loss,factor=2", NULL },
        { "external:policy,value", NULL },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        LossSpec l, again;
        assert_int_equal(loss_read(&l, cases[i].text, &c->arena, &c->diag), OK);
        const char *text = loss_text(&c->arena, &l), *want = cases[i].back ? cases[i].back : cases[i].text;
        assert_string_equal(text, want);
        assert_int_equal(loss_read(&again, text, &c->arena, &c->diag), OK);
        assert_string_equal(loss_text(&c->arena, &again), want);
    }
    return OK;
}

static void losses_are_read_and_written(void **state)
{
    (void)state;
    with_context(words_come_back);
}

static Status each_mistake(void *arg)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        { "cros_entropy", "no loss is called cros_entropy\n  try: cross_entropy" },
        { "hinge",
          "no loss is called hinge\n  try: cross_entropy, nll, focal, mse, l1, huber, bce_logits, output, external" },
        { "mse:y,axis=1", "mse has no setting axis" },
        { "cross_entropy:y,label_smothing=0.1", "has no setting label_smothing\n  try: label_smoothing" },
        { "cross_entropy:y,label_smoothing=2", "label_smoothing" },
        { "cross_entropy:y,axis=x", "axis" },
        { "nll:y,label_smoothing=0.1", "nll has no setting label_smoothing" },
        { "huber,delta=0", "delta" },
        { "focal,gamma=-1", "focal: gamma is '-1', wanted is a number, 0 or more" },
        { "focal,label_smoothing=0.1", "focal has no setting label_smoothing" },
        { "cross_entropy,gama=1", "cross_entropy has no setting gama" },
        { "mse,reduction=max", "wanted is mean or sum" },
        { "mse:a,b", "one output is wanted" },
        { "mse:y,factor=1,factor=2", "factor is there twice" },
        { "mse:y,,", "nothing stands" },
        { "output", "output of which output?" },
        { "external:", "nothing stands" },
        { "external:y,factor=2", "external has no setting factor" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        LossSpec l;
        c->last = "";
        assert_int_equal(loss_read(&l, cases[i].text, &c->arena, &c->diag), USAGE);
        if (!strstr(c->last, cases[i].said)) {
            print_error("%s: %s\nnot: %s\n", cases[i].text, c->last, cases[i].said);
            assert_true(false);
        }
    }
    return OK;
}

static void mistakes_are_named(void **state)
{
    (void)state;
    with_context(each_mistake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_read_and_written),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
