/* What AddressSanitizer is told of memory that we hand out in parts: arenas and heaps draw blocks from the host and give
 * parts of them, and a part that is not given, not given any more, or behind the last byte that was asked for is poisoned,
 * so that who reads or writes it is found on the spot.  Nothing is done in other builds. */
#ifndef BASE_POISON_H
#define BASE_POISON_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define POISONS 1
#endif

#ifdef POISONS
#include <sanitizer/asan_interface.h>

/* Bytes between two allocations of an arena that nobody may touch. */
enum { RED_ZONE = 16 };
#else
enum { RED_ZONE = 0 };
#endif

/* From now on nobody may touch these bytes. */
static inline void poison(const void *p, size_t size)
{
#ifdef POISONS
    __asan_poison_memory_region(p, size);
#else
    (void)p, (void)size;
#endif
}

/* Exactly these bytes may be touched; `p` is aligned to 8. */
static inline void unpoison(const void *p, size_t size)
{
#ifdef POISONS
    __asan_unpoison_memory_region(p, size);
#else
    (void)p, (void)size;
#endif
}

#endif
