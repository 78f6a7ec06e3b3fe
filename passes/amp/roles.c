/* The role of each node in mixed precision: what its card says, its conditions decided, over it what tables say, and over
 * them --keep-fp32.  What is forced to f32 takes its backward side along. */
#include "ops/card/path.h"
#include "ops/card/words.h"
#include "passes/amp/table.h"
#include "passes/recipe/selector.h"

typedef struct RoleSlot {
    bool known;
    AmpRole role;
} RoleSlot;

struct AmpRoles {
    Graph *graph;
    PassRun *run;
    const Precision *precision;
    Map paths;
    Facts slots;
    bool has[OP_COUNT];   /* operators that are there */
    Map by_src, by_label; /* of forward nodes that are forced to f32 -> by what */
};

static bool holds_f64(const Type *t)
{
    if (t->kind == TYPE_TENSOR)
        return t->dtype == F64;
    for (int i = 0; t->parts && i < t->n_parts; i++)
        if (holds_f64(t->parts[i]))
            return true;
    return false;
}

static bool touches_f64(const Node *n)
{
    bool any = holds_f64(n->type);
    for (int i = 0; i < n->n_in; i++)
        any |= in(n, i) && holds_f64(in(n, i)->type);
    return any;
}

/* What the card of a node says. */
static AmpRole role_of_card(const Node *n, DType narrow)
{
    const AmpCard *card = &op_of(n)->amp;
    AmpRole role = { .class = narrow == F16 ? card->f16 : card->bf16,
                     .wide = card->wide,
                     .wide_out = card->wide_out,
                     .bounded = card->bounded };
    if (role.class == AMP_C)
        role.class = card->when(n, narrow);
    role.reason = amp_keeps_wide(role.class) ? card->reason : REASON_NONE;
    return role;
}

static RoleSlot *slot(const AmpRoles *r, const Node *n)
{
    return fact((Facts *)&r->slots, n);
}

/* Makes a node compute in f32, and what its regions hold; the last word counts. */
static void keep_wide(AmpRoles *r, const Node *n, const char *forced)
{
    AmpRole *role = &slot(r, n)->role;
    if (role->class != AMP_N && !op_of(n)->structural) {
        role->class = AMP_F;
        role->forced = forced;
    }
    for (int i = 0; i < n->n_regions; i++)
        for (const Node *inner = n->regions[i]->first; inner; inner = inner->next)
            keep_wide(r, inner, forced);
}

/* ---- --amp-table ---- */

/* Whether lines that do not name the operator may say something of a node. */
static bool is_open(const AmpRole *role, const Node *n, bool moves_too)
{
    const AmpClass c = role->class;
    return !op_of(n)->structural && c != AMP_N && c != AMP_X &&
           (moves_too || (c != AMP_P && c != AMP_PW && c != AMP_PM));
}

/* What a role becomes by a line. */
static AmpRole role_by_line(const AmpRoles *r, const AmpLine *line, const Node *n)
{
    AmpRole role = slot(r, n)->role;
    const DType narrow = r->precision->narrow;
    AmpClass said = narrow == F16 ? line->f16 : line->bf16;
    if (said == AMP_C)
        said = role_of_card(n, narrow).class;
    if (said != AMP_UNSET && said != role.class) {
        role.class = said;
        role.reason = REASON_NONE;
        role.forced = line->of.shown;
    }
    if (line->says_wide && line->wide != role.wide) {
        role.wide = line->wide;
        role.forced = line->of.shown;
    }
    if (line->says_reason)
        role.reason = amp_keeps_wide(role.class) ? line->reason : REASON_NONE;
    return role;
}

/* Lets a line speak, where the node can be what it says. */
static Status apply_line(AmpRoles *r, const AmpLine *line, const Node *n)
{
    AmpRole *role = &slot(r, n)->role, next = role_by_line(r, line, n);
    const DType narrow = r->precision->narrow;
    const bool changes = next.class != role->class || next.wide != role->wide;
    if (!changes || amp_class_fits(n, &next, narrow, r->run->scratch)) {
        *role = next;
        return OK;
    }
    if (line->of.kind != TABLE_LINE_OP || *line->of.told)
        return OK;
    *line->of.told = true;
    return warn(r->graph->ir->diag, (Place){ .where = line->of.shown, .byte = -1 },
                "%s: %s cannot be %s in %s with these operands; it stays %s", node_place(n).where, op_of(n)->name,
                amp_word(next.class), dtype_name(narrow), amp_word(role->class));
}

static Status apply_to_ops(AmpRoles *r, const AmpTable *t, const AmpLine *line)
{
    if (line->of.kind == TABLE_LINE_OP && !r->has[line->of.op])
        return OK;
    for (Node *n = walk_first(r->graph); n; n = walk_next(r->graph, n))
        if (table_line_takes(&line->of, t->named, n, r->run->scratch) &&
            (line->of.kind == TABLE_LINE_OP || is_open(&slot(r, n)->role, n, false)))
            TRY(apply_line(r, line, n));
    return OK;
}

static Status apply_to_names(AmpRoles *r, const AmpLine *line)
{
    Selector s;
    Graph *g = r->graph;
    Status status = OK;
    TRY(selector_open(&s, g, r->run->scratch, &r->paths, line->of.shown, line->of.names));
    bool any = false;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (!selector_takes(&s, n))
            continue;
        any = true;
        if (status == OK && is_open(&slot(r, n)->role, n, true))
            status = apply_line(r, line, n);
    }
    selector_close(&s);
    if (status != OK || any || *line->of.told)
        return status;
    *line->of.told = true;
    return warn(g->ir->diag, (Place){ .where = line->of.shown, .byte = -1 }, "'%s' matches no node", line->of.names);
}

/* What is said of all the others comes first, then line by line. */
static Status apply_table(AmpRoles *r, const AmpTable *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->lines[i].of.kind == TABLE_LINE_DEFAULT)
            TRY(apply_to_ops(r, t, &t->lines[i]));
    for (size_t i = 0; i < t->n; i++)
        if (t->lines[i].of.kind == TABLE_LINE_OP)
            TRY(apply_to_ops(r, t, &t->lines[i]));
        else if (t->lines[i].of.kind == TABLE_LINE_NAMES)
            TRY(apply_to_names(r, &t->lines[i]));
    return OK;
}

/* ---- --keep-fp32 ---- */

enum { MOST_MOVES = 4 };

/* A parameter that is kept keeps what reads it, also behind a few nodes that only move it. */
static void keep_readers(AmpRoles *r, const Node *n, const char *forced, int moves)
{
    for (const Use *u = n->uses; u; u = u->next) {
        keep_wide(r, u->user, forced);
        if (moves > 0 && op_moves(op_of(u->user)))
            keep_readers(r, u->user, forced, moves - 1);
    }
}

static bool keep_if_taken(AmpRoles *r, const Selector *s, const Node *n, const char *forced)
{
    const bool parameter = n->op == OP_param || n->op == OP_state;
    if (parameter ? !selector_names(s, n) : !selector_takes(s, n))
        return false;
    keep_wide(r, n, forced);
    if (parameter)
        keep_readers(r, n, forced, MOST_MOVES);
    return true;
}

static Status keep_selected(AmpRoles *r, const char *text)
{
    Selector s;
    Graph *g = r->graph;
    TRY(selector_open(&s, g, r->run->scratch, &r->paths, "--keep-fp32", text));
    const char *forced = arena_printf(g->arena, "--keep-fp32 '%s'", text);
    bool any = false;
    for (size_t i = 0; i < g->n_inputs; i++)
        any |= keep_if_taken(r, &s, g->inputs[i], forced);
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        any |= keep_if_taken(r, &s, n, forced);
    const Status status = any ? OK : selector_missed(&s, g, false);
    selector_close(&s);
    return status;
}

/* ---- the way back ---- */

static void note_forced(AmpRoles *r, const Node *n)
{
    const AmpRole *role = &slot(r, n)->role;
    if (!role->forced || role->class != AMP_F || n->flags & NODE_BACKWARD)
        return;
    if (n->src)
        map_put_u64(&r->by_src, n->src, NULL)->value.cp = role->forced;
    else if (n->label)
        map_put(&r->by_label, n->label, NULL)->value.cp = role->forced;
}

static void follow_forward(AmpRoles *r, const Node *n)
{
    if (!(n->flags & NODE_BACKWARD) || slot(r, n)->role.forced)
        return;
    const MapEntry *e = n->src ? map_find_u64(&r->by_src, n->src) : n->label ? map_find(&r->by_label, n->label) : NULL;
    if (e)
        keep_wide(r, n, e->value.cp);
}

/* ---- what nobody may say otherwise ---- */

static void bar_f64(AmpRoles *r, const Node *n)
{
    AmpRole *role = &slot(r, n)->role;
    if (op_of(n)->structural || role->class == AMP_N || !touches_f64(n))
        return;
    role->class = AMP_X;
    role->reason = REASON_MEANING;
    role->forced = "holds f64";
}

/* Operators without a class: an error that names them all, or f32. */
static Status settle_unset(AmpRoles *r)
{
    const bool lenient = r->precision->lenient;
    Message *m = NULL;
    for (Node *n = walk_first(r->graph); n; n = walk_next(r->graph, n)) {
        AmpRole *role = &slot(r, n)->role;
        if (role->class != AMP_UNSET)
            continue;
        role->class = AMP_F;
        role->forced = "no entry";
        const char *op = op_of(n)->name;
        if (!m)
            m = message_new(r->graph->ir->diag, lenient ? SEVERITY_WARNING : SEVERITY_ERROR, lenient ? OK : USAGE,
                            NOWHERE, "--amp: operators without a class of mixed precision, like %s%s", op,
                            lenient ? "; they stay f32" : "");
        message_at(m, "%s %s", node_place(n).where, op);
    }
    if (!m)
        return OK;
    if (!lenient) {
        message_try(m, "--lenient, which leaves them f32");
        message_try(m, "--amp-table FILE, with a line for each of them: op:NAME fp16=F bf16=F");
    }
    return message_send(m);
}

/* ---- open, ask, close ---- */

static Status decide(AmpRoles *r)
{
    Graph *g = r->graph;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        *slot(r, n) = (RoleSlot){ true, role_of_card(n, r->precision->narrow) };
        r->has[n->op] = true;
    }
    for (size_t i = 0; i < r->precision->n_tables; i++)
        TRY(apply_table(r, r->precision->tables[i]));
    for (size_t i = 0; i < r->precision->n_keep_wide; i++)
        TRY(keep_selected(r, r->precision->keep_wide[i]));
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        note_forced(r, n);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        follow_forward(r, n);
        bar_f64(r, n);
    }
    return settle_unset(r);
}

Status amp_roles_open(Graph *g, PassRun *run, const Precision *p, AmpRoles **roles)
{
    AmpRoles *r = NEW(run->scratch, AmpRoles);
    *r = (AmpRoles){ .graph = g, .run = run, .precision = p };
    r->paths = path_names(g, run->scratch);
    r->slots = facts_open(run->scratch, sizeof(RoleSlot));
    map_open(&r->by_src, run->scratch);
    map_open(&r->by_label, run->scratch);
    *roles = r;
    return decide(r);
}

void amp_roles_close(AmpRoles *r)
{
    (void)r; /* it lives in the arena of the pass */
}

AmpRole amp_role(const AmpRoles *r, const Node *n)
{
    const RoleSlot *s = slot(r, n);
    return s->known ? s->role : role_of_card(n, r->precision->narrow);
}
