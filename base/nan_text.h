/* NaN in what printf printed: C prints the sign bit of one, which means nothing and differs from machine to machine. */
#ifndef BASE_NAN_TEXT_H
#define BASE_NAN_TEXT_H

#include <stddef.h>

/* Turns each number -nan of a text, made by `format`, into nan; words that merely hold these signs stay.  Returns the
 * new length of the text, which stays terminated. */
size_t nan_unsign(const char *format, char *text, size_t n);

#endif
