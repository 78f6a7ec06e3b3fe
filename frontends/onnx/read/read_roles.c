/* What states, results and inputs are to a step, from notes; where a file was written before there were any, from
 * names. */
#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/read/dialect_read.h"

Status dialect_role(Importer *im, RoleKind kind, const char *text, const char *name, RoleMark *mark)
{
    const char *const *words = role_words(kind);
    *mark = role_by_name(kind, name);
    if (!text)
        return OK;
    const size_t n = strcspn(text, " ");
    for (int i = 0; words[i]; i++) {
        if (strlen(words[i]) != n || strncmp(text, words[i], n) != 0)
            continue;
        const char *of = text[n] ? text + n + 1 : "";
        *mark = (RoleMark){ i, of[0] ? name_of(&im->ir->names, of, strlen(of)) : NULL };
        return OK;
    }
    return fail(im->ir->diag, importer_place(im), "has the role %s, which is none", text);
}

Status dialect_node_role(Importer *im, const char *text, Node *n)
{
    RoleMark mark;
    TRY(dialect_role(im, n->op == OP_state ? ROLES_OF_STATES : ROLES_OF_INPUTS, text, n->name, &mark));
    if (mark.role)
        node_set_role(n, mark.role, mark.of);
    return OK;
}

static bool has_states(const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state)
            return true;
    return false;
}

static const char *note_at(Importer *im, const Onnx__GraphProto *proto, const char *key, size_t i)
{
    return note_of(im, proto->metadata_props, proto->n_metadata_props, arena_printf(im->arena, "%s%zu", key, i));
}

/* Inputs stand in the file's order; those that are initializers too are no inputs of the graph. */
static Status input_roles(Importer *im, const Onnx__GraphProto *proto, Scope *s)
{
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *text = note_at(im, proto, QCC_ROLE_IN, i);
        const MapEntry *e = map_find(&s->values, import_name(im, proto->input[i]->name));
        Node *n = e ? e->value.p : NULL;
        if (n && n->op == OP_input)
            TRY(dialect_node_role(im, text, n));
    }
    return OK;
}

Status dialect_roles(Importer *im, const Onnx__GraphProto *proto, Scope *s)
{
    Graph *g = s->graph;
    const int n = graph_n_results(g);
    Node **results = NEWS(im->arena, Node *, n + 1);
    const char **names = NEWS(im->arena, const char *, n + 1);
    RoleMark *marks = NEWS(im->arena, RoleMark, n + 1);
    if (!has_states(g))
        return OK; /* a model, whose names are its own */
    im->where = "roles";
    TRY(input_roles(im, proto, s));
    for (int i = 0; i < n; i++) {
        results[i] = graph_result(g, i);
        names[i] = g->results ? g->results[i] : NULL;
        TRY(dialect_role(im, ROLES_OF_RESULTS, note_at(im, proto, QCC_ROLE_OUT, (size_t)i), graph_result_name(g, i),
                         &marks[i]));
    }
    graph_return_marked(g, n, results, names, marks);
    return OK;
}
