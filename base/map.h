/* A hash map from byte strings, or from 64-bit keys, to one word.  It iterates in the order of insertion,
 * never in the order of hashes or pointers. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/arena.h"

typedef union MapValue {
    void *p;
    const void *cp;
    int64_t i;
    uint64_t u;
} MapValue;

typedef struct MapEntry {
    const char *key; /* null: a numeric entry */
    uint64_t number; /* numeric key, or length of `key` */
    uint64_t hash;
    MapValue value;
} MapEntry;

typedef struct Map {
    Arena *arena;
    MapEntry *entries;
    size_t n, cap;
    uint32_t *slots; /* 0 = free, else entry index + 1 */
    size_t n_slots;
} Map;

/* An empty map whose tables live in `arena`; string keys are not copied. */
void map_open(Map *m, Arena *arena);

/* The entry of `key`, or null. */
MapEntry *map_find(const Map *m, const char *key);

/* The entry of the n bytes at `key`, or null. */
MapEntry *map_find_n(const Map *m, const char *key, size_t n);

/* The entry of a number, or null. */
MapEntry *map_find_u64(const Map *m, uint64_t key);

/* The entry of `key`, made when absent; `*fresh` (may be null) says which. */
MapEntry *map_put(Map *m, const char *key, bool *fresh);

/* The same for n bytes, which must stay where they are. */
MapEntry *map_put_n(Map *m, const char *key, size_t n, bool *fresh);

/* The same for a number. */
MapEntry *map_put_u64(Map *m, uint64_t key, bool *fresh);

#endif
