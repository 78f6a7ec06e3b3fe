#include "frontends/view/words.h"

static const char *const fuse[] = {
    [FUSE_OPAQUE] = "opaque", [FUSE_POINTWISE] = "pointwise", [FUSE_REDUCE] = "reduce",
    [FUSE_MOVE] = "move",     [FUSE_CONTRACT] = "contract",   [FUSE_WINDOW] = "window",
};

static const char *const amp[] = {
    [AMP_UNSET] = "-", [AMP_T] = "T",   [AMP_S] = "S", [AMP_FO] = "FO", [AMP_FI] = "FI",
    [AMP_F] = "F",     [AMP_EX] = "EX", [AMP_E] = "E", [AMP_W] = "W",   [AMP_P] = "P",
    [AMP_PW] = "PW",   [AMP_PM] = "PM", [AMP_N] = "N", [AMP_X] = "X",   [AMP_C] = "C",
};

static const char *const roles[] = {
    [QUANT_UNSET] = "-",       [QUANT_INPUT] = "input",       [QUANT_WEIGHT] = "weight",
    [QUANT_BIAS] = "bias",     [QUANT_AGNOSTIC] = "agnostic", [QUANT_TABLE] = "table",
    [QUANT_GATHER] = "gather", [QUANT_FLOAT] = "float",       [QUANT_NEVER] = "never",
};

const char *fuse_word(FuseClass c)
{
    return fuse[c];
}

const char *amp_class_word(AmpClass c)
{
    return amp[c];
}

const char *quant_role_word(QuantRole r)
{
    return roles[r];
}
