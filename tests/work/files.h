/* Files beside a model in which there is many of one thing. */
#ifndef TESTS_WORK_FILES_H
#define TESTS_WORK_FILES_H

#include "onnx_bytes.h"

/* Writes a file and frees its bytes. */
void write_file(const char *path, Bytes b);

/* Writes into the folder at hand: c.cfg and l.cfg with n lines of options and limits, t.amp with n lines of classes,
 * x.npy f32[2], s.npy f32[2,2], n.npy f32[2,n], wide.csv with n columns, w.safetensors with n tensors, a.npz with n arrays, and the
 * folder ckpt with n files that have the names of checkpoints. */
void write_files(int n);

#endif
