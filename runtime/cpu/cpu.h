/* The engine `cpu`: programs where a graph has one, the evaluator where it has none; the bits of the reference. */
#ifndef RUNTIME_CPU_CPU_H
#define RUNTIME_CPU_CPU_H

#include "runtime/engine.h"

extern const Engine engine_cpu;

#endif
