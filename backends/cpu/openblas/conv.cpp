// Convolution as products: for one image and one group
//
//   y[m, p] = sum over (c, tap) of w[m, (c, tap)] * columns[(c, tap), p]
//
// where `columns` are the inputs under the window at position p. A kernel of size 1 needs no
// columns: they are x itself. Otherwise a block of positions at a time is unfolded into workspace
// (im2col), multiplied, and finished (bias, residual, activation) before the next one.
#include "ops/conv.hpp"

#include "backends/cpu/openblas/blas.hpp"
#include "backends/cpu/openblas/epilogue.hpp"
#include "backends/cpu/openblas/im2col.hpp"
#include "backends/cpu/openblas/kernels.hpp"
#include "backends/cpu/threads.hpp"

namespace turnout::openblas {
namespace {

constexpr std::int64_t kUnit = 16;
constexpr std::int64_t kColumnBytes = 768 * 1024;  ///< of one block of columns: fits a core's L2
constexpr std::int64_t kLeastBlock = 64;           ///< positions GEMM needs to be fast

/// How the work on one image and group is cut.
struct Blocks {
  std::int64_t position_parts = 1, row_parts = 1;
};

Blocks cut_group(const ConvDims& d, int threads, std::size_t element_bytes) {
  const std::int64_t positions = d.window.out_size();
  const std::int64_t depth = d.group_in() * d.window.kernel_size();
  const std::int64_t block =
      std::max(kLeastBlock, kColumnBytes / static_cast<std::int64_t>(element_bytes) /
                                std::max<std::int64_t>(depth, 1));
  Blocks blocks;
  blocks.position_parts = (positions + block - 1) / block;
  const std::int64_t images = d.batch * d.groups;
  const auto items = [&] { return images * blocks.position_parts * blocks.row_parts; };
  if (threads <= 1 || (images >= threads && images % threads == 0)) return blocks;
  // As many parts as it takes for all threads to get the same share.
  const std::int64_t widest = positions / kLeastBlock;
  const std::int64_t rounded = (blocks.position_parts + threads - 1) / threads * threads;
  if (rounded <= widest) {
    blocks.position_parts = rounded;
  } else if (items() < threads || items() % threads != 0) {
    blocks.row_parts = std::min<std::int64_t>(threads, (d.group_out() + kUnit - 1) / kUnit);
  }
  return blocks;
}

template <typename T>
class ConvKernel final : public PreparedKernel {
 public:
  explicit ConvKernel(const PrepareContext& context)
      : dims_(conv_dims(context.info)),
        activation_(fused_activation(context.info)),
        threads_(cpu::useful_threads(cost_of(context.info), context.threads)),
        blocks_(cut_group(dims_, threads_, sizeof(T))) {
    const std::int64_t positions = dims_.window.out_size();
    const std::int64_t items =
        dims_.batch * dims_.groups * blocks_.position_parts * blocks_.row_parts;
    threads_ = static_cast<int>(std::clamp<std::int64_t>(items, 1, threads_));
    depth_ = dims_.group_in() * dims_.window.kernel_size();
    if (dims_.window.pointwise()) return;
    const std::int64_t widest =
        ((positions + kUnit - 1) / kUnit + blocks_.position_parts - 1) / blocks_.position_parts;
    constexpr std::int64_t kLine = 64 / sizeof(T);
    column_elements_ = (depth_ * widest * kUnit + kLine - 1) / kLine * kLine;
  }

  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(column_elements_ * threads_) * sizeof(T);
  }
  std::string implementation() const override {
    return dims_.window.pointwise() ? "gemm:pointwise" : "gemm:im2col";
  }

  void run(const KernelArgs& args, Stream&) const override {
    const Operands in{args.input<T>(0), args.input<T>(1),  args.input<T>(2),
                      args.input<T>(3), args.output<T>(0), static_cast<T*>(args.workspace())};
    const std::int64_t per_group = blocks_.position_parts * blocks_.row_parts;
    for_each_item(dims_.batch * dims_.groups * per_group, threads_,
                  [&](std::int64_t item, int thread) {
                    const std::int64_t part = item % per_group;
                    run_block(in, item / per_group, part / blocks_.row_parts,
                              part % blocks_.row_parts, thread);
                  });
  }

 private:
  struct Operands {
    const T *x, *w, *bias, *residual;
    T *y, *workspace;
  };

  /// `plane`: image * groups + group, which is also the order of the groups' channels in memory.
  void run_block(const Operands& in, std::int64_t plane, std::int64_t position_part,
                 std::int64_t row_part, int thread) const {
    const std::int64_t positions = dims_.window.out_size();
    const Part block = part_of(positions, blocks_.position_parts, position_part, kUnit);
    const Part rows = part_of(dims_.group_out(), blocks_.row_parts, row_part, kUnit);
    if (block.size() == 0 || rows.size() == 0) return;
    const T* x = in.x + plane * dims_.group_in() * dims_.window.in_size();
    const std::int64_t first_row = plane % dims_.groups * dims_.group_out() + rows.begin;

    Product<T> product{rows.size(), block.size(), depth_};
    product.a = in.w + first_row * depth_;
    product.lda = depth_;
    if (dims_.window.pointwise()) {
      product.b = x + block.begin;
      product.ldb = positions;
    } else {
      T* columns = in.workspace + thread * column_elements_;
      im2col(x, dims_.group_in(), dims_.window, block, columns);
      product.b = columns;
      product.ldb = block.size();
    }
    const std::int64_t offset = (plane * dims_.group_out() + rows.begin) * positions + block.begin;
    product.c = in.y + offset;
    product.ldc = positions;
    product.run();

    EpilogueBlock<T> epilogue{product.c, rows.size(), block.size(), positions};
    if (in.bias != nullptr) {
      epilogue.bias = in.bias + first_row;
      epilogue.bias_row_step = 1;
    }
    if (in.residual != nullptr) epilogue.residual = in.residual + offset;
    run_epilogue(activation_, epilogue);
  }

  ConvDims dims_;
  FusedActivation activation_;
  int threads_;
  Blocks blocks_;
  std::int64_t depth_ = 0;
  std::int64_t column_elements_ = 0;  ///< of one thread's block
};

Acceptance accept(const NodeInfo& info) {
  const ConvDims d = conv_dims(info);
  if (d.depthwise()) return Acceptance::no("depthwise: as a product it would be one row by group");
  const std::int64_t depth = d.group_in() * d.window.kernel_size();
  if (!fits_blas(depth) || !fits_blas(d.window.out_size()) || !fits_blas(d.out_channels)) {
    return Acceptance::no("dimensions over 2^31 - 1");
  }
  return Acceptance::yes();
}

template <typename T>
std::unique_ptr<PreparedKernel> prepare(const PrepareContext& context) {
  return std::make_unique<ConvKernel<T>>(context);
}

}  // namespace

void register_conv(KernelRegistry& registry) {
  add_kernel(registry, "conv", {accept, prepare<float>, prepare<double>});
}

}  // namespace turnout::openblas
