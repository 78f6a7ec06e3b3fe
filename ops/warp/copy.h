/* Pieces of matrices on their way to the memory that a block shares, and from there to the registers of a warp.
 *
 * Copies of 16 bytes go by themselves from sm_80 on, so that a block multiplies one piece while the next one comes.  Those that
 * a thread began before it committed are a group; it waits till at most so many of its groups are on their way.  What lies there is
 * of any value from the beginning to the wait, and other threads may read it behind a barrier only.
 *
 *     copy_begin(&c, to, from, there)   begins one; zeros, and nothing is read, where `there` is false
 *     copy_commit(&c)                   ends a group
 *     copy_wait<1>(&c)                  all groups but the last one are there
 *
 * A host does as little as that promises: bytes that nobody would want lie there from the beginning, and what was copied from the
 * wait on.  So a barrier too few before a copy shows, and so does a wait that is missing. */
#ifndef QCC_OPS_WARP_COPY_H
#define QCC_OPS_WARP_COPY_H

/* What one copy moves: eight numbers of 16 bits, in pairs, the first of a pair in the lower half of its word; or sixteen codes. */
typedef struct alignas(16) Quad {
    u32 w[4];
} Quad;

#ifdef __CUDA_ARCH__
typedef struct Copies {
} Copies;
#else
enum { COPIES_MOST = 128 };
typedef struct Copies {
    Quad *to[COPIES_MOST];
    const Quad *from[COPIES_MOST]; /* null: zeros */
    u32 group[COPIES_MOST], n, groups;
} Copies;
#endif

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
Q_FN void copy_begin(Copies *, Quad *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((u32)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

Q_FN void copy_commit(Copies *)
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}

template <int LEFT> Q_FN void copy_wait(Copies *)
{
    asm volatile("cp.async.wait_group %0;" : : "n"(LEFT) : "memory");
}
#elif defined __CUDA_ARCH__
Q_FN void copy_begin(Copies *, Quad *to, const void *from, bool there)
{
    const Quad none = { { 0 } };
    *to = there ? *(const Quad *)from : none;
}

Q_FN void copy_commit(Copies *)
{
}

template <int LEFT> Q_FN void copy_wait(Copies *)
{
}
#else
Q_FN void copy_begin(Copies *c, Quad *to, const void *from, bool there)
{
    const Quad nothing = { { 0x7fc07fc1u, 0x7fc07fc1u, 0x7fc07fc1u, 0x7fc07fc1u } };
    *to = nothing;
    if (c->n == COPIES_MOST) /* nobody waited for any: this one never comes */
        return;
    c->to[c->n] = to;
    c->from[c->n] = there ? (const Quad *)from : 0;
    c->group[c->n++] = c->groups;
}

Q_FN void copy_commit(Copies *c)
{
    c->groups++;
}

template <int LEFT> Q_FN void copy_wait(Copies *c)
{
    const Quad none = { { 0 } };
    u32 left = 0;
    for (u32 i = 0; i < c->n; i++)
        if (c->group[i] + LEFT < c->groups) {
            *c->to[i] = c->from[i] ? *c->from[i] : none;
        } else {
            c->to[left] = c->to[i];
            c->from[left] = c->from[i];
            c->group[left++] = c->group[i];
        }
    c->n = left;
}
#endif

/* Eight numbers, of which `left` are there. */
Q_FN Quad quad_of(const u16 *from, i32 left)
{
    Quad q;
#pragma unroll
    for (i32 i = 0; i < 4; i++)
        q.w[i] = (2 * i < left ? (u32)from[2 * i] : 0) | (2 * i + 1 < left ? (u32)from[2 * i + 1] << 16 : 0);
    return q;
}

/* Four squares of 8 x 8 numbers of 16 bits.  Thread i says where row i % 8 of square i / 8 begins, at a multiple of 16 bytes.
 * Thread 4 g + t gets of square s, in to[s], the numbers 2 t and 2 t + 1 of row g; turned: of column g, that is those of rows 2 t and
 * 2 t + 1.  All threads of a warp call it. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 750
#define WARP_LOAD(name, ptx)                                                                                           \
    Q_FN void name(u32 *to, const Quad *row)                                                                           \
    {                                                                                                                  \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" ptx ".shared.b16 {%0, %1, %2, %3}, [%4];"                         \
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])                                              \
                     : "r"((u32)__cvta_generic_to_shared(row))                                                         \
                     : "memory");                                                                                      \
    }
WARP_LOAD(warp_load, "")
WARP_LOAD(warp_load_turned, ".trans")
#undef WARP_LOAD
#else
Q_FN void warp_load(u32 *to, const Quad *row)
{
    const u32 lane = threadIdx.x % 32;
    for (u32 s = 0; s < 4; s++)
        to[s] = ((const Quad *)__shfl_sync(WARP_ALL, (u64)row, 8 * s + lane / 4))->w[lane % 4];
}

Q_FN void warp_load_turned(u32 *to, const Quad *row)
{
    const u32 lane = threadIdx.x % 32, column = lane / 4;
    for (u32 s = 0; s < 4; s++) {
        const Quad *const first = (const Quad *)__shfl_sync(WARP_ALL, (u64)row, 8 * s + lane % 4 * 2);
        const Quad *const second = (const Quad *)__shfl_sync(WARP_ALL, (u64)row, 8 * s + lane % 4 * 2 + 1);
        to[s] = (first->w[column / 2] >> 16 * (column % 2) & 0xffffu) | second->w[column / 2] >> 16 * (column % 2)
                                                                                                     << 16;
    }
}
#endif

#endif
