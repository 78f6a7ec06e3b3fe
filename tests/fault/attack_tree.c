#include "fault/attack_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_PATH = 512 };

static void stop_at(const char *what)
{
    perror(what);
    exit(2);
}

static char *read_bytes(const char *path, size_t n)
{
    char *bytes = malloc(n + 1);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (!bytes || fd < 0 || read(fd, bytes, n) != (ssize_t)n)
        stop_at(path);
    close(fd);
    bytes[n] = 0;
    return bytes;
}

static char *read_target(const char *path, size_t *n)
{
    char *target = calloc(1, LONGEST_PATH);
    const ssize_t got = target ? readlink(path, target, LONGEST_PATH - 1) : -1;
    if (got < 0)
        stop_at(path);
    *n = (size_t)got;
    return target;
}

static void read_folder(Tree *t, const char *folder, const char *below);

static void read_one(Tree *t, const char *folder, const char *below, const char *name)
{
    struct stat st;
    char path[LONGEST_PATH];
    if (t->n == MOST_ENTRIES)
        stop_at("more files than a test may have");
    Entry *e = &t->list[t->n++];
    if (snprintf(e->name, sizeof e->name, "%s%s%s", below, *below ? "/" : "", name) >= (int)sizeof e->name)
        stop_at(name);
    snprintf(path, sizeof path, "%s/%s", folder, e->name);
    if (lstat(path, &st) != 0)
        stop_at(path);
    e->kind = S_ISDIR(st.st_mode) ? 'd' : S_ISLNK(st.st_mode) ? 'l' : 'f';
    e->n = e->kind == 'f' ? (size_t)st.st_size : 0;
    e->bytes = e->kind == 'f' ? read_bytes(path, e->n) : e->kind == 'l' ? read_target(path, &e->n) : NULL;
    if (e->kind == 'd')
        read_folder(t, folder, e->name);
}

static void read_folder(Tree *t, const char *folder, const char *below)
{
    char path[LONGEST_PATH], name[LONGEST_NAME];
    snprintf(name, sizeof name, "%s", below);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    DIR *d = opendir(path);
    if (!d)
        stop_at(path);
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            read_one(t, folder, name, e->d_name);
    closedir(d);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Entry *)a)->name, ((const Entry *)b)->name);
}

void tree_read(Tree *t, const char *folder)
{
    t->n = 0;
    read_folder(t, folder, "");
    qsort(t->list, (size_t)t->n, sizeof *t->list, by_name);
}

void tree_drop(Tree *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->list[i].bytes);
    t->n = 0;
}

static void clear(const char *folder)
{
    char path[LONGEST_PATH];
    Tree t;
    tree_read(&t, folder);
    for (int i = t.n - 1; i >= 0; i--) {
        snprintf(path, sizeof path, "%s/%s", folder, t.list[i].name);
        if ((t.list[i].kind == 'd' ? rmdir(path) : unlink(path)) != 0)
            stop_at(path);
    }
    tree_drop(&t);
}

static void write_one(const Entry *e, const char *path)
{
    if (e->kind == 'd' || e->kind == 'l') {
        if ((e->kind == 'd' ? mkdir(path, 0777) : symlink(e->bytes, path)) != 0)
            stop_at(path);
        return;
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, e->bytes, e->n) != (ssize_t)e->n)
        stop_at(path);
    close(fd);
}

void tree_write(const Tree *t, const char *folder)
{
    char path[LONGEST_PATH];
    clear(folder);
    for (int i = 0; i < t->n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, t->list[i].name);
        write_one(&t->list[i], path);
    }
}

const Entry *tree_find(const Tree *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->list[i].name, name) == 0)
            return &t->list[i];
    return NULL;
}

bool entry_same(const Entry *a, const Entry *b)
{
    return a->kind == b->kind && a->n == b->n && (!a->n || memcmp(a->bytes, b->bytes, a->n) == 0);
}

bool tree_same(const Tree *a, const Tree *b)
{
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = strcmp(a->list[i].name, b->list[i].name) == 0 && entry_same(&a->list[i], &b->list[i]);
    return same;
}

static uint64_t add(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}

uint64_t tree_hash(const Tree *t)
{
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < t->n; i++) {
        const char *name = t->list[i].name, *tail = strstr(name, ".tmp-");
        tail = tail ? tail : strstr(name, "events.out.");
        hash = add(hash, name, tail ? (size_t)(tail - name) + 1 : strlen(name) + 1);
        for (; tail && *tail; tail++)
            hash = isdigit((unsigned char)*tail) ? hash : add(hash, tail, 1);
        hash = add(hash, &t->list[i].kind, 1);
        hash = add(hash, t->list[i].bytes, t->list[i].n);
    }
    return hash;
}
