/* The calls that change what a folder holds, as a table, so that tests can record, refuse and cut them.  Each answers
 * -1 and sets errno where it fails. */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Disk Disk;
struct Disk {
    void *user;
    int (*create)(const Disk *d, const char *path); /* a new file, to write and read; EEXIST when there is something */
    int (*open)(const Disk *d, const char *path);   /* to read */
    int (*reserve)(const Disk *d, int fd, uint64_t bytes); /* room for them; 0 where the file system cannot promise */
    ssize_t (*write)(const Disk *d, int fd, const void *bytes, size_t n, uint64_t offset);
    ssize_t (*read)(const Disk *d, int fd, void *bytes, size_t n, uint64_t offset);
    int (*sync)(const Disk *d, int fd); /* bytes reach the disk, and leave the cache */
    int (*close)(const Disk *d, int fd);
    int (*rename)(const Disk *d, const char *from, const char *to, bool replace); /* EEXIST unless replace */
    int (*remove)(const Disk *d, const char *path);
    int (*point)(const Disk *d, const char *target, const char *path); /* a symbolic link */
    int (*make_folder)(const Disk *d, const char *path);
    int (*sync_folder)(const Disk *d, const char *path);
};

/* The calls of the system. */
extern const Disk disk_real;

#endif
