#include "backends/cpu/onednn/recipe.hpp"

#include <exception>

#include "backends/cpu/onednn/plain.hpp"
#include "backends/cpu/threads.hpp"

namespace turnout::onednn {
namespace {

std::string reason_of(const dnnl::error& error) {
  if (error.status == dnnl_unimplemented) return "oneDNN has no implementation for this case";
  return std::string("oneDNN: ") + error.what();
}

void check_operands(const Site& site) {
  for (int i = 0; i < site.info.input_count(); ++i) {
    if (site.info.has_input(i) && site.input(i).elements() == 0 &&
        !site.info.op->is_shape_input(i)) {
      refuse("oneDNN takes no empty operand");
    }
  }
  if (site.output().elements() == 0) refuse("oneDNN takes no empty result");
}

Recipe recipe_for(const Site& site, std::span<const MakeRecipe> makers) {
  check_operands(site);
  if (!site.may_choose_layout) return first_recipe(site, makers);
  try {
    return first_recipe(site, makers);
  } catch (const std::exception&) {
    return first_recipe({site.info, {}, false}, makers);
  }
}

/// Everything an entry does its work from.
struct Source {
  std::vector<MakeRecipe> makers;
  WhenPlain when_plain;

  bool chooses(bool may_choose_layout) const {
    return may_choose_layout || when_plain == WhenPlain::reorder;
  }
};

Acceptance accept(const Source& source, const NodeInfo& info, const DeviceInfo& device) {
  if (!device.is_host) return Acceptance::no("runs on the host only");
  const cpu::ThreadScope threads(device.threads);
  try {
    recipe_for({info, {}, source.chooses(false)}, source.makers);
    return Acceptance::yes();
  } catch (const Error& error) {
    return Acceptance::no(error.what());
  } catch (const dnnl::error& error) {
    return Acceptance::no(reason_of(error));
  }
}

std::unique_ptr<PreparedKernel> prepare(const Source& source, const PrepareContext& context) {
  const Cost cost = cost_of(context.info);
  const int count = cpu::useful_threads(cost, context.threads);
  const cpu::ThreadScope threads(count);
  try {
    const bool chooses = source.chooses(context.may_choose_layout);
    const Site site{context.info, context.input_layouts, chooses};
    auto kernel = make_kernel(recipe_for(site, source.makers), count);
    kernel->cost = cost;
    kernel->dtype = context.info.input(0).dtype;
    if (context.may_choose_layout) return kernel;
    return make_plain(std::move(kernel), context.info, count);
  } catch (const dnnl::error& error) {
    context.info.fail(reason_of(error));
  }
}

}  // namespace

Desc Site::take(int i) const {
  const auto at = static_cast<std::size_t>(i);
  const bool known = may_choose_layout && at < arriving.size();
  return layout_desc(input(i), known ? arriving[at] : nullptr);
}

void Recipe::input(int argument, const Site& site, int i) {
  const Desc desc = settled(argument);
  bindings.push_back({argument, From::input, i, desc, make_layout(site.input(i), desc)});
}

void Recipe::output(int argument, const Site& site) {
  const Desc desc = settled(argument);
  bindings.push_back({argument, From::output, 0, desc, make_layout(site.output(), desc)});
}

void Recipe::pack(int argument, const Site& site, int i, const Desc& from, float scale) {
  const Desc to = settled(argument);
  if (from == to && scale == 1) return view_input(argument, i, from);
  bindings.push_back({argument, From::packed, static_cast<int>(packings.size()), to});
  packings.push_back({i, *site.info.constant(i), from, to, scale});
}

Recipe first_recipe(const Site& site, std::span<const MakeRecipe> makers) {
  std::exception_ptr last;
  for (const MakeRecipe make : makers) {
    try {
      Recipe recipe = make(site);
      const std::string_view name = recipe.descriptor.impl_info_str();
      if (name.starts_with("ref")) refuse("oneDNN has only its slow reference for this case");
      return recipe;
    } catch (const std::exception&) {
      last = std::current_exception();
    }
  }
  std::rethrow_exception(last);
}

void add_kernel(KernelRegistry& registry, std::string op, std::vector<MakeRecipe> makers,
                WhenPlain when_plain) {
  KernelEntry entry;
  entry.op = std::move(op);
  entry.provider = "onednn";
  const Source source{std::move(makers), when_plain};
  entry.accepts = [source](const NodeInfo& info, const DeviceInfo& device) {
    return accept(source, info, device);
  };
  entry.prepare = [source](const PrepareContext& context) { return prepare(source, context); };
  registry.add(std::move(entry));
}

}  // namespace turnout::onednn
