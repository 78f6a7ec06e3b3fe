/* The state of a parser; of the parse files alone. */
#ifndef IR_TEXT_PARSER_H
#define IR_TEXT_PARSER_H

#include "ir/role.h"
#include "ir/text/lex.h"
#include "ir/text/parse.h"

/* A result as it was named, to be found when its graph ends. */
typedef struct NamedResult {
    const char *name; /* under which it leaves; null: its own */
    Token value;
    bool says_role;
    RoleMark mark;
} NamedResult;

/* A graph whose end was not yet seen. */
typedef struct Level {
    Graph *graph;
    Map names;      /* name, or number, -> Node */
    Map says_roles; /* inputs and states whose role is said */
    NamedResult *results;
    size_t n_results;
    Node *owner; /* of the regions that are being read */
    Token owner_at;
    Graph **regions;
    size_t n_regions, cap_regions;
} Level;

/* A type whose parts are partly read. */
typedef struct OpenType {
    TypeKind kind;
    size_t first; /* of its parts */
} OpenType;

typedef struct Parser {
    Ir *ir;
    Arena *arena;  /* of the graphs */
    Arena scratch; /* of the parser */
    Lexer lexer;
    Token token;
    Module *module;
    SourceMap *source;
    Blobs *blobs;
    Map words;
    Level **levels;
    size_t depth, cap_levels;
    Node **operands;
    size_t n_operands, cap_operands;
    NamedResult *results;
    size_t n_results, cap_results;
    const Type **parts;
    size_t n_parts, cap_parts;
    int64_t nodes;
} Parser;

/* Goes on to the next token. */
Status parse_next(Parser *p);

/* The place of a token. */
Place parse_place(Parser *p, const Token *t);

/* A token as it stands in the text, cut off where it is long. */
const char *parse_shown(Parser *p, const Token *t);

/* Reports what was wanted instead of the token at hand; INVALID. */
Status parse_wanted(Parser *p, const char *what);

/* Whether the token at hand is that sign, or that word. */
bool parse_at_sign(const Parser *p, char sign);
bool parse_at_word(const Parser *p, const char *word);

/* Steps over a sign that has to be there. */
Status parse_sign(Parser *p, char sign);

/* An integer that has to be there. */
Status parse_integer(Parser *p, int64_t *value);

/* Reports a limit that was passed, by name. */
Status parse_limit(Parser *p, const Token *t, const char *what, int64_t limit, const char *name);

/* The graph that is being read. */
Level *parse_level(Parser *p);

/* Whether the token at hand is a value's name. */
bool parse_at_value(const Parser *p);

/* The interned name of a value; null for a number. */
const char *parse_interned(Parser *p, const Token *t);

/* Gives a node the name at `t`; refuses one that is taken. */
Status parse_define(Parser *p, const Token *t, Node *n);

/* The value of that name, null for `_`. */
Status parse_find_value(Parser *p, const Token *t, Node **n);

/* %name: type */
Status parse_name_and_type(Parser *p, Token *name, const Type **type);

/* One node more; refuses too many. */
Status parse_count_node(Parser *p, const Token *t);

/* The marks behind a node. */
Status parse_marks(Parser *p, Node *n);

/* Whether the word at hand begins role=WORD or of=%NAME; reads one of them, `says` learning that it is a role. */
bool parse_at_role(const Parser *p);
Status parse_role(Parser *p, RoleKind kind, RoleMark *mark, bool *says);

/* Gives inputs and states of which nothing is said the roles that their names say. */
void parse_settle_roles(const Level *l);

/* !17 */
Status parse_node_number(Parser *p, uint32_t *number);

/* The string behind a word and "=", at the word; interned. */
Status parse_string_mark(Parser *p, const char **text);

/* Where nodes of the model come from, at the word. */
Status parse_origin(Parser *p);

/* Steps into a region of the level's owner, at its bracket. */
Status parse_open_region(Parser *p);

/* One statement; what follows may be in a region of it. */
Status parse_statement(Parser *p);

/* A type. */
Status parse_type(Parser *p, const Type **type);

/* The value of a const, param or state of that type. */
Status parse_payload(Parser *p, const Type *type, Payload **payload);

/* The value of an attribute, behind its "=". */
Status parse_attr(Parser *p, const AttrSpec *spec, void *attr);

#endif
