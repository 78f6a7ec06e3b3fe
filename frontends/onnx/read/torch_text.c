#include "frontends/onnx/read/torch_text.h"

#include <string.h>

#include "frontends/onnx/read/torch.h"

#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define CALL      "pkg.torch.onnx.fx_node"
#define SCOPES    "pkg.torch.onnx.name_scopes"
#define STACK     "pkg.torch.onnx.stack_trace"
#define NO_SCOPE  "_empty_nn_module_stack_from_metadata_hook" /* of what the exporter added to the model */

static Str note(Onnx__StringStringEntryProto *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(str_of(list[i]->key), key))
            return str_of(list[i]->value);
    return (Str){ "", 0 };
}

static Str from(Str s, size_t n)
{
    return n < s.n ? (Str){ s.p + n, s.n - n } : (Str){ "", 0 };
}

/* The place of some text in another; its length where it is not there. */
static size_t find(Str s, const char *text)
{
    const char *at = s.n ? memmem(s.p, s.n, text, strlen(text)) : NULL;
    return at ? (size_t)(at - s.p) : s.n;
}

static bool starts(Str s, const char *text)
{
    const size_t n = strlen(text);
    return s.n >= n && memcmp(s.p, text, n) == 0;
}

/* ---- the signature ---- */

/* "p_fc_weight: PARAMETER target='fc.weight'", and so for BUFFER and CONSTANT_TENSOR; other lines name no tensor. */
static void read_line(Str line, Arena *arena, Map *tensors)
{
    const size_t colon = find(line, ": ");
    const Str rest = from(line, colon + 2);
    const bool parameter = starts(rest, "PARAMETER "), buffer = starts(rest, "BUFFER ");
    if (colon == line.n || !(parameter || buffer || starts(rest, "CONSTANT_TENSOR ")))
        return;
    Str target = from(rest, find(rest, "target='"));
    target = from(target, strlen("target='"));
    const size_t n = find(target, "'");
    bool fresh = false;
    if (!n || n == target.n)
        return;
    MapEntry *e = map_put_n(tensors, line.p, colon, &fresh);
    if (!fresh)
        return;
    TorchTensor *t = NEW(arena, TorchTensor);
    *t = (TorchTensor){ .target = arena_copy(arena, target.p, n), .parameter = parameter, .order = tensors->n };
    e->value.p = t;
}

bool torch_signature(const Onnx__GraphProto *g, Arena *arena, Map *tensors)
{
    Str text = note(g->metadata_props, g->n_metadata_props, SIGNATURE);
    map_open(tensors, arena);
    text.n = find(text, "# outputs");
    while (text.n) {
        const size_t n = find(text, "\n");
        read_line((Str){ text.p, n }, arena, tensors);
        text = from(text, n + 1);
    }
    return tensors->n > 0;
}

/* ---- the call ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static void add_ref(TorchCall *call, Arena *arena, TorchTensor *tensor, int argument)
{
    enum { MOST = 256 }; /* a call of many layers has some dozens */
    if (call->n_refs == MOST)
        return;
    GROW(arena, call->refs, call->n_refs, call->cap_refs);
    call->refs[call->n_refs++] = (TorchRef){ tensor, argument };
}

/* Every %name up to the end of the arguments, and behind them those of keywords. */
static void read_arguments(Str text, Arena *arena, const Map *tensors, TorchCall *call)
{
    int depth = 0, argument = 0;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.p[i];
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        if (depth < 0) {
            argument = -1; /* behind the arguments */
            depth = 0;
        }
        argument += argument >= 0 && depth == 0 && c == ',';
        if (c != '%')
            continue;
        size_t n = 0;
        while (i + 1 + n < text.n && is_word(text.p[i + 1 + n]))
            n++;
        const MapEntry *e = map_find_n(tensors, text.p + i + 1, n);
        if (e)
            add_ref(call, arena, e->value.p, argument);
        i += n;
    }
}

bool torch_call(const Onnx__NodeProto *o, Arena *arena, const Map *tensors, TorchCall *call)
{
    const Str text = note(o->metadata_props, o->n_metadata_props, CALL);
    Str op = from(text, find(text, "target="));
    *call = (TorchCall){ .result = { text.p, find(text, " ") } };
    if (!starts(text, "%") || !op.n)
        return false;
    op = from(op, strlen("target="));
    op.n = find(op, "]");
    op = from(op, find(op, "aten.") < op.n ? find(op, "aten.") + strlen("aten.") : 0);
    op.n = find(op, ".");
    call->op = op;
    const Str arguments = from(text, find(text, "(args = ("));
    read_arguments(from(arguments, strlen("(args = (")), arena, tensors, call);
    return true;
}

/* "['', 'h.0', 'h.0.attn', 'linear']": the last but one; the last is the call.  The number of items. */
static int read_scopes(const Onnx__NodeProto *o, Str *before)
{
    const Str text = note(o->metadata_props, o->n_metadata_props, SCOPES);
    Str last = { "", 0 };
    int items = 0;
    *before = last;
    for (Str rest = from(text, find(text, "'")); rest.n; items++) {
        const Str item = from(rest, 1);
        const size_t n = find(item, "'");
        *before = last;
        last = (Str){ item.p, n };
        rest = from(item, n + 1);
        rest = from(rest, find(rest, "'"));
    }
    return items;
}

Str torch_module(const Onnx__NodeProto *o)
{
    Str module;
    (void)read_scopes(o, &module);
    return module;
}

/* ---- where a node comes from ---- */

static bool is_text(Str s)
{
    bool plain = str_is_utf8(s);
    for (size_t i = 0; i < s.n; i++)
        plain = plain && (unsigned char)s.p[i] >= ' ';
    return plain;
}

enum { MOST_CODE = 160 };

static Str shortened(Str s)
{
    size_t n = s.n > MOST_CODE ? MOST_CODE : s.n;
    while (n && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--;
    return (Str){ s.p, n };
}

static Str first_line(Str s)
{
    return (Str){ s.p, find(s, "\n") };
}

static void add_part(Text *t, const char *before, Str part)
{
    if (part.n)
        text_printf(t, "%s%.*s", before, STR_ARG(part));
}

/* The text behind `mark`; empty where it is not there. */
static Str behind(Str s, const char *mark)
{
    const size_t at = find(s, mark);
    return at < s.n ? from(s, at + strlen(mark)) : (Str){ "", 0 };
}

/* The innermost call: 'File "model.py", line 53, in forward' and the line of source below it. */
static const char *source_line(Str stack, Arena *arena)
{
    enum { MOST = 1000 };
    Str frame = { "", 0 };
    for (Str rest = behind(stack, "File \""); rest.n; rest = behind(rest, "File \""))
        frame = rest;
    Str number = behind(frame, "\", line "), code = behind(frame, "\n");
    if (!number.n)
        return NULL;
    const Str call = behind(first_line(number), ", in ");
    number.n = find(first_line(number), ",");
    while (code.n && *code.p == ' ')
        code = from(code, 1);
    code = first_line(code);
    Text t;
    text_open(&t, arena);
    text_bytes(&t, frame.p, find(frame, "\", line "));
    add_part(&t, ":", number);
    add_part(&t, " in ", call);
    add_part(&t, ": ", shortened(code));
    text_add(&t, code.n > MOST_CODE ? "..." : "");
    return t.n <= MOST && is_text((Str){ text_get(&t), t.n }) ? text_get(&t) : NULL;
}

bool torch_origin(const Onnx__NodeProto *o, Arena *arena, const char **module, const char **line)
{
    Str path;
    const bool said = read_scopes(o, &path) > 1 && is_text(path);
    *module = !said ? NULL : str_is(path, NO_SCOPE) ? "" : arena_copy(arena, path.p, path.n);
    *line = source_line(note(o->metadata_props, o->n_metadata_props, STACK), arena);
    return *module || *line;
}

/* The older exporter leaves two names that it made up, the newer one says that the call was a norm. */
bool torch_holds_norm(const Onnx__NodeProto *o)
{
    const Str call = note(o->metadata_props, o->n_metadata_props, CALL);
    if (!str_is(str_of(o->op_type), "Conv") && !str_is(str_of(o->op_type), "ConvTranspose"))
        return false;
    if (call.n)
        return find(call, "batch_norm") < call.n;
    return o->n_input == 3 && starts(str_of(o->input[1]), "onnx::Conv_") && starts(str_of(o->input[2]), "onnx::Conv_");
}
