// runtime/cuda/driver.def beside cuda.h: each function has the type that it has there, but for enums, which are ints here.
#include <cuda.h>
#include <type_traits>

typedef CUdeviceptr CudaAddress;
typedef std::remove_pointer_t<CUcontext> CudaContext;
typedef std::remove_pointer_t<CUmodule> CudaLoaded;
typedef std::remove_pointer_t<CUfunction> CudaFunction;
typedef std::remove_pointer_t<CUstream> CudaStream;
typedef std::remove_pointer_t<CUevent> CudaEvent;
typedef std::remove_pointer_t<CUgraph> CudaGraph;
typedef std::remove_pointer_t<CUgraphExec> CudaGraphExec;

template <class T> using Plain = std::conditional_t<std::is_enum_v<T>, int, T>;

template <class F> struct Flat;
template <class R, class... A> struct Flat<R(A...)> {
    typedef Plain<R> type(Plain<A>...);
};

#define DRIVER(name, symbol, arguments)                                                                                \
    static_assert(std::is_same_v<Flat<decltype(symbol)>::type, Flat<int arguments>::type>, #symbol);
#include "runtime/cuda/driver.def"
