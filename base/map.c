#include "base/map.h"

#include <string.h>

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static uint64_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ n;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = mix(h ^ word);
    }
    uint64_t tail = 0;
    if (n)
        memcpy(&tail, p, n);
    return mix(h ^ tail);
}

void map_open(Map *m, Arena *arena)
{
    *m = (Map){ .arena = arena };
}

static bool same(const MapEntry *e, const char *key, uint64_t number, uint64_t hash)
{
    if (e->hash != hash || e->number != number || !e->key != !key)
        return false;
    return !key || e->key == key || memcmp(e->key, key, number) == 0;
}

static MapEntry *find(const Map *m, const char *key, uint64_t number, uint64_t hash)
{
    if (!m->n)
        return NULL;
    for (size_t s = hash & (m->n_slots - 1); m->slots[s]; s = (s + 1) & (m->n_slots - 1)) {
        MapEntry *e = &m->entries[m->slots[s] - 1];
        if (same(e, key, number, hash))
            return e;
    }
    return NULL;
}

static void place(Map *m, size_t index)
{
    size_t s = m->entries[index].hash & (m->n_slots - 1);
    while (m->slots[s])
        s = (s + 1) & (m->n_slots - 1);
    m->slots[s] = (uint32_t)(index + 1);
}

static MapEntry *put(Map *m, const char *key, uint64_t number, uint64_t hash, bool *fresh)
{
    MapEntry *e = find(m, key, number, hash);
    if (fresh)
        *fresh = !e;
    if (e)
        return e;

    GROW(m->arena, m->entries, m->n, m->cap);
    if ((m->n + 1) * 2 > m->n_slots) {
        /* Where there is no memory for them the call ends here, and the map is as it was. */
        const size_t n_slots = m->n_slots ? m->n_slots * 2 : 16;
        m->slots = NEWS(m->arena, uint32_t, n_slots);
        m->n_slots = n_slots;
        for (size_t i = 0; i < m->n; i++)
            place(m, i);
    }
    e = &m->entries[m->n++];
    *e = (MapEntry){ .key = key, .number = number, .hash = hash };
    place(m, m->n - 1);
    return e;
}

MapEntry *map_find_n(const Map *m, const char *key, size_t n)
{
    return find(m, key, n, hash_bytes(key, n));
}

MapEntry *map_find(const Map *m, const char *key)
{
    return map_find_n(m, key, strlen(key));
}

MapEntry *map_find_u64(const Map *m, uint64_t key)
{
    return find(m, NULL, key, mix(key + 0x9e3779b97f4a7c15u));
}

MapEntry *map_put_n(Map *m, const char *key, size_t n, bool *fresh)
{
    return put(m, key, n, hash_bytes(key, n), fresh);
}

MapEntry *map_put(Map *m, const char *key, bool *fresh)
{
    return map_put_n(m, key, strlen(key), fresh);
}

MapEntry *map_put_u64(Map *m, uint64_t key, bool *fresh)
{
    return put(m, NULL, key, mix(key + 0x9e3779b97f4a7c15u), fresh);
}
