#include "view/models.h"

/* ---- ResNet-50 ---- */

typedef struct Conv {
    const char *from;
    const char *name;
    int in, out, kernel, stride, size; /* size: of the result */
} Conv;

static void conv_parameters(Text *t, Conv c)
{
    text_linef(t, "    param %%%s.weight: f32[%d,%d,%d,%d] = normal(seed=%d)", c.name, c.out, c.in, c.kernel, c.kernel,
               c.out + c.in);
    text_linef(t, "    param %%%s.bias: f32[%d] = zeros", c.name, c.out);
}

static void conv(Text *t, Conv c)
{
    const int k = c.kernel, p = k / 2;
    conv_parameters(t, c);
    text_linef(
        t,
        "    %%%s: f32[1,%d,%d,%d] = conv(%%%s, %%%s.weight, %%%s.bias, strides=[%d, %d], pads=[%d, %d, %d, %d], "
        "kernel_shape=[%d, %d]) node=\"/%s/Conv\"",
        c.name, c.out, c.size, c.size, c.from, c.name, c.name, c.stride, c.stride, p, p, p, p, k, k, c.name);
}

static void relu(Text *t, const char *from, const char *name, int channels, int size)
{
    text_linef(t, "    %%%s: f32[1,%d,%d,%d] = relu(%%%s)", name, channels, size, size, from);
}

/* One bottleneck; gives the name of what leaves it. */
static const char *bottleneck(Text *t, const char *from, int layer, int block, int in, int size)
{
    Arena *a = t->arena;
    const int mid = 64 << (layer - 1), out = 4 * mid, stride = block == 0 && layer > 1 ? 2 : 1;
    const char *at = arena_printf(a, "layer%d.%d", layer, block), *name[4], *skip = from;
    for (int i = 1; i <= 3; i++)
        name[i] = arena_printf(a, "%s.conv%d", at, i);
    const char *relu1 = arena_printf(a, "%s.relu1", at), *relu2 = arena_printf(a, "%s.relu2", at);
    conv(t, (Conv){ from, name[1], in, mid, 1, 1, size * stride });
    relu(t, name[1], relu1, mid, size * stride);
    conv(t, (Conv){ relu1, name[2], mid, mid, 3, stride, size });
    relu(t, name[2], relu2, mid, size);
    conv(t, (Conv){ relu2, name[3], mid, out, 1, 1, size });
    if (block == 0) {
        skip = arena_printf(a, "%s.down", at);
        conv(t, (Conv){ from, skip, in, out, 1, stride, size });
    }
    text_linef(t, "    %%%s.add: f32[1,%d,%d,%d] = add(%%%s, %%%s)", at, out, size, size, name[3], skip);
    const char *result = arena_printf(a, "%s.out", at);
    relu(t, arena_printf(a, "%s.add", at), result, out, size);
    return result;
}

void model_resnet50(Text *t)
{
    const int blocks[] = { 3, 4, 6, 3 };
    const char *from = "pool";
    int in = 64, size = 56;
    text_add(t, "graph @resnet50(%x: f32[1,3,224,224]) -> (%logits) {\n");
    conv(t, (Conv){ "x", "conv1", 3, 64, 7, 2, 112 });
    relu(t, "conv1", "relu1", 64, 112);
    text_add(t,
             "    %pool: f32[1,64,56,56] = max_pool(%relu1, strides=[2, 2], pads=[1, 1, 1, 1], kernel_shape=[3, 3])\n");
    for (int layer = 1; layer <= 4; layer++, size /= 2)
        for (int b = 0; b < blocks[layer - 1]; b++, in = 256 << (layer - 1))
            from = bottleneck(t, from, layer, b, in, size);
    text_linef(t, "    %%mean: f32[1,2048,1,1] = global_average_pool(%%%s)", from);
    text_add(t, "    %flat: f32[1,2048] = flatten(%mean)\n"
                "    param %fc.weight: f32[1000,2048] = normal(seed=1)\n"
                "    param %fc.bias: f32[1000] = zeros\n"
                "    %logits: f32[1,1000] = gemm(%flat, %fc.weight, %fc.bias, transB=true)\n"
                "}\n");
}

/* ---- a training step ---- */

static void step_signature(Text *t, int n)
{
    text_add(t, "graph @step(%a0: f32[32,64], %target: f32[32,64]");
    for (int i = 1; i <= n; i++)
        text_printf(t, ", state %%w%d: f32[64,64] = kaiming(seed=%d), state %%m%d: f32[64,64], state %%v%d: f32[64,64]",
                    i, i, i, i);
    text_add(t, ") -> (%loss");
    for (int i = 1; i <= n; i++)
        text_printf(t, ", %%w%d = %%w%d.next, %%m%d = %%m%d.next, %%v%d = %%v%d.next", i, i, i, i, i, i);
    text_add(t, ") {\n"
                "    const %beta1: f32[] = 0.9\n    const %beta2: f32[] = 0.999\n"
                "    const %rest1: f32[] = 0.1\n    const %rest2: f32[] = 0.001\n    const %rate: f32[] = 0.0001\n");
}

/* One node of one layer, as a line. */
static void layer_node(Text *t, int i, const char *name, const char *type, const char *call, bool back)
{
    text_printf(t, "    %%%s%d%s: f32[%s] = ", *name == '.' ? "w" : name, i, *name == '.' ? name : "", type);
    for (const char *p = call; *p; p++) {
        if (*p == '#')
            text_printf(t, "%d", i);
        else if (*p == '<')
            text_printf(t, "%d", i - 1);
        else
            text_char(t, *p);
    }
    text_linef(t, "%s node=\"/layers.%d/%s\"", back ? " side=backward" : "", i, name);
}

static void step_update(Text *t, int i)
{
    const char *type = "64,64";
    layer_node(t, i, "mb", type, "mul(%m#, %beta1)", true);
    layer_node(t, i, "mg", type, "mul(%gw#, %rest1)", true);
    text_linef(t, "    %%m%d.next: f32[64,64] = add(%%mb%d, %%mg%d) side=backward", i, i, i);
    layer_node(t, i, "sq", type, "mul(%gw#, %gw#)", true);
    layer_node(t, i, "vb", type, "mul(%v#, %beta2)", true);
    layer_node(t, i, "vg", type, "mul(%sq#, %rest2)", true);
    text_linef(t, "    %%v%d.next: f32[64,64] = add(%%vb%d, %%vg%d) side=backward", i, i, i);
    layer_node(t, i, "root", type, "sqrt(%v#.next)", true);
    layer_node(t, i, "ratio", type, "div(%m#.next, %root#)", true);
    layer_node(t, i, "move", type, "mul(%ratio#, %rate)", true);
    layer_node(t, i, ".next", type, "sub(%w#, %move#)", true);
}

void model_step(Text *t, int n)
{
    step_signature(t, n);
    for (int i = 1; i <= n; i++) {
        layer_node(t, i, "h", "32,64", "matmul(%a<, %w#)", false);
        layer_node(t, i, "a", "32,64", "tanh(%h#)", false);
    }
    text_linef(t, "    %%d%d: f32[32,64] = sub(%%a%d, %%target) side=backward", n, n);
    text_linef(t, "    %%squares: f32[32,64] = mul(%%d%d, %%d%d)", n, n);
    text_add(t, "    %loss: f32[] = reduce_mean(%squares, keepdims=false)\n");
    for (int i = n; i >= 1; i--) {
        layer_node(t, i, "aa", "32,64", "mul(%a#, %a#)", true);
        layer_node(t, i, "slope", "32,64", "sub(%rest1, %aa#)", true);
        layer_node(t, i, "dh", "32,64", "mul(%d#, %slope#)", true);
        layer_node(t, i, "at", "64,32", "transpose(%a<, perm=[1, 0])", true);
        layer_node(t, i, "gw", "64,64", "matmul(%at#, %dh#)", true);
        layer_node(t, i, "wt", "64,64", "transpose(%w#, perm=[1, 0])", true);
        text_linef(t, "    %%d%d: f32[32,64] = matmul(%%dh%d, %%wt%d) side=backward", i - 1, i, i);
        step_update(t, i);
    }
    text_add(t, "}\n");
}

/* ---- regions ---- */

void model_nested(Text *t)
{
    text_add(t, "graph @\"</h2><script>document.title='owned'</script>\"(%x: f32[2], %c: bool[], %n: i64[]) -> (%z) {\n"
                "    %t: (f32[2], f32[2]) = every(%x, %n, needed=1)\n"
                "    %a: f32[2] = part(%t, index=1)\n"
                "    %y: f32[2] = both(%c, %a) { (%p: f32[2]) -> (%q)\n"
                "        %q: f32[2] = neg(%p) node=\"--><script>document.title='owned'</script>\"\n"
                "    } { (%p: f32[2]) -> (%q)\n"
                "        const %one: f32[] = 1\n"
                "        %q: f32[2] = both(%one, %p) { (%u: f32[2]) -> (%u)\n"
                "        }\n"
                "    }\n"
                "    %z: f32[2] = identity(%y)\n"
                "}\n");
}
