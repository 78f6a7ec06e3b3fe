/* The parts of a printed node; of print.c alone. */
#ifndef IR_TEXT_PRINT_NODE_H
#define IR_TEXT_PRINT_NODE_H

#include "ir/text/print.h"

typedef struct Printer {
    Text *out;
    Blobs *blobs;
    Numbering *numbers;
    Memory *memory;
    Diag *diag;
    bool brief; /* large payloads as "..." */
    Status status;
} Printer;

/* Appends a name behind its sign, quoted when it has to be. */
void print_name(Text *out, char sign, const char *name);

/* Appends " = VALUE" for a payload; a failure to read it stays in p->status. */
void print_payload(Printer *p, Payload *payload, const char *wish);

/* Appends ", name=value" for each attribute that is not the default; `first`: nothing stands before it. */
void print_attrs(Printer *p, const Node *n, bool first);

#endif
