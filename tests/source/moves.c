/* What the source of moves.qir moves where. */
#include <stdio.h>

#include "moves_made.c"

static uint8_t x[2][6][4], b[2][6][4], y[2][2][4], z[2][6][3], p[2][6][4];
static int32_t arena[MOVES_ARENA_BYTES / 4 + 1];

int main(void)
{
    static const int picked[] = { 3, 0, 3 };
    int wrong = 0;
    for (int i = 0; i < 48; i++) {
        x[i / 24][i / 4 % 6][i % 4] = (uint8_t)(i * 7 + 1);
        b[i / 24][i / 4 % 6][i % 4] = (uint8_t)(i * 5 + 3);
    }
    wrong += moves_run_codes(&x[0][0][0], &b[0][0][0], &y[0][0][0], &z[0][0][0], &p[0][0][0], arena) != 0;
    for (int g = 0; g < 2; g++) {
        for (int i = 0; i < 2 * 4; i++)
            wrong += y[g][i / 4][i % 4] != x[g][1 + 2 * (i / 4)][i % 4];
        for (int i = 0; i < 6 * 3; i++)
            wrong += z[g][i / 3][i % 3] != b[g][i / 3][3 - picked[i % 3]];
        for (int i = 0; i < 6 * 4; i++)
            wrong += p[g][i / 4][i % 4] != b[g][(i / 4 + 3) % 6][i % 4];
    }
    printf("moves: %d elements are wrong\n", wrong);
    return wrong != 0;
}
