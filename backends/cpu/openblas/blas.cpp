#include "backends/cpu/openblas/blas.hpp"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "generated/turnout_config.hpp"

namespace turnout::openblas {
namespace {

void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k, float alpha,
          const float* a, blasint lda, const float* b, blasint ldb, float* c, blasint ldc) {
  TURNOUT_BLAS(cblas_sgemm)
  (CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, 0, c, ldc);
}

void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k, double alpha,
          const double* a, blasint lda, const double* b, blasint ldb, double* c, blasint ldc) {
  TURNOUT_BLAS(cblas_dgemm)
  (CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, 0, c, ldc);
}

// y += alpha op(a) x with a stored as [rows, cols].
void gemv(CBLAS_TRANSPOSE ta, blasint rows, blasint cols, float alpha, const float* a, blasint lda,
          const float* x, blasint incx, float* y, blasint incy) {
  TURNOUT_BLAS(cblas_sgemv)(CblasRowMajor, ta, rows, cols, alpha, a, lda, x, incx, 1, y, incy);
}

void gemv(CBLAS_TRANSPOSE ta, blasint rows, blasint cols, double alpha, const double* a,
          blasint lda, const double* x, blasint incx, double* y, blasint incy) {
  TURNOUT_BLAS(cblas_dgemv)(CblasRowMajor, ta, rows, cols, alpha, a, lda, x, incx, 1, y, incy);
}

blasint narrow(std::int64_t size) { return static_cast<blasint>(size); }

CBLAS_TRANSPOSE flag(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

void use_one_thread() {
  static std::once_flag once;
  std::call_once(once, [] { TURNOUT_BLAS(openblas_set_num_threads)(1); });
}

bool fits_blas(std::int64_t size) { return size <= std::numeric_limits<int>::max(); }

template <typename T>
void Product<T>::run_general() const {
  gemm(flag(trans_a), flag(trans_b), narrow(m), narrow(n), narrow(k), alpha, a, narrow(lda), b,
       narrow(ldb), c, narrow(ldc));
}

// The matrix-vector routines don't overwrite: their beta of 0 would keep a NaN that was there.
template <typename T>
void Product<T>::run_row() const {
  std::fill_n(c, n, T(0));
  const std::int64_t step = trans_a ? lda : 1;
  gemv(flag(!trans_b), narrow(trans_b ? n : k), narrow(trans_b ? k : n), alpha, b, narrow(ldb), a,
       narrow(step), c, 1);
}

template <typename T>
void Product<T>::run_column() const {
  for (std::int64_t i = 0; i < m; ++i) c[i * ldc] = T(0);
  const std::int64_t step = trans_b ? 1 : ldb;
  gemv(flag(trans_a), narrow(trans_a ? k : m), narrow(trans_a ? m : k), alpha, a, narrow(lda), b,
       narrow(step), c, narrow(ldc));
}

template <typename T>
void Product<T>::run() const {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T(0));
  } else if (m == 1) {
    run_row();
  } else if (n == 1) {
    run_column();
  } else {
    run_general();
  }
}

template struct Product<float>;
template struct Product<double>;

}  // namespace turnout::openblas
