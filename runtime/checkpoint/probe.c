#include "runtime/checkpoint/probe.h"

#include "runtime/checkpoint/content.h"

static void hear(void *user, const Message *m)
{
    Probe *p = user;
    if (p->damage)
        return;
    p->unread = m->status == IO;
    p->damage =
        arena_printf(p->arena, "%s%s%s", m->place.where ? m->place.where : "", m->place.where ? ": " : "", m->text);
}

static void begin(Probe *p, Arena *arena, const char *path)
{
    *p = (Probe){ .arena = arena, .path = path };
    diag_open(&p->quiet, arena, hear, p);
}

static void finish(Probe *p, Status status)
{
    if (status == OK)
        p->damage = info_read(p->arena, &p->table, &p->info);
    else if (!p->damage)
        p->damage = "cannot be read";
}

void probe_open(Probe *p, Types *types, Arena *arena, const Limits *limits, const char *path)
{
    begin(p, arena, path);
    finish(p, safetensors_open(&p->table, types, arena, &p->quiet, limits, path));
}

void probe_open_bytes(Probe *p, Types *types, Arena *arena, const Limits *limits, const SafeBytes *from)
{
    begin(p, arena, from->name);
    finish(p, safetensors_open_bytes(&p->table, types, arena, &p->quiet, limits, from));
}

uint64_t probe_head(const Probe *p)
{
    return p->table.n ? p->table.list[0].at : p->table.from.size;
}

static Status read_file(void *user, uint64_t offset, void *out, size_t n)
{
    Probe *p = user;
    return safetensors_bytes(&p->table, &p->quiet, offset, out, n);
}

bool probe_verify(Probe *p)
{
    bool whole;
    if (p->damage)
        return false;
    if (content_check(p->arena->memory, read_file, p, probe_head(p), p->table.from.size, &whole) != OK)
        return false;
    if (!whole)
        p->damage = "its bytes are not those that were written (sha256 differs)";
    return whole;
}
