// runtime/cuda/cublas.def beside cublasLt.h: each function has the type that it has there, but for enums, which are ints here; and
// so have numbers and structs of cublas.h.
#include <cublasLt.h>
#include <cstddef>
#include <cstdint>
#include <type_traits>

typedef std::remove_pointer_t<cublasLtHandle_t> CublasHandle;
typedef std::remove_pointer_t<cublasLtMatmulDesc_t> CublasProduct;
typedef std::remove_pointer_t<cublasLtMatrixLayout_t> CublasMatrix;
typedef std::remove_pointer_t<cublasLtMatmulPreference_t> CublasWishes;
typedef cublasLtMatmulAlgo_t CublasWay;
typedef cublasLtMatmulHeuristicResult_t CublasChoice;
typedef std::remove_pointer_t<cudaStream_t> CudaStream;

template <class T> using Plain = std::conditional_t<std::is_enum_v<T>, int, T>;

template <class F> struct Flat;
template <class R, class... A> struct Flat<R(A...)> {
    typedef Plain<R> type(Plain<A>...);
};

#define CUBLAS(answer, name, symbol, arguments)                                                                        \
    static_assert(std::is_same_v<Flat<decltype(symbol)>::type, Flat<answer arguments>::type>, #symbol);
#include "runtime/cuda/cublas.def"
