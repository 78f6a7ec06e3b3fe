/* A look at a file that may be a checkpoint: what is wrong with it is an answer, not a message. */
#ifndef RUNTIME_CHECKPOINT_PROBE_H
#define RUNTIME_CHECKPOINT_PROBE_H

#include "runtime/checkpoint/info.h"

typedef struct Probe {
    Arena *arena;
    const char *path;
    SafeTensors table;
    CheckpointInfo info;
    const char *damage; /* null: none was seen */
    bool unread;        /* its bytes did not come: the file may be whole */
    Diag quiet;         /* what the reader says becomes the damage */
} Probe;

/* Reads table and metadata; `p` stays where it is. */
void probe_open(Probe *p, Types *types, Arena *arena, const Limits *limits, const char *path);

/* The same of bytes that are anywhere. */
void probe_open_bytes(Probe *p, Types *types, Arena *arena, const Limits *limits, const SafeBytes *from);

/* Reads all bytes and compares them with the hash; false with the damage when they differ. */
bool probe_verify(Probe *p);

/* Where the tensors begin. */
uint64_t probe_head(const Probe *p);

#endif
