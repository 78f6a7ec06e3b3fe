// Learns to balance a pole from rewards alone: a loss of the host's own, and no file but the model's text.
//
//     c++ reinforce.cpp $(pkg-config --cflags --libs qcc) && ./a.out
//
// The policy's scores come out of qcc_run(FORWARD); the host turns rewards into the gradient of the scores, binds that as
// grad.scores, and lets backward and update follow.
#include <qcc/qcc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr int batch = 512; // situations that one update learns from
const char policy[] = R"(
graph @policy(%state: f32[?,4]) -> (%scores) {
    param %w1: f32[24,4] = kaiming(seed=1)
    param %b1: f32[24] = zeros
    param %w2: f32[2,24] = kaiming(seed=2, scale=0.1)
    param %b2: f32[2] = zeros
    %h: f32[?,24] = gemm(%state, %w1, %b1, transB=true)
    %a: f32[?,24] = tanh(%h)
    %scores: f32[?,2] = gemm(%a, %w2, %b2, transB=true)
}
)";

void check(qcc_status status)
{
    if (status != QCC_OK)
        std::exit(status);
}

// The classic cart and pole, in steps of 20 ms.
struct Pole {
    float x = 0, v = 0, angle = 0, spin = 0;

    bool push(int action)
    {
        const float force = action ? 10.f : -10.f, c = std::cos(angle), s = std::sin(angle);
        const float t = (force + 0.05f * spin * spin * s) / 1.1f;
        const float turn = (9.8f * s - c * t) / (0.5f * (4.f / 3 - 0.1f * c * c / 1.1f));
        const float pull = t - 0.05f * turn * c / 1.1f;
        x += 0.02f * v, v += 0.02f * pull, angle += 0.02f * spin, spin += 0.02f * turn;
        return std::fabs(x) < 2.4f && std::fabs(angle) < 0.21f;
    }
};

struct Policy {
    qcc_session *session = nullptr;
    float state[batch][4] = {}, gradient[batch][2] = {};

    // The probability of action 1 in each of the situations.
    std::vector<float> probabilities()
    {
        qcc_tensor scores;
        std::vector<float> p(batch);
        check(qcc_run(session, QCC_FORWARD, nullptr));
        check(qcc_view(session, "scores", &scores));
        const float *s = static_cast<const float *>(scores.data);
        for (int i = 0; i < batch; i++)
            p[i] = 1 / (1 + std::exp(s[2 * i] - s[2 * i + 1]));
        return p;
    }
};

} // namespace

int main()
{
    qcc_context_options options = {};
    options.size = sizeof options;
    options.report = qcc_report_stderr;
    qcc_context *context;
    qcc_model *model;
    qcc_step *step;
    qcc_source source = qcc_bytes(policy, std::strlen(policy));
    source.name = "policy.qir";
    static Policy net;
    check(qcc_open(&options, &context));
    check(qcc_read(context, &source, "--batch 512", &model));
    check(qcc_compile(model, "--loss external:scores --optimizer adam:lr=0.01", &step));
    check(qcc_start(step, &net.session));
    const qcc_tensor state = { QCC_F32, 2, { batch, 4 }, net.state, sizeof net.state };
    const qcc_tensor gradient = { QCC_F32, 2, { batch, 2 }, net.gradient, sizeof net.gradient };
    check(qcc_bind(net.session, "state", &state));
    check(qcc_bind(net.session, "grad.scores", &gradient));

    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(0, 1);
    constexpr int poles = 16, turns = batch / poles;
    std::vector<Pole> pole(poles);
    std::vector<int> age(poles);
    double mean = 0;
    for (int round = 1; round <= 150; round++) {
        std::vector<int> action(batch);
        std::vector<float> p(batch);
        std::vector<char> fell(batch);
        int falls = 0;
        for (int t = 0; t < turns; t++) { // sixteen poles side by side, a turn at a time
            for (int k = 0; k < poles; k++) {
                const float now[4] = { pole[k].x, pole[k].v, pole[k].angle, pole[k].spin };
                std::copy(now, now + 4, net.state[t * poles + k]);
            }
            const std::vector<float> all = net.probabilities();
            for (int k = 0; k < poles; k++) {
                const int i = t * poles + k;
                p[i] = all[i];
                action[i] = uniform(random) < p[i];
                fell[i] = !pole[k].push(action[i]) || ++age[k] >= 500;
                if (fell[i])
                    pole[k] = Pole{ 0, 0, 0.1f * (uniform(random) - 0.5f), 0 }, age[k] = 0, falls++;
            }
        }
        // Rewards to come, less their mean: a push that was followed by more turns than usual was a good one.
        std::vector<float> ahead(batch);
        double sum = 0, square = 0;
        for (int k = 0; k < poles; k++) {
            float g = 20;
            for (int t = turns - 1; t >= 0; t--) {
                const int i = t * poles + k;
                g = fell[i] ? 0 : 1 + 0.95f * g;
                ahead[i] = g, sum += g, square += g * g;
            }
        }
        const double average = sum / batch, spread = std::sqrt(square / batch - average * average) + 1e-6;
        for (int i = 0; i < batch; i++) {
            const float d = (p[i] - action[i]) * static_cast<float>((ahead[i] - average) / spread) / batch;
            net.gradient[i][0] = -d;
            net.gradient[i][1] = d;
        }
        net.probabilities();
        check(qcc_run(net.session, QCC_BACKWARD, nullptr));
        check(qcc_run(net.session, QCC_UPDATE, nullptr));
        mean = static_cast<double>(batch) / std::max(falls, 1);
        if (round % 30 == 0)
            std::printf("round %d  turns between falls %.0f\n", round, mean);
    }
    qcc_close(context);
    return mean > 60 ? 0 : 1;
}
