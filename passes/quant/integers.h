/* Calls that compute on codes. */
#ifndef PASSES_QUANT_INTEGERS_H
#define PASSES_QUANT_INTEGERS_H

#include "passes/engine/pass.h"

/* Lets calls between dequantizers and a quantizer compute on codes; with `trains` they say of each code what it was rounded
 * from, for the way back. */
Status quant_take_integers(Graph *graph, PassRun *run, bool trains);

/* Lets moves between a dequantizer and a quantizer of one scale move the codes (passes/quant/move_codes.c). */
Status quant_move_codes(Graph *graph, PassRun *run);

#endif
