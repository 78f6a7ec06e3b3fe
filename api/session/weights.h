/* Which weights of a session are judged and deployed: the last ones, or their averages (--ema). */
#ifndef API_SESSION_WEIGHTS_H
#define API_SESSION_WEIGHTS_H

#include "api/make/step.h"
#include "api/options/options.h"

/* What --weights of a line says; WEIGHTS_UNSAID where it says nothing. */
WeightsKind weights_said(const CommandLine *line);

/* USAGE when a line says whose weights are meant of a model that is no run's. */
Status weights_want_states(Diag *d, const CommandLine *line);

/* Whether a session averages its weights. */
bool session_has_averages(qcc_session *s);

/* Whether the averages are what it deploys: as was said, else as the checkpoint says that was loaded into it, else yes
 * wherever there are some. */
bool session_is_averaged(qcc_session *s);

/* The value that a state of the model is deployed with; null for states of ours. */
Status session_final(qcc_session *s, const State *state, const Tensor **value);

/* Puts those values in place of the last ones: what runs is what is deployed. */
Status session_deploy(qcc_session *s);

/* Exchanges last weights and averages, so that @eval runs on the others; a second time gives each its own back. */
Status session_exchange_averages(qcc_session *s);

/* Puts the weights that a checkpoint (a file, or the newest of a folder) deploys into a session, whether its step
 * averages or not: those that `said` names, else those that the checkpoint does.  *words says of which file they are
 * averages; null: they are the last ones, and there are no others. */
Status session_take_final(qcc_session *s, const char *path, WeightsKind said, const char **words);

/* Notes in the properties of a session which weights were judged, for its checkpoints. */
void session_note_weights(qcc_session *s);

#endif
