#include <array>
#include <atomic>
#include <thread>

#include "backends/cpu/onednn/pack.hpp"
#include "backends/cpu/onednn/recipe.hpp"
#include "backends/cpu/threads.hpp"

namespace turnout::onednn {
namespace {

void check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) {
    fail(ErrorCode::internal, "oneDNN: {} failed with status {}", what, static_cast<int>(status));
  }
}

/// Argument sets of one kernel. A dnnl memory object holds an address, so threads can't share one;
/// making them in run() would allocate. A run claims a set by its flag instead, and waits in the
/// rare case that kSlots runs of the same kernel are under way.
class ArgumentSets {
 public:
  static constexpr int kSlots = 8;

  struct Set {
    std::atomic_flag taken = ATOMIC_FLAG_INIT;
    dnnl::stream stream;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  void add(int argument, const Desc& desc, void* address) {
    for (Set& set : sets_) {
      set.memories.emplace_back(desc, engine(), address);
      set.arguments.push_back({argument, set.memories.back().get()});
    }
  }

  void open() {
    for (Set& set : sets_) set.stream = dnnl::stream(engine());
  }

  class Claim {
   public:
    explicit Claim(ArgumentSets& sets) : set_(&sets.claim()) {}
    ~Claim() { set_->taken.clear(std::memory_order_release); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    Set* operator->() const { return set_; }

   private:
    Set* set_;
  };

 private:
  Set& claim() {
    for (;;) {
      for (Set& set : sets_) {
        if (!set.taken.test_and_set(std::memory_order_acquire)) return set;
      }
      std::this_thread::yield();
    }
  }

  std::array<Set, kSlots> sets_;
};

class PrimitiveKernel final : public PreparedKernel {
 public:
  PrimitiveKernel(Recipe recipe, int threads)
      : recipe_(std::move(recipe)),
        primitive_(recipe_.descriptor.get()),
        threads_(threads),
        implementation_(recipe_.descriptor.impl_info_str()) {
    sets_.open();
    for (const Recipe::Packing& packing : recipe_.packings) {
      packed_.push_back(pack_constant(packing));
    }
    bind();
    const Desc scratch = recipe_.descriptor.query_md(dnnl::query::scratchpad_md);
    if (!scratch.is_zero()) workspace_bytes_ = scratch.get_size();
    if (workspace_bytes_ > 0) {
      slots_.push_back({Slot::Kind::workspace, 0});
      sets_.add(DNNL_ARG_SCRATCHPAD, scratch, nullptr);
    }
  }

  void run(const KernelArgs& args, Stream&) const override {
    cpu::use_threads(threads_);
    const ArgumentSets::Claim set(sets_);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].kind == Slot::Kind::fixed) continue;
      check(dnnl_memory_set_data_handle(set->arguments[i].memory, address(slots_[i], args)),
            "dnnl_memory_set_data_handle");
    }
    check(dnnl_primitive_execute(primitive_.get(), set->stream.get(),
                                 static_cast<int>(set->arguments.size()), set->arguments.data()),
          implementation_.c_str());
  }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  LayoutPtr input_layout(int i) const override { return layout_at(input_layouts_, i); }
  LayoutPtr output_layout(int i) const override { return layout_at(output_layouts_, i); }
  bool packs_input(int i) const override {
    for (const Recipe::Packing& packing : recipe_.packings) {
      if (packing.input == i) return true;
    }
    return false;
  }
  std::size_t packed_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& packed : packed_) bytes += packed->bytes();
    return bytes;
  }
  std::string implementation() const override { return implementation_; }

 private:
  /// Where the address of an argument comes from.
  struct Slot {
    enum class Kind { input, output, workspace, fixed } kind;
    int index;
  };

  static LayoutPtr layout_at(const std::vector<LayoutPtr>& layouts, int i) {
    const auto at = static_cast<std::size_t>(i);
    return at < layouts.size() ? layouts[at] : nullptr;
  }

  static void set_layout(std::vector<LayoutPtr>& layouts, int i, LayoutPtr layout) {
    const auto at = static_cast<std::size_t>(i);
    if (layouts.size() <= at) layouts.resize(at + 1);
    layouts[at] = std::move(layout);
  }

  void bind() {
    using From = Recipe::From;
    for (const Recipe::Binding& binding : recipe_.bindings) {
      const int i = binding.index;
      void* fixed = nullptr;
      Slot::Kind kind = Slot::Kind::input;
      if (binding.from == From::packed) {
        fixed = packed_[static_cast<std::size_t>(i)]->address();
        kind = Slot::Kind::fixed;
      } else if (binding.from == From::output) {
        kind = Slot::Kind::output;
        set_layout(output_layouts_, i, binding.layout);
      } else {
        set_layout(input_layouts_, i, binding.layout);
      }
      slots_.push_back({kind, i});
      sets_.add(binding.argument, binding.desc, fixed);
    }
  }

  static void* address(const Slot& slot, const KernelArgs& args) {
    if (slot.kind == Slot::Kind::workspace) return args.workspace();
    if (slot.kind == Slot::Kind::output) return args.output<std::byte>(slot.index);
    return const_cast<std::byte*>(args.input<std::byte>(slot.index));
  }

  Recipe recipe_;
  dnnl::primitive primitive_;
  int threads_;
  std::string implementation_;
  std::vector<std::shared_ptr<Buffer>> packed_;
  std::vector<LayoutPtr> input_layouts_, output_layouts_;
  std::vector<Slot> slots_;
  std::size_t workspace_bytes_ = 0;
  mutable ArgumentSets sets_;
};

}  // namespace

std::unique_ptr<PreparedKernel> make_kernel(Recipe recipe, int threads) {
  return std::make_unique<PrimitiveKernel>(std::move(recipe), threads);
}

}  // namespace turnout::onednn
