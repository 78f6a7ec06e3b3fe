/* Quantizers from words and back, what presets stand for, and what is said of words that do not go together. */
#include <string.h>

#include "base/text.h"
#include "passes/recipe/quantizer.h"
#include "testing.h"

/* Of a whole spec the part of one operand. */
static const char *of(Context *c, const char *text, const char *target, QuantOperand operand)
{
    QuantSpec s;
    assert_int_equal(quantizer_read(&s, "--quant", text, target, &c->arena, &c->diag), OK);
    return quantizer_text(&s.of[operand], &c->arena);
}

static Status words_come_back(void *arg)
{
    static const struct {
        const char *text;
        QuantOperand operand;
        const char *back;
    } cases[] = {
        { "w=int8", OPERAND_W, "int8:channel:minmax:f32:sym:narrow:rne:absmax:mask=pass" },
        { "a=uint8:asym", OPERAND_A, "uint8:tensor:ema=0.01:f32:asym:full:rne:absmax:mask=q" },
        { "a=uint8:ema=0.1", OPERAND_A, "uint8:tensor:ema=0.1:f32:sym:full:rne:absmax:mask=q" },
        { "a=int16:pct=99.9:mask=v", OPERAND_A, "int16:tensor:pct=99.9:f32:sym:full:rne:absmax:mask=v" },
        { "w=int4:group=32:full", OPERAND_W, "int4:group=32:minmax:f32:sym:full:rne:absmax:mask=pass" },
        { "w=e2m1:4or6:tile=16x16:e4m3:dynamic", OPERAND_W, "e2m1:tile=16x16:dynamic:e4m3:sym:rne:4or6:mask=pass" },
        { "w=int3:lsq:init=0.5", OPERAND_W, "int3:channel:lsq:f32:sym:narrow:rne:absmax:mask=v:init=0.5" },
        { "w=int8:stored:sr:row:dynamic", OPERAND_W, "int8:row:dynamic:f32:sym:narrow:sr:absmax:mask=pass:stored" },
        { "a=int2|uint2:stats=300:bits=learned", OPERAND_A,
          "int2|uint2:tensor:stats=300:f32:sym:full:rne:absmax:mask=v:bits=learned" },
        { "g=e2m1:block=16:hadamard=16:ms-eden", OPERAND_G,
          "e2m1:block=16:dynamic:f32:sym:ms-eden:absmax:mask=pass:hadamard=16" },
        { "w=ternary:tensor:const=0.5:half-up", OPERAND_W,
          "ternary:tensor:const=0.5:f32:sym:half-up:absmax:mask=pass" },
        { "b=int32", OPERAND_B, "int32:channel:f32:sym:full:rne:absmax:mask=pass" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(of(c, cases[i].text, "ort", cases[i].operand), cases[i].back);
    return OK;
}

static void quantizers_are_read_and_written(void **state)
{
    (void)state;
    with_context(words_come_back);
}

/* What a preset stands for, said in full, is the same again: for every preset, every number of bits, both targets. */
static void comes_back(Context *c, const char *text, const char *target)
{
    QuantSpec first, again;
    assert_int_equal(quantizer_read(&first, "--quant", text, target, &c->arena, &c->diag), OK);
    const char *full = quantizer_spec_text(&first, &c->arena);
    assert_int_equal(quantizer_read(&again, "--quant", full, target, &c->arena, &c->diag), OK);
    assert_string_equal(quantizer_spec_text(&again, &c->arena), full);
    assert_true(first.of[OPERAND_W].on);
}

static Status presets_stand(void *arg)
{
    static const char *const presets[] = {
#define PRESET(name, text) name,
        QUANT_PRESETS(PRESET)
#undef PRESET
    };
    Context *c = arg;
    for (int t = 0; t < 2; t++) {
        const char *target = t ? "trt" : "ort";
        for (size_t i = 0; i < COUNT(presets); i++)
            comes_back(c, presets[i], target);
        for (int w = 1; w <= 16; w++) {
            comes_back(c, arena_printf(&c->arena, "w%d", w), target);
            for (int a = 1; a <= 16; a++)
                comes_back(c, arena_printf(&c->arena, "w%da%d", w, a), target);
            if (w > 1)
                comes_back(c, arena_printf(&c->arena, "w%dg32", w), target);
        }
    }
    assert_string_equal(of(c, "w8a8", "ort", OPERAND_A), "uint8:tensor:ema=0.01:f32:asym:full:rne:absmax:mask=q");
    assert_string_equal(of(c, "w8a8", "trt", OPERAND_A), "int8:tensor:ema=0.01:f32:sym:full:rne:absmax:mask=q");
    assert_string_equal(of(c, "w8a8", "trt", OPERAND_B), "off");
    assert_string_equal(of(c, "w4a4", "ort", OPERAND_A), "int4|uint4:tensor:lsq:f32:sym:full:rne:absmax:mask=v");
    assert_string_equal(of(c, "w1a1", "ort", OPERAND_A), "binary:tensor:lsq:f32:sym:rne:absmax:mask=v");
    assert_string_equal(of(c, "w8a8,a=int8", "ort", OPERAND_A), "int8:tensor:ema=0.01:f32:sym:full:rne:absmax:mask=q");
    assert_string_equal(of(c, "w8a8,skip=a+b", "ort", OPERAND_A), "off");
    assert_string_equal(of(c, "int8-matmul:output", "ort", OPERAND_G), "off");
    assert_string_equal(of(c, "int8-matmul:output+grad_input", "ort", OPERAND_W_DGRAD),
                        "int8:row:dynamic:f32:sym:narrow:rne:absmax:mask=pass");
    assert_string_equal(of(c, "int8-matmul:output+grad_input", "ort", OPERAND_G_WGRAD), "off");
    assert_string_equal(of(c, "int8-matmul", "ort", OPERAND_G_WGRAD),
                        "int8:row:dynamic:f32:sym:narrow:sr:absmax:mask=pass");
    return OK;
}

static void presets_are_their_words(void **state)
{
    (void)state;
    with_context(presets_stand);
}

/* The range of codes: signed, unsigned, narrow, one bit. */
static Status ranges_hold(void *arg)
{
    static const struct {
        const char *text;
        int64_t least, largest;
    } cases[] = {
        { "w=int8", -127, 127 },      { "w=int8:full", -128, 127 }, { "w=uint8", 0, 255 },
        { "w=uint8:narrow", 0, 254 }, { "w=int16", -32767, 32767 }, { "w=int1", -1, 0 },
        { "w=uint1", 0, 1 },          { "w=int2", -1, 1 },          { "w=int32", INT32_MIN, INT32_MAX },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        QuantSpec s;
        int64_t least, largest;
        assert_int_equal(quantizer_read(&s, "--quant", cases[i].text, "ort", &c->arena, &c->diag), OK);
        quantizer_codes(&s.of[OPERAND_W], &least, &largest);
        assert_true(least == cases[i].least && largest == cases[i].largest);
    }
    return OK;
}

static void codes_are_known(void **state)
{
    (void)state;
    with_context(ranges_hold);
}

static Status each_mistake(void *arg)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        { "", "nothing is said\n  try: w8a8" },
        { "w8b8", "no preset is called 'w8b8'\n  try: w8a8" },
        { "w17a8", "no preset is called 'w17a8'" },
        { "w0", "no preset is called 'w0'" },
        { "w1g32", "no preset is called 'w1g32'" },
        { "gptq", "in some steps of training\n  try: w4g128\n" },
        { "GPTQ", "GPTQ is for models that are not trained again: here rounding is learned" },
        { "AWQ", "try: w4g128\n" },
        { "SmoothQuant", "try: w8a8\n" },
        { "w=SmoothQuant", "try: int8\n" },
        { "w=int8:awq", "awq is for models that are not trained again" },
        { "int8:channel", "'int8:channel' does not say of what\n  try: w=int8:channel" },
        { "w8a8,int4", "'int4' is no item: WHAT=FORMAT:WORDS is wanted\n  try: w=int4" },
        { "w=int17", "no format is called 'int17'" },
        { "w=int8|uint4", "no format is called 'int8|uint4'" },
        { "w=int8:chanel", "no word of a quantizer is called 'chanel'\n  try: channel" },
        { "w=int8:channel:row", "'row' and another word say the same of one quantizer" },
        { "w=int8:lsq:minmax", "'minmax' and another word say the same" },
        { "w=int8:group", "group takes a whole number, 1 or more" },
        { "w=int8:group=0", "group takes a whole number, 1 or more" },
        { "w=int8:tile=16", "tile takes two numbers, as 16x16" },
        { "w=int8:narrow=1", "narrow takes no argument" },
        { "a=int8:pct=101", "pct takes a number above 0, up to 100" },
        { "a=int8:const=nan", "const takes a number above 0" },
        { "a=int8:const=inf", "const takes a number above 0" },
        { "a=int8:ema=0", "ema takes a number above 0, up to 1" },
        { "v=int8", "nothing that is quantized is called 'v'" },
        { "w=int8,w=int4", "w is said twice" },
        { "w=off:lsq", "nothing follows off" },
        { "w8a8,first=17", "first is '17', wanted are bits from 1 to 16, or off" },
        { "w8a8,phase=late:3", "wanted is weights-first:N" },
        { "w8a8,skip=q", "nothing that is quantized is called 'q'" },
        { "int8-matmul:outputs", "no product is called 'outputs'\n  try: output" },
        { "a=e4m3:asym", "a=e4m3:asym: a zero point belongs to integers" },
        { "a=e4m3:narrow", "narrow and full belong to integers" },
        { "w=int4:4or6", "4or6 belongs to e2m1\n  try: absmax" },
        { "w=int1:narrow", "one code is all that is left" },
        { "g=int8:lsq", "only scales of weights and activations are learned\n  try: dynamic" },
        { "w=e2m1:e4m3", "belongs to blocks\n  try: block=32" },
        { "g=e2m1:block=8:hadamard=16", "turns blocks of a multiple of 16" },
        { "a=int8:dynamic:stored", "stored belongs to weights" },
        { "w=int8:stored:lsq", "weights that are stored have the scale of their largest" },
        { "a=int8:pact", "pact learns the upper end of what is never below 0\n  try: uint8:pact" },
        { "a=int8:const=0.5:asym", "a scale that is said leaves open which code stands for 0\n  try: sym" },
        { "w8a8,budget=none", "budget is 'none', wanted are bytes of the codes of weights\n  try: budget=40kB" },
        { "w8a8,budget=0.5", "budget is '0.5'" },
        { "w8a8,budget=1G", "budget is '1G'" },
        { "a=int4:n2uq", "n2uq counts up to 15 thresholds of data from 0 on\n  try: a=uint4:n2uq" },
        { "a=uint5:n2uq", "n2uq counts up to 15 thresholds of data from 0 on" },
        { "w=uint4:n2uq", "n2uq counts up to 15 thresholds of data from 0 on" },
        { "a=uint4:n2uq:mask=v", "the intervals of n2uq say where gradients pass\n  try: mask=pass" },
        { "w=int4:twn", "twn belongs to ternary weights\n  try: w=ternary:twn" },
        { "a=int8:dorefa", "dorefa belongs to weights" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        QuantSpec s;
        c->last = "";
        assert_int_equal(quantizer_read(&s, "--quant", cases[i].text, "ort", &c->arena, &c->diag), USAGE);
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
        cmocka_unit_test(quantizers_are_read_and_written),
        cmocka_unit_test(presets_are_their_words),
        cmocka_unit_test(codes_are_known),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
