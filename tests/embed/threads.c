/* Threads and processes of a host: many contexts, one context in the wrong hands, small stacks, forks, callbacks. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed/calls.h"
#include "embed/everything.h"

/* ---- contexts side by side ---- */

typedef struct Worker {
    qcc_status status;
    int threads;
    float flat[FLAT];
} Worker;

static void *work(void *arg)
{
    Worker *w = arg;
    Host h = { .threads = w->threads };
    w->status = everything(&h, w->flat);
    if (h.blocks)
        w->status = QCC_INTERNAL;
    return NULL;
}

static void run_workers(Worker *w, size_t n, size_t stack)
{
    pthread_t threads[8];
    pthread_attr_t attr;
    assert_int_equal(pthread_attr_init(&attr), 0);
    if (stack)
        assert_int_equal(pthread_attr_setstacksize(&attr, stack), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], &attr, work, &w[i]), 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(w[i].status, QCC_OK);
        assert_memory_equal(w[i].flat, w[0].flat, sizeof w[0].flat);
    }
    pthread_attr_destroy(&attr);
}

static void contexts_train_side_by_side(void **state)
{
    enum { CONTEXTS = 8 };
    static Worker w[CONTEXTS];
    (void)state;
    for (int i = 0; i < CONTEXTS; i++)
        w[i].threads = 1 + i % 3;
    run_workers(w, CONTEXTS, 0);
}

static void a_small_stack_is_enough(void **state)
{
    Worker w = { .threads = 1 };
    (void)state;
    run_workers(&w, 1, 64 << 10);
}

static size_t tasks(void)
{
    size_t n = 0;
    FILE *f = fopen("/proc/self/status", "re");
    for (char line[256]; f && fgets(line, sizeof line, f);)
        if (sscanf(line, "Threads: %zu", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

static void one_thread_starts_none(void **state)
{
    Host h = { 0 };
    Trainee t;
    const size_t before = tasks();
    qcc_context *cx = open_with(&h);
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_run(&t, 0, 2);
    assert_int_equal(tasks(), before);
    qcc_close(cx);
}

/* ---- who may call ---- */

static void open_handles(Handles *h, Trainee *t, Host *host)
{
    qcc_context *cx = open_with(host);
    trainee_open(t, cx, TRAINEE_OPTIONS);
    *h = (Handles){ .cx = cx, .model = t->model, .step = t->step, .session = t->session };
    assert_int_equal(qcc_scaler_open(cx, 0, &h->scaler), QCC_OK);
    assert_int_equal(qcc_find(h->session, "w1", &h->value), QCC_OK);
}

/* What each public call that enters a context must be: in the table, with the same name. */
static void the_table_has_every_call(void **state)
{
    char line[512], name[64];
    int n = 0;
    FILE *f = fopen(QCC_SOURCE_DIR "/include/qcc/qcc.h", "r");
    (void)state;
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "QCC_CHECKED qcc_status %63[a-z_](", name) == 1 && !is_question(name)) {
            if (!is_call(name))
                print_error("%s is not in tests/embed/calls.h\n", name);
            assert_true(is_call(name));
            n++;
        }
    fclose(f);
    assert_int_equal(n, CALL_COUNT);
}

/* How many calls answer something else, or leave something behind. */
static int wrong_answers(Handles *h, qcc_status status)
{
    int wrong = 0;
    for (int i = 0; i < CALL_COUNT; i++) {
        const qcc_status got = call_nth(h, i);
        wrong += got != status;
        if (got != status)
            print_error("%s answers %d\n", call_names[i], got);
    }
    return wrong + (h->new_model || h->new_step || h->new_session || h->new_scaler || h->tensor.data || h->text);
}

static void let_all_go(Handles *h)
{
    qcc_end(h->session);
    qcc_scaler_close(h->scaler);
    qcc_step_free(h->step);
    qcc_model_free(h->model);
    qcc_close(h->cx);
}

static void a_child_may_only_let_go(void **state)
{
    Host host = { 0 };
    Handles h;
    Trainee t;
    (void)state;
    open_handles(&h, &t, &host);
    trainee_run(&t, 0, 1);
    const pid_t child = fork();
    if (child == 0) {
        const int wrong = wrong_answers(&h, QCC_FORKED);
        let_all_go(&h);
        _exit(wrong || host.blocks ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    trainee_run(&t, 1, 2);
    qcc_close(h.cx);
    assert_int_equal(host.blocks, 0);
}

typedef struct Visit {
    Handles *handles;
    int visits, wrong;
    bool forks;           /* it asks in a child */
    sem_t inside, looked; /* or another thread is asked to */
    bool has_guest;
} Visit;

/* What a host does inside a call that it made. */
static qcc_status visit(void *user, const void *bytes, size_t n)
{
    Visit *v = user;
    (void)bytes, (void)n;
    if (v->visits++ > 2)
        return QCC_OK;
    if (v->has_guest) {
        sem_post(&v->inside);
        sem_wait(&v->looked);
    } else if (v->forks) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            const int wrong = wrong_answers(v->handles, QCC_FORKED);
            let_all_go(v->handles); /* from inside a callback: nothing happens */
            _exit(wrong ? 1 : 0);
        }
        v->wrong += waitpid(child, &status, 0) != child || status != 0;
    } else {
        v->wrong += wrong_answers(v->handles, QCC_BUSY);
        let_all_go(v->handles);
    }
    return qcc_n_parameters(v->handles->step) == 4 ? QCC_OK : QCC_INTERNAL; /* questions are answered */
}

static qcc_status visit_by(int way, Handles *h, const qcc_sink *sink)
{
    return way == 0   ? qcc_save(h->session, sink)
           : way == 1 ? qcc_export_session(h->session, NULL, sink)
           : way == 2 ? qcc_write_step(h->step, sink)
                      : qcc_emit(h->model, "json", NULL, sink);
}

static void run_visits(bool forks)
{
    for (int way = 0; way < 4; way++) {
        Host host = { 0 };
        Handles h;
        Trainee t;
        open_handles(&h, &t, &host);
        Visit v = { .handles = &h, .forks = forks };
        const qcc_sink sink = { .write = visit, .user = &v };
        assert_int_equal(visit_by(way, &h, &sink), QCC_OK);
        assert_true(v.visits > 0);
        assert_int_equal(v.wrong, 0);
        trainee_run(&t, 0, 1);
        qcc_close(h.cx);
        assert_int_equal(host.blocks, 0);
    }
}

static void callbacks_find_it_busy(void **state)
{
    (void)state;
    run_visits(false);
}

static void callbacks_may_fork(void **state)
{
    (void)state;
    run_visits(true);
}

static void *be_the_guest(void *arg)
{
    Visit *v = arg;
    sem_wait(&v->inside);
    v->wrong = wrong_answers(v->handles, QCC_BUSY);
    let_all_go(v->handles);
    v->has_guest = false;
    sem_post(&v->looked);
    return NULL;
}

static void another_thread_finds_it_busy(void **state)
{
    Host host = { 0 };
    Handles h;
    Trainee t;
    Visit v = { .handles = &h, .has_guest = true };
    const qcc_sink sink = { .write = visit, .user = &v };
    pthread_t guest;
    (void)state;
    open_handles(&h, &t, &host);
    assert_int_equal(sem_init(&v.inside, 0, 0) | sem_init(&v.looked, 0, 0), 0);
    assert_int_equal(pthread_create(&guest, NULL, be_the_guest, &v), 0);
    v.visits = 2; /* of which one is asked for */
    assert_int_equal(qcc_save(h.session, &sink), QCC_OK);
    assert_int_equal(pthread_join(guest, NULL), 0);
    assert_int_equal(v.wrong, 0);
    trainee_run(&t, 0, 1);
    qcc_close(h.cx);
    assert_int_equal(host.blocks, 0);
}

/* ---- one context in four threads, which is wrong ---- */

enum { CROWD = 4, EACH_STEPS = 100 };

typedef struct Crowd {
    Handles *handles;
    const char *name;
    size_t bad;
} Crowd;

static void *press(void *arg)
{
    Crowd *c = arg;
    float flat[FLAT];
    const char *text;
    for (int done = 0; done < EACH_STEPS;) {
        const qcc_status status = qcc_run(c->handles->session, QCC_STEP, NULL);
        done += status == QCC_OK;
        c->bad += status != QCC_OK && status != QCC_BUSY;
        const qcc_status more[] = { qcc_set_property(c->handles->session, c->name, c->name),
                                    qcc_get_flat(c->handles->session, flat, FLAT),
                                    qcc_get_property(c->handles->session, c->name, &text) };
        for (size_t i = 0; i < sizeof more / sizeof *more; i++)
            c->bad += more[i] != QCC_OK && more[i] != QCC_BUSY;
        if (c->bad)
            break;
        if (status == QCC_BUSY)
            sched_yield();
    }
    return NULL;
}

/* Each call is answered QCC_BUSY or done as if it were alone: what comes out is what so many steps make. */
static void one_context_in_many_hands(void **state)
{
    Host host = { 0 }, alone = { 0 };
    Handles h, other;
    Trainee t, u;
    float got[FLAT], want[FLAT];
    Crowd crowd[CROWD] = { { .name = "a" }, { .name = "b" }, { .name = "c" }, { .name = "d" } };
    pthread_t threads[CROWD];
    (void)state;
    open_handles(&h, &t, &host);
    open_handles(&other, &u, &alone);
    trainee_fill(&t, 0);
    trainee_fill(&u, 0);
    for (int i = 0; i < CROWD; i++) {
        crowd[i].handles = &h;
        assert_int_equal(pthread_create(&threads[i], NULL, press, &crowd[i]), 0);
    }
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(crowd[i].bad, 0);
    }
    for (int i = 0; i < CROWD * EACH_STEPS; i++)
        assert_int_equal(qcc_run(other.session, QCC_STEP, NULL), QCC_OK);
    trainee_flat(&t, got);
    trainee_flat(&u, want);
    assert_memory_equal(got, want, sizeof want);
    qcc_close(h.cx);
    qcc_close(other.cx);
    assert_int_equal(host.blocks, 0);
    assert_int_equal(host.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_train_side_by_side), cmocka_unit_test(a_small_stack_is_enough),
        cmocka_unit_test(one_thread_starts_none),      cmocka_unit_test(the_table_has_every_call),
        cmocka_unit_test(a_child_may_only_let_go),     cmocka_unit_test(callbacks_find_it_busy),
        cmocka_unit_test(callbacks_may_fork),          cmocka_unit_test(another_thread_finds_it_busy),
        cmocka_unit_test(one_context_in_many_hands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
