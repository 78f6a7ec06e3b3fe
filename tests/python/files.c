/* usage: files FOLDER : writes one of each: a checkpoint, an archive of arrays, a zip beyond 4 GiB, an event file. */
#include "support/checkpoints.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/log/board.h"
#include "runtime/write/npz.h"
#include "runtime/write/zip.h"

static const char *folder;

typedef struct Position {
    int fd;
    uint64_t at;
} Position;

static Status into_file(void *user, const void *bytes, size_t n)
{
    Position *p = user;
    assert_int_equal(pwrite(p->fd, bytes, n, (off_t)p->at), n);
    p->at += n;
    return OK;
}

static Position begin(Context *c, const char *name, uint64_t at)
{
    const int fd = open(arena_printf(&c->arena, "%s/%s", folder, name), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    return (Position){ fd, at };
}

static Tensor *counting(Context *c, DType dtype, int rank)
{
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, dtype, rank, (const int64_t[]){ 2, 3 }));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, (double)i + 0.5);
    return t;
}

static Status put_word(void *user, Sink to)
{
    return to.put(to.user, user, strlen(user));
}

static Status write_arrays(Context *c)
{
    ZipWriter z;
    const NamedTensor arrays[] = { { "a.b", counting(c, F32, 2) }, { "\xc3\xa9", counting(c, F16, 1) } };
    Position near = begin(c, "arrays.npz", 0), far = begin(c, "far.zip", 5000000000u);
    TRY(npz_write(&c->arena, (Sink){ into_file, &near }, arrays, COUNT(arrays)));
    zip_begin(&z, &c->arena, (Sink){ into_file, &far }, far.at);
    TRY(zip_add(&z, "far", put_word, "away"));
    TRY(zip_end(&z));
    close(near.fd);
    close(far.fd);
    return OK;
}

static Status write_events(Context *c)
{
    Board b;
    TRY(board_open(&b, &c->memory, &c->diag, folder, 1700000000, -1));
    TRY(board_scalars(&b, 1700000001, 1, &(BoardScalar){ "loss", 0.5f }, 1));
    assert_int_equal(rename(b.path, arena_printf(&c->arena, "%s/events", folder)), 0);
    board_close(&b);
    return OK;
}

static Status all(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    TRY(open_target(c, &t, arena_printf(&c->arena, "%s/run", folder), run_a, 0, NULL));
    TRY(save_at(c, &t, 500, 10, true));
    checkpoint_close(&t);
    TRY(write_arrays(c));
    return write_events(c);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    folder = argv[1];
    with_context(all);
    return 0;
}
