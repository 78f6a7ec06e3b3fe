#include "work/files.h"

#include <sys/stat.h>
#include <zlib.h>

void write_file(const char *path, Bytes b)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(b.p, 1, b.n, f) != b.n || fclose(f) != 0)
        abort();
    free(b.p);
}

static void say(Bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(Bytes *b, const char *format, ...)
{
    char text[200];
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(b, text, (size_t)n);
}

static Bytes array(int rows, int columns)
{
    Bytes b = { 0 };
    char shape[100], head[128];
    if (columns)
        snprintf(shape, sizeof shape, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, columns);
    else
        snprintf(shape, sizeof shape, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", rows);
    snprintf(head, sizeof head, "%-117s", shape);
    put(&b, "\x93NUMPY\x01\0\x76\0", 10);
    put(&b, head, 117);
    put(&b, "\n", 1);
    for (int i = 0; i < rows * (columns ? columns : 1); i++)
        put(&b, &(float){ (float)i / 8 }, sizeof(float));
    return b;
}

static void little(Bytes *b, uint64_t v, int n)
{
    for (int i = 0; i < n; i++, v >>= 8)
        put(b, &(uint8_t){ (uint8_t)v }, 1);
}

/* One entry of an archive that is stored as it is: the part that both of its heads have. */
static void entry(Bytes *zip, const char *name, const Bytes *data)
{
    little(zip, 20, 2);
    little(zip, 0, 8);
    little(zip, crc32(0, data->p, (unsigned)data->n), 4);
    little(zip, data->n, 4);
    little(zip, data->n, 4);
    little(zip, strlen(name), 2);
    little(zip, 0, 2);
}

static Bytes archive(int n)
{
    Bytes zip = { 0 }, list = { 0 };
    for (int i = 0; i < n; i++) {
        char name[40];
        Bytes data = array(2, 0);
        snprintf(name, sizeof name, "a%d.npy", i);
        const size_t at = zip.n;
        put(&zip, "PK\3\4", 4);
        entry(&zip, name, &data);
        put(&zip, name, strlen(name));
        put(&zip, data.p, data.n);
        put(&list, "PK\1\2\24\0", 6);
        entry(&list, name, &data);
        little(&list, 0, 10);
        little(&list, at, 4);
        put(&list, name, strlen(name));
        free(data.p);
    }
    const size_t start = zip.n;
    put(&zip, list.p, list.n);
    put(&zip, "PK\5\6\0\0\0\0", 8);
    little(&zip, (uint64_t)n, 2);
    little(&zip, (uint64_t)n, 2);
    little(&zip, list.n, 4);
    little(&zip, start, 4);
    little(&zip, 0, 2);
    free(list.p);
    return zip;
}

static Bytes tensors(int n)
{
    Bytes head = { 0 }, file = { 0 };
    say(&head, "{");
    for (int i = 0; i < n; i++)
        say(&head, "%s\"w%d\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[%d,%d]}", i ? "," : "", i, 8 * i,
            8 * i + 8);
    say(&head, "}");
    while (head.n % 8)
        say(&head, " ");
    little(&file, head.n, 8);
    put(&file, head.p, head.n);
    for (int i = 0; i < n; i++)
        put(&file, "\0\0\200?\0\0\0@", 8);
    free(head.p);
    return file;
}

static void write_lines(const char *path, int n, const char *first, const char *line)
{
    Bytes b = { 0 };
    say(&b, "%s", first);
    for (int i = 0; i < n; i++)
        say(&b, "%s\n", line);
    write_file(path, b);
}

void write_files(int n)
{
    Bytes csv = { 0 };
    write_lines("c.cfg", n, "", "seed = 1");
    write_lines("l.cfg", n, "", "nodes=1000000");
    write_lines("t.amp", n, "", "op:Tanh fp16=F bf16=F wide=- reason=-");
    write_file("x.npy", array(2, 0));
    write_file("s.npy", array(2, 2));
    write_file("n.npy", array(2, n));
    for (int row = 0; row < 4; row++)
        for (int i = 0; i < n; i++)
            say(&csv, "%d.5%c", i % 10, i + 1 < n ? ',' : '\n');
    write_file("wide.csv", csv);
    write_file("w.safetensors", tensors(n));
    write_file("a.npz", archive(n));
    mkdir("ckpt", 0700);
    for (int i = 1; i <= n; i++) {
        char name[60];
        snprintf(name, sizeof name, "ckpt/step-%08d.safetensors", i);
        write_file(name, tensors(1));
    }
}
