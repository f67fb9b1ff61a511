// Matrix products by cuBLASLt, which is opened at run time: programs start without it.
#include "norma/core/error.h"
#include "norma/core/logging.h"
#include "norma/cuda/runtime/driver.h"
#include "norma/cuda/runtime/matmul_library.h"
#include "norma/ops/matmul_precision.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>

namespace norma::cuda_kernels::driver {

namespace {

/// For the algorithms that cut the sum into parts; what NVIDIA recommends for Hopper.
constexpr std::size_t workspace_bytes = 32u << 20;

/// The functions of the library that are used here.
struct Library {
  void* handle = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_product = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;

  Library() {
    const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) handle = dlopen("libcublasLt.so", RTLD_NOW | RTLD_LOCAL);
    const bool complete = handle != nullptr && find(create, "cublasLtCreate") &&
                          find(matmul, "cublasLtMatmul") &&
                          find(heuristic, "cublasLtMatmulAlgoGetHeuristic") &&
                          find(create_product, "cublasLtMatmulDescCreate") &&
                          find(destroy_product, "cublasLtMatmulDescDestroy") &&
                          find(set_product, "cublasLtMatmulDescSetAttribute") &&
                          find(create_layout, "cublasLtMatrixLayoutCreate") &&
                          find(destroy_layout, "cublasLtMatrixLayoutDestroy") &&
                          find(set_layout, "cublasLtMatrixLayoutSetAttribute") &&
                          find(create_preference, "cublasLtMatmulPreferenceCreate") &&
                          find(destroy_preference, "cublasLtMatmulPreferenceDestroy") &&
                          find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    if (!complete) {
      handle = nullptr;
      logger().warn(
          "{} was not found: matrix products run on norma's own kernel, which is many times "
          "slower; install cuBLAS, or add its folder to LD_LIBRARY_PATH",
          name);
    }
  }

 private:
  template <class F>
  bool find(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(handle, symbol));
    return function != nullptr;
  }
};

void succeed(cublasStatus_t status, const char* what) {
  check<DeviceError>(status == CUBLAS_STATUS_SUCCESS, "matmul",
                     "cuBLASLt must succeed; got status {} from {}", static_cast<int>(status),
                     what);
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return CUDA_R_64F;
    case DType::float16:
      return CUDA_R_16F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(DType dtype) {
  if (dtype == DType::float64) return CUBLAS_COMPUTE_64F;
  if (dtype == DType::float32 && float32_matmul_precision() == Float32MatmulPrecision::high)
    return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

/// The largest power of two up to 256 that divides all addresses and distances of a matrix.
std::int64_t alignment(const void* data, std::int64_t ld, std::int64_t batch, DType dtype) {
  const auto size = static_cast<std::uintptr_t>(element_size(dtype));
  const std::uintptr_t all = reinterpret_cast<std::uintptr_t>(data) |
                             static_cast<std::uintptr_t>(ld) * size |
                             static_cast<std::uintptr_t>(batch) * size | 256u;
  return static_cast<std::int64_t>(all & (~all + 1));
}

/// All that the choice of an algorithm depends on.
using Key = std::array<std::int64_t, 19>;

class CublasLt {
 public:
  static CublasLt& instance() {
    static CublasLt* const only = new CublasLt;  // never destroyed: the driver may go first
    return *only;
  }

  bool multiply(const MatmulCall& call, void* stream) {
    if (library_.handle == nullptr) return false;
    const std::lock_guard lock(mutex_);
    const Plan* const plan = plan_for(call);
    if (plan == nullptr) return false;
    if (call.bias != nullptr)
      succeed(library_.set_product(plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call.bias,
                                   sizeof(call.bias)),
              "setting the bias");
    const double alpha = call.alpha, beta = call.beta;
    const auto alpha32 = static_cast<float>(alpha), beta32 = static_cast<float>(beta);
    const bool wide = call.dtype == DType::float64;
    const void* const pa = wide ? static_cast<const void*>(&alpha) : &alpha32;
    const void* const pb = wide ? static_cast<const void*>(&beta) : &beta32;
    // Column-major, c^T = op(b)^T op(a)^T: the same memory, the factors exchanged.
    succeed(library_.matmul(handle_, plan->product, pa, call.b.data, plan->b, call.a.data, plan->a,
                            pb, call.c, plan->c, call.c, plan->c, &plan->algorithm, workspace_,
                            workspace_bytes, static_cast<cudaStream_t>(stream)),
            "cublasLtMatmul");
    return true;
  }

 private:
  /// A product that was prepared; without an algorithm where the library has none.
  struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
    bool found = false;
  };

  CublasLt() {
    if (library_.handle == nullptr) return;
    succeed(library_.create(&handle_), "cublasLtCreate");
    workspace_ = allocate(workspace_bytes);
    check<OutOfMemoryError>(workspace_ != nullptr, "matmul",
                            "the device must have {} bytes for cuBLASLt; got none",
                            workspace_bytes);
  }

  const Plan* plan_for(const MatmulCall& call) {
    const Key key{static_cast<std::int64_t>(call.dtype),
                  static_cast<std::int64_t>(compute_type(call.dtype)),
                  call.batch,
                  call.m,
                  call.n,
                  call.k,
                  call.a.ld,
                  call.a.batch,
                  call.a.transposed,
                  call.b.ld,
                  call.b.batch,
                  call.b.transposed,
                  call.c_ld,
                  call.c_batch,
                  call.bias != nullptr,
                  call.beta == 0.0,
                  alignment(call.a.data, call.a.ld, call.a.batch, call.dtype),
                  alignment(call.b.data, call.b.ld, call.b.batch, call.dtype),
                  alignment(call.c, call.c_ld, call.c_batch, call.dtype)};
    auto [at, is_new] = plans_.try_emplace(key);
    if (is_new) prepare(call, key, at->second);
    return at->second.found ? &at->second : nullptr;
  }

  cublasLtMatrixLayout_t layout(const MatmulCall& call, std::int64_t rows, std::int64_t columns,
                                std::int64_t ld, std::int64_t distance) {
    cublasLtMatrixLayout_t made = nullptr;
    // Column-major: `columns` are adjacent in our memory.
    succeed(
        library_.create_layout(&made, data_type(call.dtype), static_cast<std::uint64_t>(columns),
                               static_cast<std::uint64_t>(rows), ld),
        "cublasLtMatrixLayoutCreate");
    const auto batch = static_cast<std::int32_t>(call.batch);
    succeed(library_.set_layout(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)),
            "setting the batch");
    succeed(library_.set_layout(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &distance,
                                sizeof(distance)),
            "setting the distance of matrices");
    return made;
  }

  void prepare(const MatmulCall& call, const Key& key, Plan& plan) {
    const cudaDataType_t scale = call.dtype == DType::float64 ? CUDA_R_64F : CUDA_R_32F;
    succeed(library_.create_product(&plan.product, compute_type(call.dtype), scale),
            "cublasLtMatmulDescCreate");
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      succeed(library_.set_product(plan.product, attribute, &value, sizeof(value)),
              "cublasLtMatmulDescSetAttribute");
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, call.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, call.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (call.bias != nullptr) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
    }
    const auto [a_rows, a_columns] = sides(call.m, call.k, call.a.transposed);
    const auto [b_rows, b_columns] = sides(call.k, call.n, call.b.transposed);
    plan.a = layout(call, a_rows, a_columns, call.a.ld, call.a.batch);
    plan.b = layout(call, b_rows, b_columns, call.b.ld, call.b.batch);
    plan.c = layout(call, call.m, call.n, call.c_ld, call.c_batch);

    cublasLtMatmulPreference_t preference = nullptr;
    succeed(library_.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      succeed(library_.set_preference(preference, attribute, &value, sizeof(value)),
              "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(key[17]));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(key[16]));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(key[18]));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(key[18]));
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status = library_.heuristic(handle_, plan.product, plan.b, plan.a, plan.c,
                                                     plan.c, preference, 1, &result, &found);
    library_.destroy_preference(preference);
    plan.found = status == CUBLAS_STATUS_SUCCESS && found > 0;
    plan.algorithm = result.algo;
  }

  static std::pair<std::int64_t, std::int64_t> sides(std::int64_t rows, std::int64_t columns,
                                                     bool transposed) {
    return transposed ? std::pair{columns, rows} : std::pair{rows, columns};
  }

  Library library_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::mutex mutex_;
  std::map<Key, Plan> plans_;
};

}  // namespace

bool library_matmul(const MatmulCall& call, void* stream) {
  if (!is_floating_point(call.dtype)) return false;
  return CublasLt::instance().multiply(call, stream);
}

}  // namespace norma::cuda_kernels::driver
