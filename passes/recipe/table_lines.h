/* Tables of --amp-table and --quant-table as lines: a selector, what is said of what it selects, a comment.
 *
 *     # comment
 *     op:Conv                      key=value key=value
 *     op:Gelu[approximate=tanh]    key=value
 *     /head/                       key=value     # why
 *     default                      key=value
 *
 * A selector means an operator by its ONNX name or its word (with attributes, compared as text after defaults), nodes by an
 * extended regular expression over their names, or, `default` (or op:*), the operators of ONNX that no other line of the
 * table names.  What keys there are is up to the table. */
#ifndef PASSES_RECIPE_TABLE_LINES_H
#define PASSES_RECIPE_TABLE_LINES_H

#include "ir/graph.h"

typedef struct TableCondition {
    const AttrSpec *attr;
    const char *value; /* as .qir prints it, without quotes and spaces */
} TableCondition;

typedef enum TableLineKind { TABLE_LINE_OP, TABLE_LINE_NAMES, TABLE_LINE_DEFAULT } TableLineKind;

/* Whom a line means. */
typedef struct TableLine {
    TableLineKind kind;
    const char *shown; /* "lists.txt:12" */
    Op op;
    const char *names; /* the expression */
    TableCondition *conditions;
    size_t n_conditions, cap_conditions;
    bool *told; /* that it matches nothing, or cannot be so */
} TableLine;

typedef struct TableReader {
    const char *file;
    const OpTable *ops;
    bool *named; /* operators that lines name, by op */
    Arena *arena;
    Diag *diag;
    const char *source; /* the line */
    int line;
    const char *at; /* what is read next */
} TableReader;

/* A reader of a file's text, before its first line. */
TableReader table_reader(const char *file, const OpTable *ops, Arena *arena, Diag *diag);

/* Reads all lines that say something: of each the selector, then `settings(r, line, table)`, which takes words off it. */
Status table_read_lines(TableReader *r, const char *text,
                        Status (*settings)(TableReader *r, const TableLine *line, void *table), void *table);

/* The next key=value of a line; *key is null behind the last one.  *at is where the value begins. */
Status table_next_setting(TableReader *r, const char **key, const char **value, const char **at);

/* Where something of the line stands. */
Place table_place(const TableReader *r, const char *at);

/* USAGE: a word is not known, with the nearest one that is. */
Status table_unknown(const TableReader *r, const char *at, const char *what, const char *word, const char *const *known,
                     size_t n);

/* Whether an op or default line means a node; `named` as the reader left it. */
bool table_line_takes(const TableLine *line, const bool *named, const Node *n, Arena *scratch);

#endif
