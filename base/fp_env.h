/* The floating-point environment we compute in: round to nearest even, subnormals kept, no traps.  Whoever calls us
 * may run in another; it is saved on entry and put back on exit, with the exception flags it had. */
#ifndef BASE_FP_ENV_H
#define BASE_FP_ENV_H

#if defined(__x86_64__)

#include <stdint.h>

typedef struct FpEnv {
    uint32_t mxcsr;
    uint16_t x87;
} FpEnv;

/* The environment of this thread. */
static inline FpEnv fp_env_get(void)
{
    FpEnv e;
    __asm__ volatile("stmxcsr %0" : "=m"(e.mxcsr) : : "memory");
    __asm__ volatile("fnstcw %0" : "=m"(e.x87) : : "memory");
    return e;
}

/* Makes `e` the environment of this thread. */
static inline void fp_env_set(FpEnv e)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(e.mxcsr) : "memory");
    __asm__ volatile("fldcw %0" : : "m"(e.x87) : "memory");
}

/* The environment all our arithmetic assumes. */
static inline FpEnv fp_env_standard(void)
{
    return (FpEnv){ .mxcsr = 0x1f80, .x87 = 0x37f };
}

#else

#include <fenv.h>

typedef fenv_t FpEnv;

static inline FpEnv fp_env_get(void)
{
    FpEnv e;
    fegetenv(&e);
    return e;
}

static inline void fp_env_set(FpEnv e)
{
    fesetenv(&e);
}

static inline FpEnv fp_env_standard(void)
{
    FpEnv was = fp_env_get(), standard;
    fesetenv(FE_DFL_ENV);
    fegetenv(&standard);
    fesetenv(&was);
    return standard;
}

#endif

/* Enters the standard environment; the result goes to fp_env_leave. */
static inline FpEnv fp_env_enter(void)
{
    FpEnv was = fp_env_get();
    fp_env_set(fp_env_standard());
    return was;
}

/* Puts back what fp_env_enter found. */
static inline void fp_env_leave(FpEnv was)
{
    fp_env_set(was);
}

#endif
