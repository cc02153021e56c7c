#include "backends/cpu/onednn/plain.hpp"
#include "backends/cpu/threads.hpp"

namespace turnout::onednn {

std::unique_ptr<PreparedKernel> make_reorder(const TensorSpec& spec, const LayoutPtr& from,
                                             const LayoutPtr& to, int threads) {
  const Desc source = layout_desc(spec, from);
  const Desc target = layout_desc(spec, to);
  Cost cost;
  cost.bytes_read = static_cast<double>(source.get_size());
  cost.bytes_written = static_cast<double>(target.get_size());
  const int count = cpu::useful_threads(cost, threads);
  const cpu::ThreadScope scope(count);
  try {
    Recipe recipe;
    recipe.descriptor =
        dnnl::reorder::primitive_desc(engine(), source, engine(), target, base_attr());
    recipe.bindings.push_back({DNNL_ARG_FROM, Recipe::From::input, 0, source, from});
    recipe.bindings.push_back({DNNL_ARG_TO, Recipe::From::output, 0, target, to});
    auto kernel = make_kernel(std::move(recipe), count);
    kernel->cost = cost;
    kernel->dtype = spec.dtype;
    return kernel;
  } catch (const dnnl::error& error) {
    fail(ErrorCode::unsupported, "[reorder] {} from {} to {}: {}", to_string(spec),
         from ? from->name() : "plain", to ? to->name() : "plain", error.what());
  }
}

void register_reorder(KernelRegistry& registry) { registry.add_reorder("onednn", make_reorder); }

}  // namespace turnout::onednn
