/* What is said of a fault. */
#ifndef TESTS_FAULT_ATTACK_WORDS_H
#define TESTS_FAULT_ATTACK_WORDS_H

/* Tries each row of a table in the current folder, which holds what attack_inputs made; how many failed. */
int attack_words(void);

#endif
