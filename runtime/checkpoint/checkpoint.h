/* Checkpoints: all states of a run, and where it stood, in one safetensors file.
 *
 * A file appears whole or not at all, and only after it was read back and found to be what was written.  In a folder
 * step-00000500.safetensors, step-00001000.safetensors ... the newest whole one counts; `last` and `best` are links for
 * people, and hints for us. */
#ifndef RUNTIME_CHECKPOINT_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "base/file.h"
#include "base/file_lock.h"
#include "base/sink.h"
#include "ir/role.h"
#include "ir/store/safetensors.h"

enum {
    CHECKPOINT_KEEP_LEAST = 2, /* whole files of a run that stay, whatever is asked */
    CHECKPOINT_NAME = 64       /* room for the name of a file that we wrote */
};

/* clang-format off */
/*     kind    field                 what it says                                                          */
#define CHECKPOINT_FIELDS(_)                                                                               \
    _( TEXT,   run,                  "the run, 16 hexadecimal digits"                                    ) \
    _( COUNT,  step,                 "optimizer steps done"                                              ) \
    _( COUNT,  epoch,                "epochs done"                                                       ) \
    _( COUNT,  position,             "samples of the current epoch that were used"                       ) \
    _( COUNT,  seed,                 "seed of the run"                                                   ) \
    _( COUNT,  shuffle_key,          "key of the permutation of the samples"                             ) \
    _( TEXT,   model_hash,           "the model that was compiled"                                       ) \
    _( TEXT,   step_hash,            "what was compiled into the step"                                   ) \
    _( TEXT,   options,              "the options of the run"                                            ) \
    _( TEXT,   stored,               "states that are codes: a line of words, name, scale, zero point"   ) \
    _( TEXT,   data,                 "what the data were: files and lengths"                             ) \
    _( TEXT,   best_metric,          "the metric that chooses the best checkpoint"                       ) \
    _( NUMBER, best,                 "its best value so far"                                             ) \
    _( COUNT,  best_step,            "the step that had it"                                              )
/* clang-format on */

#define CHECKPOINT_TEXT(name)   const char *name; /* UTF-8; null: absent */
#define CHECKPOINT_COUNT(name)  uint64_t name;
#define CHECKPOINT_NUMBER(name) double name;

/* Where a run stands, its states apart. */
typedef struct CheckpointInfo {
#define FIELD(kind, name, what) CHECKPOINT_##kind(name)
    CHECKPOINT_FIELDS(FIELD)
#undef FIELD
    const SafePair *properties; /* of the user */
    size_t n_properties;
} CheckpointInfo;

/* ---- saving ---- */

typedef struct CheckpointWish {
    const char
        *path; /* a folder, or FILE.safetensors, which each save replaces: the first one only what `fresh` lets it */
    const char *run;  /* hexadecimal digits */
    int keep;         /* whole files of this run to keep in a folder, besides the best; 0: all */
    bool fresh;       /* the run begins: a file that is there, or a folder that holds checkpoints, is refused (USAGE) */
    bool replaces;    /* the first save takes the place of all checkpoints that a folder holds */
    const Disk *disk; /* null: disk_real */
    const Limits *limits; /* null: LIMITS_DEFAULT */
} CheckpointWish;

typedef struct CheckpointTarget {
    CheckpointWish wish;
    Limits limits;
    Memory *memory;
    Diag *diag;
    bool is_folder, begun; /* something was saved */
    FileLock lock;
    char (*whole)[CHECKPOINT_NAME]; /* files of this run that were found whole */
    size_t n_whole, cap_whole;
    Cleanup cleanup; /* a jump closes it */
} CheckpointTarget;

typedef struct CheckpointSaved {
    const char *path; /* in the arena of the save */
    uint64_t bytes;
} CheckpointSaved;

/* Whether a path names one file (it ends in .safetensors and is no folder) rather than a folder. */
bool checkpoint_is_file(const char *path);

/* Whether a file is a checkpoint of a run. */
bool checkpoint_is_of(const char *path, const char *run, Memory *memory, const Limits *limits);

/* OK unless something is there that a run which begins would replace: reports what it is (USAGE).  `option` is how the
 * path was said. */
Status checkpoint_is_free(const char *path, const char *option, Memory *memory, Diag *diag, const Limits *limits);

/* The id of a run: the same for the same model, step, seed, shuffle key and data, so that a run that was cut and resumed
 * ends in the same bytes as one that was not. */
void checkpoint_run_id(char run[17], const CheckpointInfo *info);

/* Makes the folder, locks it, clears what dead processes left; the target outlives a guarded() call and is to be
 * closed.  wish->path and wish->run must stay. */
Status checkpoint_open(CheckpointTarget *t, Memory *memory, Diag *diag, const CheckpointWish *wish);

/* Writes, reads back, names, and only then deletes what is more than wish.keep.  The run is that of the wish.  `best`
 * lets the link `best` point here.  A failed save leaves what was there. */
Status checkpoint_save(CheckpointTarget *t, Arena *arena, const CheckpointInfo *info, const NamedTensor *states,
                       size_t n, bool best, CheckpointSaved *saved);

/* Puts the bytes of a checkpoint anywhere: what checkpoint_save would write for a run of info->run. */
Status checkpoint_put(Sink to, Memory *memory, Diag *diag, const CheckpointInfo *info, const NamedTensor *states,
                      size_t n);

/* Gives back the lock. */
void checkpoint_close(CheckpointTarget *t);

/* ---- loading ---- */

/* A tensor of another program that is a part of a state. */
typedef struct GatePiece {
    const char *name;
    int64_t first; /* its first element in the state */
} GatePiece;

/* Weights of a recurrent layer, which other programs have apart, and with their gates in another order. */
typedef struct StateGates {
    const GatePiece *pieces;
    size_t n;
    const Type *type; /* of a piece */
    int gates;        /* of a piece, each a block of its elements */
    const int *order; /* by gate of ours: which of theirs it is */
} StateGates;

/* A state that is to be filled. */
typedef struct StateSlot {
    const char *name;
    const char *path_name; /* another name it may have in a file; null: none */
    const Type *type;
    bool may_lack;            /* a file without it is fine */
    bool turned;              /* other programs have it transposed */
    bool own_order;           /* other programs have its elements in another order */
    const char *const *also;  /* names of the same tensor under other modules, up to a null; null: none */
    const StateGates *pieces; /* null: it is not known to be made of any */
    RoleMark mark;            /* what it is to the step */
} StateSlot;

/* How a file fits the slots; each list is of names, those misshapen with both types. */
typedef struct StateReport {
    size_t n_matched, n_converted, n_turned, n_reordered;
    size_t n_coded; /* were codes in the file, which the caller reads */
    const char **missing, **unexpected, **misshapen;
    size_t n_missing, n_unexpected, n_misshapen, cap_missing, cap_unexpected, cap_misshapen;
    size_t n_other_states, n_other_weights; /* of those misshapen: the same numbers, kept in another width */
    bool model_differs; /* states of the model itself are missing or misshapen, not only those that training adds */
} StateReport;

typedef struct CheckpointWanted {
    const char *model_hash, *step_hash; /* null: not compared */
    const char *options;                /* that the step was compiled with, for messages; null: not known */
    const StateSlot *slots;
    size_t n;
    bool others;      /* states of the file that have no slot are fine */
    bool converts;    /* the caller can be asked to take states of another width, which a refusal says */
    bool fresh_scale; /* a file may lack the states of the scale of a loss */
} CheckpointWanted;

typedef struct CheckpointLoaded {
    const char *file; /* null: there is none to load */
    CheckpointInfo info;
    Tensor **states; /* one a slot, in the caller's heap; nothing live was touched */
    StateReport report;
    NamedTensor *kept; /* states of a scale of the loss that find no place, and counters behind those that do: whoever
                          saves again saves them too; in the caller's heap */
    size_t n_kept;
} CheckpointLoaded;

/* What reading needs. */
typedef struct CheckpointReader {
    Types *types;
    Heap *heap;   /* of the tensors */
    Arena *arena; /* of everything else */
    Diag *diag;
    const Limits *limits;
} CheckpointReader;

/* Reads the newest whole checkpoint of a folder, or the one of a file, and checks all of it against what is wanted.
 * Newer ones that are damaged are warned of and passed over; one of another model or step is an error (USAGE). */
Status checkpoint_load(const CheckpointReader *r, const char *path, const CheckpointWanted *wanted,
                       CheckpointLoaded *loaded);

/* The same from the bytes of one checkpoint, wherever they are. */
Status checkpoint_get(const CheckpointReader *r, const SafeBytes *from, const CheckpointWanted *wanted,
                      CheckpointLoaded *loaded);

/* Weights for the slots from any safetensors or npz file, by name or path name, floats converted to the slot's type, and
 * transposed, reshaped or put together where the slot has them so (files of ours have every state as the slot does); states[i] is null
 * where the file has nothing that fits.  INVALID when nothing fits at all. */
Status checkpoint_init(const CheckpointReader *r, const char *path, const StateSlot *slots, size_t n, Tensor **states,
                       StateReport *report);

/* Appends what a report says, as `--init` prints it. */
void state_report_print(Text *out, const StateReport *report);

#endif
