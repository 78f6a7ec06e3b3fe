/* States, and what they, results and inputs are to a step, as notes: "ROLE OF". */
#include "frontends/onnx/write/writer.h"
#include "ir/role.h"
#include "ir/store/init.h"

static const char *role_text(Writer *w, RoleKind kind, const char *name, RoleMark mark)
{
    if (!role_is_said(kind, name, mark))
        return NULL;
    return arena_printf(w->arena, "%s%s%s", role_words(kind)[mark.role], mark.of ? " " : "", mark.of ? mark.of : "");
}

const char *node_role_text(Writer *w, const Node *n)
{
    return role_text(w, n->op == OP_state ? ROLES_OF_STATES : ROLES_OF_INPUTS, n->name, node_role(n));
}

const char *result_role_text(Writer *w, const Graph *g, int i)
{
    return role_text(w, ROLES_OF_RESULTS, graph_result_name(g, i), graph_result_mark(g, i));
}

Status write_state_tensor(Writer *w, Level *l, const Node *n)
{
    Payload *p = state_initial(n);
    const char *name = value_name(w, n), *said = p ? init_text(w, p) : "none";
    const char *role = node_role_text(w, n);
    if (!p)
        TRY(tensor_wants_numbers(w->diag, NOWHERE, arena_printf(w->arena, "state %s", name), n->type));
    if (!p)
        p = payload_init(w->arena, n->type, (Init){ .kind = INIT_ZEROS });
    Onnx__TensorProto *t = write_payload(w, p, (Place){ .where = name, .byte = -1 });
    if (!t)
        return p->failed ? p->failed : INVALID;
    t->has_name = 1;
    t->name = encode_text(name);
    note(w, &t->metadata_props, &t->n_metadata_props, QCC_STATE, marks_text(w, n));
    if (role)
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_ROLE, role);
    if (node_stored(n))
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_KEPT, node_stored(n));
    if (said)
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_INIT, said);
    if (n->label)
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_NODE, n->label);
    note_payload(w, t, p, name, carry(w, p, name, l->graph, false));
    add_initializer(w, l, t);
    return OK;
}

void note_roles(Writer *w, Onnx__GraphProto *proto, const Graph *g)
{
    size_t at = 0;
    for (size_t i = 0; i < g->n_inputs && at < proto->n_input; i++) {
        const Node *n = g->inputs[i];
        const char *role = n->op == OP_input ? node_role_text(w, n) : NULL;
        if (n->op == OP_input && role)
            note(w, &proto->metadata_props, &proto->n_metadata_props, arena_printf(w->arena, QCC_ROLE_IN "%zu", at),
                 role);
        at += n->op == OP_input;
    }
    for (int i = 0; i < graph_n_results(g); i++) {
        const char *role = result_role_text(w, g, i);
        if (role)
            note(w, &proto->metadata_props, &proto->n_metadata_props, arena_printf(w->arena, QCC_ROLE_OUT "%d", i),
                 role);
    }
}
