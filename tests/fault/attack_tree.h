/* A folder as a list of names and bytes, to be compared and laid out again. */
#ifndef TESTS_FAULT_ATTACK_TREE_H
#define TESTS_FAULT_ATTACK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_ENTRIES = 64, LONGEST_NAME = 160 };

typedef struct Entry {
    char name[LONGEST_NAME]; /* below the folder */
    char kind;               /* f: a file, l: a link, d: a folder */
    char *bytes;             /* a 0 behind them; of a link its target */
    size_t n;
} Entry;

typedef struct Tree {
    Entry list[MOST_ENTRIES]; /* by name: a folder comes before what is in it */
    int n;
} Tree;

/* What is in a folder. */
void tree_read(Tree *t, const char *folder);

/* Makes a folder hold that and nothing else. */
void tree_write(const Tree *t, const char *folder);

/* Gives back what tree_read took. */
void tree_drop(Tree *t);

/* An entry by its name; null when there is none. */
const Entry *tree_find(const Tree *t, const char *name);

/* Whether two entries are the same kind and hold the same bytes. */
bool entry_same(const Entry *a, const Entry *b);

/* Whether two folders hold the same. */
bool tree_same(const Tree *a, const Tree *b);

/* A number that tells apart what two folders hold, but for the numbers of processes in names. */
uint64_t tree_hash(const Tree *t);

#endif
