/* f32: the error function. */
#ifndef QCC_OPS_SCALAR_ERF_H
#define QCC_OPS_SCALAR_ERF_H

/* Below 0.875 an odd polynomial, error 2^-29.9; above it 1 - exp(t(a)) with t = log(erfc(a)), error 2^-34; 1 from
 * 3.95 on. */
Q_FN f32 erf_f32(f32 x)
{
    const f32 a = abs_f32(x), z = a * a, c = a > 3.95f ? 3.95f : a;
    f32 p = 8.46639014e-05f;
    p = fma_f32(p, z, -0.000816304877f);
    p = fma_f32(p, z, 0.00520239631f);
    p = fma_f32(p, z, -0.0268596187f);
    p = fma_f32(p, z, 0.112836882f);
    p = fma_f32(p, z, -0.376126319f);
    p = fma_f32(p, z, 0.128379166f);
    f32 t = -1.02898059e-06f;
    t = fma_f32(t, c, -7.30668989e-06f);
    t = fma_f32(t, c, 0.000355326047f);
    t = fma_f32(t, c, -0.00391691132f);
    t = fma_f32(t, c, 0.0246197097f);
    t = fma_f32(t, c, -0.10766384f);
    t = fma_f32(t, c, -0.633812606f);
    t = fma_f32(t, c, -1.12931764f);
    t = fma_f32(t, c, 0.000138789168f);
    const f32 near = fma_f32(p, a, a), far = 1 - exp_f32(t);
    return copysign_f32(a < 0.875f ? near : far, x);
}

#endif
