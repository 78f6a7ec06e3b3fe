/* The options: one table (options.def), and command lines read by it. */
#ifndef API_OPTIONS_OPTIONS_H
#define API_OPTIONS_OPTIONS_H

#include "base/diag.h"

/*     verb     words                                what */
/* clang-format off */
#define VERBS(_)                                                                                                       \
    _( compile, "MODEL [-o STEP.onnx]",               "compile a training step; --emit writes other forms"           ) \
    _( export,  "MODEL|STEP [-o FILE]",               "write the deployable model, with the states of --checkpoint"  ) \
    _( train,   "MODEL|STEP --data .. --target ..",   "train, save and export"                                       ) \
    _( eval,    "MODEL|STEP --data .. --target ..",   "loss and metrics over data, every sample counted once"        ) \
    _( predict, "MODEL --data .. --output y.npy",     "what a model gives for every sample of a data set"            ) \
    _( run,     "MODEL --input x=x.npy",              "evaluate a model on given inputs"                             ) \
    _( check,   "PATH...",                            "validate models; --suite DIR runs ONNX conformance folders"   ) \
    _( bench,   "MODEL|STEP",                         "how fast it runs, launch by launch"                           ) \
    _( explain, "MODEL|STEP|STATES",                  "what is in a model and how it is seen; --node for details"    ) \
    _( diff,    "A B",                                "what differs between two models, in structure and in numbers" )
/* clang-format on */

typedef enum Verb {
#define VERB(word, form, help) VERB_##word,
    VERBS(VERB)
#undef VERB
        VERB_COUNT
} Verb;

enum VerbSets {
    V_COMPILE = 1 << VERB_compile,
    V_EXPORT = 1 << VERB_export,
    V_TRAIN = 1 << VERB_train,
    V_EVAL = 1 << VERB_eval,
    V_PREDICT = 1 << VERB_predict,
    V_RUN = 1 << VERB_run,
    V_CHECK = 1 << VERB_check,
    V_BENCH = 1 << VERB_bench,
    V_EXPLAIN = 1 << VERB_explain,
    V_DIFF = 1 << VERB_diff,
    V_STEP = V_COMPILE | V_EXPORT | V_TRAIN | V_EVAL | V_BENCH | V_EXPLAIN, /* what makes a training step of a model */
    V_ALL = (1 << VERB_COUNT) - 1,
    V_MODEL = V_ALL,
};

typedef enum Topic {
    TOPIC_GENERAL,
    TOPIC_MODEL,
    TOPIC_EMIT,
    TOPIC_DATA,
    TOPIC_VERIFY,
    TOPIC_LOSS,
    TOPIC_QUANT,
    TOPIC_DEVELOPER,
    TOPIC_COUNT
} Topic;

typedef enum ArgKind {
    ARG_FLAG,
    ARG_COUNT,
    ARG_REAL,
    ARG_TEXT,
    ARG_PAIR, /* NAME=VALUE */
    ARG_CHOICE,
    ARG_DEVICE,
    ARG_SELECTOR,
    ARG_FILE_IN,
    ARG_FILE_OUT,
    ARG_PAIR_IN,   /* NAME=FILE that is read */
    ARG_OUTPUT,    /* [NAME=]FILE that is written */
    ARG_DATA,      /* [NAME=]FILE[:opt,..], and words that are no file */
    ARG_DATA_LIST, /* several, NAME=FILE[:opt,..],.. */
    ARG_DIR_IN,
    ARG_DIR_OUT,
    ARG_STATES /* a file or folder of checkpoints: train writes it, every other verb reads it */
} ArgKind;

/* What a verb does with the files that an option names. */
typedef enum FileRole { ROLE_NONE, ROLE_READ, ROLE_WRITTEN } FileRole;

/* What an option needs that a build may lack. */
typedef enum Capability {
    NEEDS_NOW,
    NEEDS_TRAINING,
    NEEDS_PRECISION,
    NEEDS_QUANT,
    NEEDS_ENGINE,
    NEEDS_QCC_OPT,
} Capability;

/* What a compiled step keeps of an option. */
typedef enum Keep {
    KEEP_FREE,     /* nothing: every run says it anew */
    KEEP_START,    /* it is recorded; a run of the step may say another */
    KEEP_COMPILED, /* it is decided when the step is compiled */
    KEEP_IDENTITY  /* and a checkpoint of a step with another one does not fit */
} Keep;

typedef enum Option {
#define OPT(id, name, form, kind, verbs, topic, day, needs, step, field, help) OPT_##id,
#include "api/options/options.def"
#undef OPT
    OPT_COUNT
} Option;

typedef struct OptionSpec {
    const char *name, *form;
    ArgKind kind;
    unsigned verbs;
    Topic topic;
    bool everyday;
    Capability needs;
    Keep keep;
    const char *help;
} OptionSpec;

extern const OptionSpec option_specs[]; /* of each option; files that never count them know no number */

typedef struct Given {
    Option option;
    const char *value; /* null: a flag, or an argument that was left out */
} Given;

/* A command line that was understood. */
typedef struct CommandLine {
    Verb verb;
    bool verb_said;
    Given *given;
    size_t n_given, cap_given;
    const char **paths;
    size_t n_paths, cap_paths;
} CommandLine;

/* Reads words (the program's name left out).  Everything is checked but whether files exist. */
Status options_read(Diag *d, Arena *arena, int n, const char *const *words, CommandLine *line);

/* Whether every option of a line applies to its verb and is served by this build. */
Status options_allowed(Diag *d, CommandLine *line);

/* What options that are given as one text are for: which of them apply. */
typedef enum TextFor {
    TEXT_READS,    /* a model is read */
    TEXT_COMPILES, /* a step is compiled */
    TEXT_EXPORTS,  /* a model is deployed */
    TEXT_EMITS,    /* a graph is written, of a step where it says so */
    TEXT_RECORDED  /* what a step keeps: other options make its file INVALID */
} TextFor;

/* Reads options given as one text, quoted as a shell would, for a call named `who`. */
Status options_read_text(Diag *d, Arena *arena, const char *who, const char *text, TextFor what, CommandLine *line);

/* The last value of an option; null when it was not given or has none. */
const char *option_text(const CommandLine *line, Option o);

/* Whether it was given, and how often. */
int option_given(const CommandLine *line, Option o);

/* The value of a COUNT or REAL option, or `otherwise`. */
int64_t option_count(const CommandLine *line, Option o, int64_t otherwise);
double option_real(const CommandLine *line, Option o, double otherwise);

/* The next value of an option that may be repeated: *at begins at 0; null when there is no more. */
const char *option_next(const CommandLine *line, Option o, size_t *at);

/* Splits NAME=VALUE of a PAIR; the name lives in `arena`. */
const char *pair_split(Arena *arena, const char *pair, const char **value);

/* Whether a line has a PAIR option for that name. */
bool pair_given(Arena *arena, const CommandLine *line, Option o, const char *name);

/* Whether the argument of an option may be left out. */
static inline bool option_may_lack(const OptionSpec *o)
{
    return o->form[0] == '[' && o->form[1] == '=';
}

/* Whether the file of a step says it. */
static inline bool option_is_recorded(Option o)
{
    return option_specs[o].keep != KEEP_FREE;
}

/* Whether it was decided when a step was compiled, so that a run of that step cannot say it. */
static inline bool option_is_compiled(Option o)
{
    return option_specs[o].keep >= KEEP_COMPILED;
}

/* Whether it gives what the file of a model leaves open a value: a dimension, an input. */
static inline bool option_binds(Option o)
{
    return option_specs[o].topic == TOPIC_MODEL && option_is_compiled(o);
}

/* Whether a CHOICE has that word. */
bool option_is_choice(const OptionSpec *o, const char *word);

/* Whether a line says something of how a model is trained, so that a step has to be made of it. */
bool line_wants_step(const CommandLine *line);

/* What a capability is called: "training". */
const char *capability_name(Capability c);

/* What a verb does with the files of an option; none where it does not apply. */
FileRole option_role(const OptionSpec *o, Verb v);

/* The name of a verb. */
const char *verb_name(Verb v);

/* Fills an array with the names of all options, for "did you mean"; returns their number. */
size_t option_names(const char *names[OPT_COUNT]);

/* Appends the options of a line as a configuration file says them; reading it gives the same line. */
void config_print(Text *out, const CommandLine *line);

/* Appends a line as it would be typed: paths and options, quoted for a shell. */
void options_print_line(Text *out, const CommandLine *line);

/* Reads a configuration file into a line. */
Status config_read(Diag *d, Arena *arena, const char *path, CommandLine *line);

/* The options of two lines, those of `b` behind those of `a`, copied; either may be empty. */
CommandLine line_join(Arena *arena, const CommandLine *a, const CommandLine *b);

/* Takes every value of an option out of a line. */
void line_drop(CommandLine *line, Option o);

/* Checks the form of a value that stands at `place`. */
Status option_check(Diag *d, Place place, const OptionSpec *o, const char *value);

/* Adds an option to a line. */
void option_add(Arena *arena, CommandLine *line, Option o, const char *value);

/* The place of messages about command lines. */
#define ON_COMMAND_LINE ((Place){ .file = "qcc", .byte = -1 })

#endif
