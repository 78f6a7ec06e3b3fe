#include "embed/trainee.h"
int main(void)
{
    return 0;
}
