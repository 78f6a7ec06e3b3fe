/* Written by recurrent.py. */
/* clang-format off */
static const Stored stored[] = {
    { OP_lstm, 4, { NULL }, { .layout = 0 }, { 0.270861268, -0.0440902561, 0.320419639, -0.127279311 } },
    { OP_lstm, 4, { NULL }, { .input_forget = true }, { 0.249904141, -0.0731267184, 0.354347289, 0.103133112 } },
    { OP_lstm, 4, { "HardSigmoid", "Elu", "Softsign" }, { .clip = 0.5f, .activation_alpha = { 2, stored_alpha }, .activation_beta = { 1, stored_beta } }, { 0.261582285, -0.176093087, 0.343126446, 0.362911284 } },
    { OP_gru, 3, { NULL }, { .layout = 0 }, { 0.776494861, 0.967583776, 0.50429219, 0.489019364 } },
    { OP_gru, 3, { NULL }, { .linear_before_reset = true }, { 0.754010379, 0.951693177, 0.370073885, 0.422847986 } },
    { OP_gru, 3, { "Affine", "ScaledTanh" }, { .activation_alpha = { 2, stored_alpha }, .activation_beta = { 2, stored_beta } }, { 25.4956131, 0.212964594, 2.67092466, -0.528372169 } },
    { OP_rnn, 1, { NULL }, { .layout = 0 }, { 0.978854179, -0.736658335, 0.396677613, -0.514165521 } },
    { OP_rnn, 1, { "LeakyRelu" }, { .direction = RUN_REVERSE, .activation_alpha = { 1, stored_alpha } }, { 4.83376551, -0.68435353, 3.44907689, -0.153675228 } },
};
/* clang-format on */
