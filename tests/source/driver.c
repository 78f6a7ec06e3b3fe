/* A generated source beside what `qcc predict` gave: the same bits, for every sample.
 * usage: driver X.csv Y.npy; SOURCE, RUN, X, Y and ARENA are defined where it is compiled, and RESULT where the result is no
 * floats. */
#include <stdio.h>
#include <string.h>

#include SOURCE

#ifndef RESULT
#define RESULT float
#endif

static float x[X];
static RESULT y[Y], want[Y];
static int32_t arena[ARENA / 4 + 1];

int main(int argc, char **argv)
{
    FILE *data = argc > 2 ? fopen(argv[1], "r") : NULL, *wanted = argc > 2 ? fopen(argv[2], "rb") : NULL;
    int n = 0, c, more = 1;
    if (!data || !wanted)
        return 2;
    while ((c = fgetc(wanted)) != '\n' && c != EOF) /* the head of a .npy */
        ;
    while (more) {
        for (int i = 0; i < X && more; i++)
            more = fscanf(data, i ? ",%f" : "%f", &x[i]) == 1;
        if (!more)
            break;
        if (fread(want, sizeof want, 1, wanted) != 1 || RUN(x, y, arena) != 0)
            return 2;
        for (int i = 0; i < Y; i++)
            if (memcmp(&y[i], &want[i], sizeof y[i]) != 0) {
                printf("sample %d: element %d is %.9g, not %.9g\n", n, i, (double)y[i], (double)want[i]);
                return 1;
            }
        n++;
    }
    fclose(data);
    fclose(wanted);
    printf("%d samples have the same bits\n", n);
    return n == 0 || RUN(NULL, y, arena) != 1;
}
