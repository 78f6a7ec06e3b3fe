// Learns to balance a pole from rewards alone: a loss of the host's own, and no file anywhere.
//
//     c++ reinforce.cpp $(pkg-config --cflags --libs qcc) && ./a.out
//
// One session plays sixteen poles at a time.  Another learns: it sees all situations of a round by qcc_run(FORWARD), the
// host makes the gradient of the scores out of them and the rewards, binds that as grad.scores, and lets backward and
// update follow.  The weights go over as one vector.
#include <qcc/qcc.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

enum { POLES = 16, TURNS = 32, BATCH = POLES * TURNS, ROUNDS = 150, LONGEST = 500 };

const char policy[] = "graph @policy(%state: f32[?,4]) -> (%scores) {\n"
                      "    param %w1: f32[24,4] = kaiming(seed=1)\n"
                      "    param %b1: f32[24] = zeros\n"
                      "    param %w2: f32[2,24] = kaiming(seed=2, scale=0.1)\n"
                      "    param %b2: f32[2] = zeros\n"
                      "    %h: f32[?,24] = gemm(%state, %w1, %b1, transB=true)\n"
                      "    %a: f32[?,24] = tanh(%h)\n"
                      "    %scores: f32[?,2] = gemm(%a, %w2, %b2, transB=true)\n"
                      "}\n";

void check(qcc_status status)
{
    if (status != QCC_OK)
        std::exit(status); // what went wrong was reported already
}

// The classic cart and pole, in steps of 20 ms: {x, v, angle, spin}.  False: it fell, or ran off.
bool push(float s[4], bool right)
{
    const float force = right ? 10.f : -10.f, c = std::cos(s[2]),
                t = (force + .05f * s[3] * s[3] * std::sin(s[2])) / 1.1f;
    const float turn = (9.8f * std::sin(s[2]) - c * t) / (.5f * (4.f / 3 - .1f * c * c / 1.1f));
    const float pull = t - .05f * turn * c / 1.1f;
    s[0] += .02f * s[1], s[1] += .02f * pull, s[2] += .02f * s[3], s[3] += .02f * turn;
    return std::fabs(s[0]) < 2.4f && std::fabs(s[2]) < .21f;
}

// The probability of a push to the right in the i-th situation of the last run.
float chance(qcc_session *session, int i)
{
    qcc_tensor scores = qcc_tensor();
    scores.size = sizeof scores;
    check(qcc_view(session, "scores", &scores));
    const float *s = static_cast<const float *>(scores.data) + 2 * i;
    return 1 / (1 + std::exp(s[0] - s[1]));
}

qcc_tensor matrix(int rows, int columns, float *data)
{
    qcc_tensor t = { sizeof(qcc_tensor), QCC_F32, 2, { rows, columns }, data, sizeof(float) * rows * columns, QCC_ON_HOST };
    return t;
}

qcc_session *start(qcc_model *model, const char *options)
{
    qcc_step *step;
    qcc_session *session;
    check(qcc_compile(model, options, &step));
    check(qcc_start(step, NULL, &session));
    return session;
}

float pole[POLES][4], state[BATCH][4], gradient[BATCH][2], ahead[BATCH];
bool right[BATCH], fell[BATCH];

// Plays a round; returns how often a pole fell.
int play(qcc_session *session, std::mt19937 &random)
{
    static int age[POLES];
    std::uniform_real_distribution<float> uniform(0, 1);
    int falls = 0;
    for (int i = 0; i < BATCH; i++) {
        const int k = i % POLES;
        if (k == 0)
            check(qcc_run(session, QCC_EVAL, nullptr));
        std::memcpy(state[i], pole[k], sizeof state[i]);
        right[i] = uniform(random) < chance(session, k);
        fell[i] = !push(pole[k], right[i]) || ++age[k] == LONGEST;
        if (fell[i]) {
            const float fresh[4] = { 0, 0, .1f * (uniform(random) - .5f), 0 };
            std::memcpy(pole[k], fresh, sizeof fresh);
            age[k] = 0;
            falls++;
        }
    }
    return falls;
}

// Turns to come, less their mean: a push that was followed by more of them than usual was a good one.
void learn(qcc_session *session)
{
    double sum = 0, square = 0;
    for (int i = BATCH - 1; i >= 0; i--) {
        ahead[i] = fell[i] ? 0 : 1 + .95f * (i + POLES < BATCH ? ahead[i + POLES] : 20);
        sum += ahead[i], square += ahead[i] * ahead[i];
    }
    const double mean = sum / BATCH, spread = std::sqrt(square / BATCH - mean * mean) + 1e-6;
    check(qcc_run(session, QCC_FORWARD, nullptr));
    for (int i = 0; i < BATCH; i++) {
        gradient[i][1] = (chance(session, i) - right[i]) * static_cast<float>((ahead[i] - mean) / spread) / BATCH;
        gradient[i][0] = -gradient[i][1];
    }
    check(qcc_run(session, QCC_BACKWARD | QCC_UPDATE, nullptr));
}

int main()
{
    qcc_context_options options = {};
    options.size = sizeof options;
    options.report = qcc_report_stderr;
    qcc_context *context;
    qcc_model *model;
    qcc_source source = qcc_bytes(policy, std::strlen(policy));
    source.name = "policy.qir";
    check(qcc_open(&options, &context));
    check(qcc_read(context, &source, nullptr, &model));
    qcc_session *player = start(model, "--batch 16 --loss external:scores");
    qcc_session *learner = start(model, "--batch 512 --loss external:scores --optimizer adam:lr=0.01");
    const qcc_tensor now = matrix(POLES, 4, pole[0]), all = matrix(BATCH, 4, state[0]);
    const qcc_tensor back = matrix(BATCH, 2, gradient[0]);
    check(qcc_bind(player, "state", &now));
    check(qcc_bind(learner, "state", &all));
    check(qcc_bind(learner, "grad.scores", &back));
    std::vector<float> weights(qcc_flat_size(learner));

    std::mt19937 random(1);
    double first = 0, mean = 0; // turns between falls, of about the last ten rounds
    for (int round = 1; round <= ROUNDS; round++) {
        const int falls = play(player, random);
        mean += (static_cast<double>(BATCH) / (falls ? falls : 1) - mean) / (round < 10 ? round : 10);
        first = round == 10 ? mean : first;
        learn(learner);
        check(qcc_get_flat(learner, weights.data(), weights.size()));
        check(qcc_set_flat(player, weights.data(), weights.size()));
        if (round % 30 == 0 || round == 10)
            std::printf("round %d  turns between falls %.0f\n", round, mean);
    }
    qcc_close(context);
    return mean > 3 * first ? 0 : 1;
}
