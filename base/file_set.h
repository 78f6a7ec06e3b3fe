/* What a command reads and what it writes, so that nothing it writes takes the place of what it reads.
 *
 * A file that is there is known by device and inode, one that is not there yet by its folder and its name: another
 * spelling, a link and a second name of a file are that file.  Whoever opens an input tells the set of its Diag;
 * whoever is about to make a file, to name it, or to write to one that is there asks it first. */
#ifndef BASE_FILE_SET_H
#define BASE_FILE_SET_H

#include "base/diag.h"
#include "base/map.h"

/* What a path stands for. */
typedef struct FilePlace {
    uint64_t device, inode; /* of the file, or of the folder that it would lie in; 0: not even that is there */
    const char *name;       /* in that folder; null: the file is there */
    bool is_folder;
} FilePlace;

typedef struct FileUse {
    const char *path;    /* as it was written */
    const char *what;    /* is read: "what --init reads"; is written: "--log", null: nothing to name */
    const char *another; /* is written: what another path stands behind on a command line: "--log "; may be null */
    bool is_stream;      /* is written: a descriptor that has a file, whose name is not known */
    bool takes_folder;   /* is written: a folder that is there stays, with all that it holds */
    FilePlace place;
} FileUse;

typedef struct FileSet {
    Arena *arena;
    const struct FileSet *outer; /* whose reads count too; null: none */
    FileUse *reads, *writes;     /* the writes are those that the command line names */
    size_t n_reads, n_writes, cap_reads, cap_writes;
    Map by_place; /* of the reads */
    Map made;     /* places of files that were written: reading them again is no reading */
} FileSet;

/* An empty set in an arena. */
void file_set_open(FileSet *s, Arena *arena);

/* An empty set for one call, over one that stays as it is: what the call reads and writes is forgotten with its arena. */
void file_set_open_over(FileSet *s, Arena *arena, const FileSet *outer);

/* A file that is going to be read, by its path: nothing where there is none.  What is said here counts more than what
 * whoever opens the file says. */
void file_set_reads(FileSet *s, const char *path, const char *what);

/* The same for a descriptor that is open. */
void file_set_reads_open(FileSet *s, const char *path, const char *what, int fd);

/* A destination, once all that is known to be read was said; USAGE where it is one of those, or another destination. */
Status file_set_writes(FileSet *s, Diag *d, const FileUse *use);

/* The same for a descriptor that is written to. */
Status file_set_writes_open(FileSet *s, Diag *d, const FileUse *use, int fd);

/* Asks of all destinations again, now that more is known to be read. */
Status file_set_check(const FileSet *s, Diag *d);

/* Adds what another set reads. */
void file_set_join(FileSet *s, const FileSet *other);

/* Tells the set of `d`, if it has one, that an open file is read. */
void file_is_read(Diag *d, const char *path, const char *what, int fd);

/* Tells it that an open file was written and has its name. */
void file_is_made(Diag *d, int fd);

/* USAGE where something that is read has this name, so that it must not be written. */
Status file_may_write(Diag *d, const char *path);

#endif
