#include "api/verbs/certificate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/session/weights.h"
#include "base/digest.h"
#include "frontends/onnx/file/source.h"
#include "ops/quant/quantize.h"

/* ---- JSON ---- */

static void key(Text *t, const char *name)
{
    text_json(t, name, strlen(name));
    text_add(t, ": ");
}

static void string(Text *t, const char *name, const char *value)
{
    key(t, name);
    if (value)
        text_json(t, value, strlen(value));
    else
        text_add(t, "null");
}

static void count(Text *t, const char *name, int64_t value)
{
    key(t, name);
    text_printf(t, "%" PRId64, value);
}

static void flag(Text *t, const char *name, bool value)
{
    key(t, name);
    text_add(t, value ? "true" : "false");
}

/* A difference: a number, or "inf" where there is none. */
static void difference(Text *t, const char *name, double value)
{
    key(t, name);
    if (isfinite(value))
        text_printf(t, "%.9g", value);
    else
        text_add(t, "\"inf\"");
}

#define AND(t) text_add((t), ", ")

/* ---- what it is of ---- */

static Status file_digest(Command *c, const char *path, char out[SHA256_TEXT], uint64_t *bytes)
{
    Source s;
    uint8_t digest[SHA256_BYTES];
    TRY(source_open(&s, &c->cx->memory, &c->cx->diag, path));
    *bytes = s.size;
    const int error = digest_sha256(&c->cx->memory, s.fd, s.size, digest);
    source_close(&s);
    if (error)
        return fail_as(&c->cx->diag, IO, (Place){ .file = path, .byte = -1 }, "cannot be read again");
    sha256_text(out, digest);
    return OK;
}

static Status tell_file(Command *c, Text *t, const char *name, const char *path)
{
    char text[SHA256_TEXT];
    uint64_t bytes;
    TRY(file_digest(c, path, text, &bytes));
    text_add(t, "  ");
    key(t, name);
    text_char(t, '{');
    string(t, "file", path);
    AND(t);
    count(t, "bytes", (int64_t)bytes);
    AND(t);
    string(t, "sha256", text);
    text_add(t, "},\n");
    return OK;
}

/* The digest of the states that were deployed: of each its name with the 0 behind it, and its bytes. */
static Status states_digest(const Exported *e, char out[SHA256_TEXT])
{
    Sha256 sha;
    uint8_t digest[SHA256_BYTES];
    size_t n;
    const State *states = session_states(e->session->run, &n);
    sha256_begin(&sha);
    for (size_t i = 0; i < n; i++) {
        const Tensor *value;
        TRY(session_final(e->session, &states[i], &value));
        if (!value)
            continue;
        sha256_add(&sha, states[i].name, strlen(states[i].name) + 1);
        sha256_add(&sha, value->data, value->bytes);
    }
    sha256_end(&sha, digest);
    sha256_text(out, digest);
    return OK;
}

/* The data as the line names them. */
static void tell_data(Command *c, Text *t)
{
    const char *text;
    bool any = false;
    key(t, "data");
    text_char(t, '[');
    for (size_t at = 0; (text = option_next(&c->line, OPT_verify, &at)); any = true) {
        text_add(t, any ? ", " : "");
        text_json(t, text, strlen(text));
    }
    text_add(t, "],\n");
}

static Status tell_states(Command *c, Text *t, const Exported *e)
{
    char text[SHA256_TEXT];
    TRY(states_digest(e, text));
    text_add(t, "  ");
    key(t, "states");
    text_char(t, '{');
    string(t, "checkpoint", option_text(&c->line, OPT_checkpoint));
    AND(t);
    string(t, "weights", e->weights);
    AND(t);
    string(t, "sha256", text);
    text_add(t, "},\n");
    return OK;
}

/* ---- what is predicted ---- */

static void tell_orphans(Text *t, const Fusions *f)
{
    bool any = false;
    key(t, "orphans");
    text_char(t, '[');
    for (size_t i = 0; i < f->n; i++) {
        const FusionFate *fate = &f->fates[i];
        if (!fate->stays)
            continue;
        text_add(t, any ? ", {" : "{");
        any = true;
        string(t, "pair", fate->is_q ? "Q" : "DQ");
        AND(t);
        string(t, "value", fate->value);
        AND(t);
        string(t, "why", fate->why);
        text_char(t, '}');
    }
    text_char(t, ']');
}

/* Another engine than ONNX Runtime has a key of its own. */
static void tell_others(Text *t, const Fusions *f)
{
    text_add(t, "null,\n  ");
    key(t, "tensorrt");
    text_char(t, '{');
    string(t, "rules", f->how);
    AND(t);
    count(t, "pairs", (int64_t)f->n);
    AND(t);
    tell_orphans(t, f);
    text_add(t, "},\n");
}

static void tell_fusions(Text *t, const Fusions *f)
{
    text_add(t, "  ");
    key(t, "onnxruntime");
    if (!f) {
        text_add(t, "null,\n");
        return;
    }
    if (!f->ops_after) {
        tell_others(t, f);
        return;
    }
    text_char(t, '{');
    string(t, "version", ORT_VERSION);
    AND(t);
    string(t, "level", ORT_LEVEL);
    AND(t);
    string(t, "machine", "x86-64");
    AND(t);
    key(t, "operators");
    text_char(t, '{');
    for (size_t i = 0; i < f->ops.n; i++) {
        text_add(t, i ? ", " : "");
        count(t, f->ops.entries[i].key, f->ops.entries[i].value.i);
    }
    text_add(t, "}, ");
    count(t, "pairs", (int64_t)f->n);
    AND(t);
    tell_orphans(t, f);
    text_add(t, "},\n");
}

/* ---- what was compared ---- */

static void tell_node(Text *t, const ParityNode *node)
{
    static const char *const kinds[] = { "stored", "codes", "floats" };
    string(t, "name", node->name);
    AND(t);
    string(t, "kind", kinds[node->kind]);
    AND(t);
    string(t, "op", node->op);
    AND(t);
    string(t, "type", dtype_name(node->type));
    AND(t);
    flag(t, "compared", node->matched);
    AND(t);
    count(t, "values", node->n);
    AND(t);
    count(t, "differ", node->differ);
    AND(t);
    difference(t, "largest", node->largest);
    if (node->kind != PARITY_CODES)
        return;
    AND(t);
    count(t, "ties", node->ties);
    AND(t);
    if (node->rounding != ROUND_RNE) {
        string(t, "rounding", quant_roundings[node->rounding]);
        AND(t);
    }
    key(t, "literal");
    text_char(t, '{');
    count(t, "values", node->floats_n);
    AND(t);
    count(t, "differ", node->floats_differ);
    AND(t);
    difference(t, "largest", node->floats_largest);
    text_char(t, '}');
}

static void tell_nodes(Text *t, const Parity *p)
{
    text_add(t, "  \"nodes\": [");
    for (size_t i = 0; i < p->n; i++) {
        text_add(t, i ? ",\n    {" : "\n    {");
        tell_node(t, &p->list[i]);
        text_char(t, '}');
    }
    text_add(t, "\n  ],\n");
}

static void tell_sum(Text *t, const char *name, const Parity *p, ParityKind kind)
{
    const ParitySum s = parity_sum(p, kind);
    text_add(t, "  ");
    key(t, name);
    text_char(t, '{');
    count(t, "tensors", (int64_t)s.nodes);
    AND(t);
    count(t, "tensors_differ", (int64_t)s.wrong);
    AND(t);
    count(t, "values", s.n);
    AND(t);
    count(t, "differ", s.differ);
    AND(t);
    difference(t, "largest", s.largest);
    AND(t);
    if (kind == PARITY_CODES) {
        count(t, "ties", s.ties);
        AND(t);
    }
    string(t, "first", s.first ? s.first->name : NULL);
    text_add(t, "},\n");
}

static void tell_outputs(Text *t, const Certificate *of)
{
    text_add(t, "  \"outputs\": [");
    for (size_t i = 0; i < of->n_outputs; i++) {
        text_add(t, i ? ", {" : "{");
        string(t, "name", of->outputs[i].name);
        AND(t);
        count(t, "values", of->outputs[i].n);
        AND(t);
        count(t, "differ", of->outputs[i].differ);
        AND(t);
        difference(t, "largest", of->outputs[i].largest);
        text_char(t, '}');
    }
    text_add(t, "]\n");
}

static Status compose(Command *c, Text *t, const Certificate *of)
{
    text_add(t, "{\n");
    text_printf(t, "  \"certificate\": \"qcc parity\", \"schema\": %d, \"qcc\": \"%s\",\n", CERTIFICATE_SCHEMA,
                qcc_version());
    text_printf(t, "  \"passed\": %s, ", of->passed ? "true" : "false");
    string(t, "target", export_codes_for(of->exported));
    AND(t);
    count(t, "samples", of->samples);
    AND(t);
    tell_data(c, t);
    TRY(tell_file(c, t, "file", of->exported->path));
    TRY(tell_file(c, t, "step", c->line.paths[0]));
    TRY(tell_states(c, t, of->exported));
    tell_fusions(t, of->fused);
    tell_sum(t, "stored", of->parity, PARITY_STORED);
    tell_sum(t, "codes", of->parity, PARITY_CODES);
    tell_sum(t, "floats", of->parity, PARITY_FLOATS);
    tell_nodes(t, of->parity);
    tell_outputs(t, of);
    text_add(t, "}\n");
    return OK;
}

Status certificate_write(Command *c, const char *path, const Certificate *certificate)
{
    Out o;
    Text t;
    const qcc_sink sink = qcc_to_file(path);
    text_open(&t, &c->cx->scratch);
    TRY(compose(c, &t, certificate));
    TRY(out_open(&o, c->cx, &sink));
    return out_close(&o, out_bytes(&o, t.p, t.n));
}
