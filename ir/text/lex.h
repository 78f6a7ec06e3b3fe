/* The words of .qir text. */
#ifndef IR_TEXT_LEX_H
#define IR_TEXT_LEX_H

#include "base/diag.h"
#include "base/limits.h"
#include "base/str.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_WORD,     /* graph, f32, matmul */
    TOKEN_VALUE,    /* %name, %"any text": `text` without the sign */
    TOKEN_NUMBERED, /* %17: `number` */
    TOKEN_NAME,     /* @name */
    TOKEN_NUMBER,   /* 1, -2.5e3, 0x7fc00000, -inf: as written */
    TOKEN_STRING,   /* "text", decoded */
    TOKEN_HEX,      /* hex"00ff": the digits */
    TOKEN_ARROW,    /* -> */
    TOKEN_SIGN,     /* one of ( ) { } [ ] , : = ! ? * */
} TokenKind;

typedef struct Token {
    TokenKind kind;
    char sign;
    Str text;
    uint64_t number;
    const char *at; /* where it starts in the text */
    size_t n;       /* bytes as written */
    int line;
} Token;

typedef struct Lexer {
    Arena *arena; /* decoded strings */
    Diag *diag;
    const Limits *limits;
    const char *file;
    Str text;
    const char *at;
    int line;
} Lexer;

/* A lexer at the start of a text that stays where it is. */
void lexer_open(Lexer *l, Arena *arena, Diag *diag, const Limits *limits, Str text, const char *file);

/* The next token; INVALID with a located message when there is none. */
Status lexer_next(Lexer *l, Token *token);

/* The place of a byte of a text: line, column and the line itself for the caret. */
Place text_place(Arena *arena, Str text, const char *file, const char *at, int line);

/* Whether a name needs no quotes. */
bool lex_is_word(const char *name, size_t n);

#endif
