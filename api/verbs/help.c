/* Help, manual page and completion, all printed from the options table. */
#include <string.h>

#include "api/hall/words.h"
#include "api/options/option_kinds.h"
#include "api/verbs/verbs.h"

/* clang-format off */
static const struct { const char *word, *form, *help; } verbs[VERB_COUNT] = {
#define VERB(word, form, help) { #word, form, help },
    VERBS(VERB)
#undef VERB
};
/* clang-format on */

static const char *const titles[TOPIC_COUNT] = {
    [TOPIC_GENERAL] = "general",
    [TOPIC_MODEL] = "model",
    [TOPIC_EMIT] = "what is written",
    [TOPIC_DATA] = "data and runs",
    [TOPIC_VERIFY] = "verification",
    [TOPIC_LOSS] = "parameters, loss and optimizer",
    [TOPIC_QUANT] = "precision and quantization",
    [TOPIC_DEVELOPER] = "passes (in qcc_opt)",
};

static const char short_help[] =
    "qcc makes a training step of an ONNX model, trains it, and writes the model that is deployed.\n"
    "\n"
    "  qcc model.onnx                                                    compile: model.step.onnx\n"
    "  qcc train model.step.onnx --data x.npy --target y.npy             train it\n"
    "  qcc --export model.step.onnx --checkpoint PATH -o trained.onnx    deploy it\n"
    "\n"
    "Other verbs: eval, predict, run, check, explain, diff.  Text of graphs (.qir) goes wherever a model does.\n"
    "\n"
    "  qcc --help             everyday options; help VERB those of a verb, --help=all the rest\n"
    "  qcc --list-ops         what can be evaluated; with grad what can be differentiated\n"
    "  qcc doctor             what this machine has, and what is missing\n";

static const char table_help[] =
    "\n"
    "tables of classes, one line each: SELECTOR key=value ..   # and a comment\n"
    "  op:Conv                  calls of an operator, by its ONNX name or its word\n"
    "  op:Resize[mode=linear]   those whose attributes, defaults filled in, have these values\n"
    "  REGEX                    nodes whose name matches\n"
    "  default, or op:*         operators of ONNX that no other line names, unless they only move data\n"
    "  fp16=T bf16=T            classes for --amp fp16, --amp bf16 (qcc --list-ops amp); C: what the condition says\n"
    "  wide=1,2                 operands that stay f32; - for none\n"
    "  reason=range             range, precision, index, schema, kernel, meaning or -\n"
    "What a line does not say stays; of several lines the last counts; --keep-fp32 comes last.\n"
    "\n"
    "tables of quantizers, selected in the same way:\n"
    "  w=int8:channel a=uint8   of products: quantizers of their operands in the words of --quant, or off\n"
    "  in=table out=table       what operators do with codes (qcc --print-table quant), or off: they stay float\n"
    "  reason=depthwise         a word for qcc explain\n"
    "--quant-op comes last.\n";

/* ---- plain text ---- */

static void option_line(Text *t, const OptionSpec *o)
{
    enum { COLUMN = 34 };
    const bool lacking = o->needs != NEEDS_NOW && o->needs != NEEDS_QCC_OPT;
    const size_t start = t->n;
    text_printf(t, "%s%s%s%s ", lacking ? "* " : "  ", o->name, *o->form && !option_may_lack(o) ? " " : "", o->form);
    if (t->n - start > COLUMN)
        t->p[t->n - 1] = '\n';
    text_pad(t, COLUMN);
    text_printf(t, "%s\n", o->help);
}

static void topic_lines(Text *t, Topic topic, bool everyday)
{
    bool any = false;
    for (int i = 0; i < OPT_COUNT; i++) {
        const OptionSpec *o = &option_specs[i];
        if (o->topic != topic || (everyday && !o->everyday))
            continue;
        if (!any)
            text_printf(t, "\n%s\n", titles[topic]);
        any = true;
        option_line(t, o);
    }
    if (topic == TOPIC_QUANT && !everyday)
        text_add(t, table_help);
    if (topic == TOPIC_LOSS && !everyday)
        kinds_print(t, &ops_table);
}

static void usage_lines(Text *t, const Command *c)
{
    enum { COLUMN = 50 };
    (void)c;
    text_add(t, "usage\n");
    for (int v = 0; v < VERB_COUNT; v++) {
        text_printf(t, "  qcc %s%s%s ", v == VERB_compile ? "" : verbs[v].word, v == VERB_compile ? "" : " ",
                    verbs[v].form);
        text_pad(t, COLUMN);
        text_printf(t, "%s%s\n", verbs[v].help, command_has((Verb)v) ? "" : " (not in this build)");
    }
}

static void exit_lines(Text *t)
{
    text_add(t, "exit codes\n");
    for (size_t i = 0; i < n_exit_codes; i++)
        text_printf(t, "  %-4d %s\n", exit_codes[i].code, exit_codes[i].when);
}

static void print_all(Text *t, const Command *c, bool everyday)
{
    usage_lines(t, c);
    for (int topic = 0; topic < TOPIC_COUNT; topic++)
        if (!everyday || topic != TOPIC_DEVELOPER)
            topic_lines(t, (Topic)topic, everyday);
    if (everyday) {
        text_add(t,
                 "\nSelectors are extended regular expressions over names of parameters and nodes; op:Conv selects by "
                 "operator.\nmore: qcc help VERB, --help=all|quant|loss|data|exit|verify|developer\n");
    } else {
        text_char(t, '\n');
        exit_lines(t);
    }
}

/* The page of one verb: what it takes, general options but for the everyday ones left out. */
static void print_verb(Text *t, Verb v)
{
    text_printf(t, "usage\n  qcc %s%s%s\n\n%s\n", v == VERB_compile ? "" : verbs[v].word, v == VERB_compile ? "" : " ",
                verbs[v].form, verbs[v].help);
    for (int topic = TOPIC_COUNT; topic-- > 0;) {
        const Topic order[] = { TOPIC_GENERAL, TOPIC_EMIT,   TOPIC_QUANT, TOPIC_LOSS,
                                TOPIC_MODEL,   TOPIC_VERIFY, TOPIC_DATA };
        bool any = false;
        if (topic >= (int)COUNT(order))
            continue;
        for (int i = 0; i < OPT_COUNT; i++) {
            const OptionSpec *o = &option_specs[i];
            if (o->topic != order[topic] || !(o->verbs >> v & 1) || (o->topic == TOPIC_GENERAL && !o->everyday))
                continue;
            if (!any)
                text_printf(t, "\n%s\n", titles[order[topic]]);
            any = true;
            option_line(t, o);
        }
    }
    text_printf(t, "\nmore: qcc --help=all%s\n",
                V_STEP >> v & 1 ? "; settings of --loss, --optimizer and --schedule: qcc --help=loss" : "");
}

/* ---- the manual page ---- */

/* Text in roff: backslashes and hyphens are said, a leading dot is none. */
static void roff_text(Text *t, const char *s)
{
    if (*s == '.' || *s == '\'')
        text_add(t, "\\&");
    for (; *s; s++) {
        if (*s == '\\')
            text_add(t, "\\e");
        else if (*s == '-')
            text_add(t, "\\-");
        else
            text_char(t, *s);
    }
}

static void roff_option(Text *t, const OptionSpec *o)
{
    text_add(t, ".TP\n\\fB");
    roff_text(t, o->name);
    text_add(t, "\\fR");
    if (*o->form) {
        text_add(t, option_may_lack(o) ? "\\fI" : " \\fI");
        roff_text(t, o->form);
        text_add(t, "\\fR");
    }
    text_char(t, '\n');
    roff_text(t, o->help);
    if (o->needs != NEEDS_NOW && o->needs != NEEDS_QCC_OPT)
        text_printf(t, " (needs %s: not in this build)", capability_name(o->needs));
    text_char(t, '\n');
}

static void print_man(Text *t)
{
    text_printf(t, ".TH QCC 1 \"\" \"qcc %s\" \"User Commands\"\n", qcc_version());
    text_add(t, ".SH NAME\nqcc \\- compile ONNX models into training steps, train, export, explain, run and compare "
                "them\n.SH SYNOPSIS\n");
    for (int v = 0; v < VERB_COUNT; v++) {
        text_printf(t, "%s\\fBqcc%s%s\\fR ", v ? ".br\n" : "", v == VERB_compile ? "" : " ",
                    v == VERB_compile ? "" : verbs[v].word);
        roff_text(t, verbs[v].form);
        text_char(t, '\n');
    }
    text_add(t, ".SH DESCRIPTION\n");
    for (int v = 0; v < VERB_COUNT; v++) {
        text_printf(t, ".TP\n\\fB%s\\fR\n", verbs[v].word);
        roff_text(t, verbs[v].help);
        text_add(t, command_has((Verb)v) ? "\n" : " (not in this build)\n");
    }
    text_add(t, ".PP\nResults go to standard output, words to standard error. Files named .qir are accepted wherever "
                ".onnx files are.\n");
    for (int topic = 0; topic < TOPIC_COUNT; topic++) {
        text_printf(t, ".SH OPTIONS: %s\n", titles[topic]);
        for (int i = 0; i < OPT_COUNT; i++)
            if (option_specs[i].topic == (Topic)topic)
                roff_option(t, &option_specs[i]);
    }
    text_add(t, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < n_exit_codes; i++)
        text_printf(t, ".TP\n%d\n%s\n", exit_codes[i].code, exit_codes[i].when);
}

/* ---- completion for bash ---- */

/* Words after the options that take a choice, and the kinds and settings of --loss, --optimizer and --schedule: : and =
 * part words for the shell, so the value is put together again. */
static void print_choices(Text *t)
{
    text_add(t, "    local i=$COMP_CWORD option value last words\n"
                "    while ((i > 0)) && [[ ${COMP_WORDS[i]} != --* ]]; do i=$((i - 1)); done\n"
                "    option=${COMP_WORDS[i]}\n"
                "    value=$(IFS=; echo \"${COMP_WORDS[*]:i+1:COMP_CWORD-i}\")\n"
                "    [[ $cur == [:=] ]] && cur=\n"
                "    case $option in\n");
    for (int i = 0; i < OPT_COUNT; i++)
        kinds_complete(t, &ops_table, (Option)i);
    text_add(t, "    esac\n    case $prev in\n");
    for (int i = 0; i < OPT_COUNT; i++) {
        const OptionSpec *o = &option_specs[i];
        if (o->kind != ARG_CHOICE || option_may_lack(o))
            continue;
        text_printf(t, "    %s) COMPREPLY=($(compgen -W \"", o->name);
        for (const char *p = o->form; *p; p++)
            text_char(t, *p == '|' ? ' ' : *p);
        text_add(t, "\" -- \"$cur\")); return ;;\n");
    }
    text_add(t, "    esac\n");
}

static void print_completion(Text *t)
{
    text_add(t, "# bash completion for qcc\n_qcc()\n{\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n");
    print_choices(t);
    text_add(t, "    if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W \"");
    for (int i = 0; i < OPT_COUNT; i++)
        text_printf(t, "%s%s", i ? " " : "", option_specs[i].name);
    text_add(t, "\" -- \"$cur\"))\n    elif ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W \"");
    for (int v = 0; v < VERB_COUNT; v++)
        if (command_has((Verb)v))
            text_printf(t, "%s ", verbs[v].word);
    text_add(t, "help doctor\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n    else\n"
                "        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\ncomplete -o filenames -F _qcc qcc\n");
}

Status command_help(Command *c)
{
    static const struct {
        const char *word;
        Topic topic;
    } topics[] = {
        { "quant", TOPIC_QUANT },   { "loss", TOPIC_LOSS },           { "data", TOPIC_DATA },
        { "verify", TOPIC_VERIFY }, { "developer", TOPIC_DEVELOPER },
    };
    Text t;
    const char *word = option_text(&c->line, OPT_help);
    text_open(&t, &c->cx->scratch);
    if (!option_given(&c->line, OPT_help))
        text_add(&t, short_help);
    else if (!word && c->line.verb_said)
        print_verb(&t, c->line.verb);
    else if (!word || strcmp(word, "all") == 0)
        print_all(&t, c, !word);
    else if (strcmp(word, "exit") == 0)
        exit_lines(&t);
    else if (strcmp(word, "man") == 0)
        print_man(&t);
    else if (strcmp(word, "completion") == 0)
        print_completion(&t);
    for (size_t i = 0; word && i < COUNT(topics); i++)
        if (strcmp(topics[i].word, word) == 0)
            topic_lines(&t, topics[i].topic, false);
    return out_bytes(c->out, t.p, t.n);
}
