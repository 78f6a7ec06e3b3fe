/* Where the positions of a resized axis lie in the data, and what the elements around weigh.  All of it in f64 with + - * / alone. */
#ifndef QCC_OPS_SCALAR_RESIZE_H
#define QCC_OPS_SCALAR_RESIZE_H

/* In the order of the attributes. */
typedef enum ResizeCoordinates {
    COORD_HALF_PIXEL,
    COORD_HALF_PIXEL_SYMMETRIC,
    COORD_PYTORCH_HALF_PIXEL,
    COORD_ALIGN_CORNERS,
    COORD_ASYMMETRIC,
    COORD_TF_CROP_AND_RESIZE,
    COORD_TF_HALF_PIXEL_FOR_NN,
} ResizeCoordinates;

typedef enum ResizeNearest {
    NEAREST_ROUND_PREFER_FLOOR,
    NEAREST_ROUND_PREFER_CEIL,
    NEAREST_FLOOR,
    NEAREST_CEIL,
} ResizeNearest;

/* An axis: elements before and after, results per element of the data, and the part of the data that is seen. */
typedef struct ResizeAxis {
    f64 in, out, scale, start, end;
} ResizeAxis;

/* Where result position x lies in the data. */
Q_FN f64 resize_source_f64(ResizeCoordinates coordinates, ResizeAxis a, f64 x)
{
    const f64 width = a.scale * a.in, size = a.end - a.start;
    const int many = a.out > 1;
    switch (coordinates) {
    case COORD_ALIGN_CORNERS:
        return width == 1 ? 0 : x * (a.in - 1) / (width - 1);
    case COORD_ASYMMETRIC:
        return x / a.scale;
    case COORD_TF_CROP_AND_RESIZE:
        return a.start * (a.in - 1) + (many ? x * size * (a.in - 1) / (a.out - 1) : 0.5 * size * (a.in - 1));
    case COORD_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5) / a.scale;
    case COORD_PYTORCH_HALF_PIXEL:
        return many ? (x + 0.5) / a.scale - 0.5 : 0;
    case COORD_HALF_PIXEL_SYMMETRIC:
        return a.in / 2 * (1 - a.out / width) + (x + 0.5) / a.scale - 0.5;
    case COORD_HALF_PIXEL:
        break;
    }
    return (x + 0.5) / a.scale - 0.5;
}

/* The element of n that is there, or the nearest to it. */
Q_FN i64 resize_within_f64(f64 v, i64 n)
{
    return v > 0 ? (v < (f64)(n - 1) ? (i64)v : n - 1) : 0;
}

/* The element of n that the nearest one is. */
Q_FN i64 resize_nearest_f64(ResizeNearest mode, f64 x, i64 n)
{
    const f64 at = mode == NEAREST_FLOOR               ? floor_f64(x)
                   : mode == NEAREST_CEIL              ? ceil_f64(x)
                   : mode == NEAREST_ROUND_PREFER_CEIL ? floor_f64(x + 0.5)
                                                       : ceil_f64(x - 0.5);
    return resize_within_f64(at, n);
}

/* What an element weighs that is d away. */
Q_FN f64 resize_linear_f64(f64 d)
{
    const f64 x = abs_f64(d);
    return x < 1 ? 1 - x : 0;
}

Q_FN f64 resize_cubic_f64(f64 d, f64 a)
{
    const f64 x = abs_f64(d);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

#endif
