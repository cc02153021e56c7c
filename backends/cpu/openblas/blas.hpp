#pragma once

#include <cstdint>

// OpenBLAS, called from inside OpenMP partitions: each call runs on its calling thread alone.
namespace turnout::openblas {

/// Tells OpenBLAS to start no threads of its own. Called by every prepare(); cheap.
void use_one_thread();

/// Row-major c = alpha op(a) op(b), where op(a) is [m,k], op(b) is [k,n], and lda, ldb and ldc are
/// the steps between stored rows. All sizes have to fit an int (see fits_blas).
template <typename T>
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  T alpha = 1;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  T* c = nullptr;
  std::int64_t ldc = 0;

  void run() const;

 private:
  void run_general() const;
  void run_row() const;     ///< m == 1
  void run_column() const;  ///< n == 1
};

bool fits_blas(std::int64_t size);

}  // namespace turnout::openblas
