/* Numbers of cuda.h and cublas_api.h: simcuda/header holds them to these where they are installed. */
#ifndef TESTS_SIMCUDA_CODES_H
#define TESTS_SIMCUDA_CODES_H

/* Numbers of cuda.h that the engine has no word for. */
enum {
    E_NOT_INITIALIZED = 3,
    E_INVALID_DEVICE = 101,
    E_INVALID_IMAGE = 200,
    E_INVALID_CONTEXT = 201,
    E_INVALID_HANDLE = 400,
    E_NO_IMAGE = 209, /* for this device */
    E_NOT_FOUND = 500,
    E_NOT_READY = 600,
    E_ILLEGAL_ADDRESS = 700,
    E_MISALIGNED = 716,
    E_LAUNCH_FAILED = 719,
    E_CAPTURE_UNSUPPORTED = 900,
    E_CAPTURE_INVALIDATED = 901,
    E_CAPTURE_MERGE = 902,
    E_CAPTURE_UNMATCHED = 903,
    E_CAPTURE_UNJOINED = 904,
    E_CAPTURE_ISOLATION = 905,
    E_CAPTURE_IMPLICIT = 906,
    E_CAPTURED_EVENT = 907,
    E_CAPTURE_WRONG_THREAD = 908,
    E_UNKNOWN = 999,
};

/* Numbers of cublas_api.h that the engine has no word for. */
enum { BLAS_NOT_INITIALIZED = 1, BLAS_NO_MEMORY = 3, BLAS_EXECUTION_FAILED = 13, BLAS_INTERNAL = 14 };

#endif
