#include "runtime/plan/plan_cache.hpp"

#include <algorithm>

#include "runtime/cost/sampling.hpp"
#include "runtime/plan/digest.hpp"

namespace turnout {
namespace {

void add_figure(Digest& digest, const Figure& figure) {
  digest.add(&figure.value, sizeof figure.value);
}

}  // namespace

PlanCache::Plans& PlanCache::touch(const Key& key) {
  Plans& plans = plans_[key];
  plans.used = ++clock_;
  return plans;
}

const PlanCache::Entry* PlanCache::find(const Key& key, std::int64_t batch) {
  if (plans_.count(key) == 0) return nullptr;
  for (const Entry& entry : touch(key).entries) {
    if (entry.first <= batch && batch <= entry.last) return &entry;
  }
  return nullptr;
}

void PlanCache::put(const Key& key, Entry entry) {
  if (entry.first < 1 || entry.last < entry.first) {
    fail(ErrorCode::invalid_argument, "plan cache: batches {}..{} are no interval", entry.first,
         entry.last);
  }
  std::vector<Entry> kept;
  for (const Entry& old : touch(key).entries) {
    if (old.first < entry.first) {
      kept.push_back({old.first, std::min(old.last, entry.first - 1), old.placement});
    }
    if (old.last > entry.last) {
      kept.push_back({std::max(old.first, entry.last + 1), old.last, old.placement});
    }
  }
  kept.push_back(std::move(entry));
  std::sort(kept.begin(), kept.end(),
            [](const Entry& a, const Entry& b) { return a.first < b.first; });
  plans_[key].entries = std::move(kept);
  if (plans_.size() <= max_keys_) return;
  plans_.erase(std::min_element(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  }));
}

const PlanCache::Entry& PlanCache::choose(const Key& key, std::int64_t batch, double kept_seconds,
                                          const Placement& candidate, double candidate_seconds,
                                          double spread) {
  const Entry* kept = find(key, batch);
  if (kept != nullptr &&
      (kept->placement == candidate || !worth_leaving(kept_seconds, candidate_seconds, spread))) {
    return *kept;
  }
  put(key, {batch, batch, candidate});
  return *find(key, batch);
}

std::size_t PlanCache::entries(const Key& key) const {
  const auto at = plans_.find(key);
  return at == plans_.end() ? 0 : at->second.entries.size();
}

std::string device_fingerprint(std::span<const DeviceSlot> devices) {
  Digest digest;
  for (const DeviceSlot& device : devices) {
    const DeviceInfo& info = device.info();
    digest.add(device.label);
    digest.add(info.title);
    for (const std::string& provider : device.providers) digest.add(provider);
    digest.add(&device.threads, sizeof device.threads);
    digest.add(&info.compute_units, sizeof info.compute_units);
    for (const Figure* figure :
         {&info.memory_bytes, &info.peak_f64, &info.peak_f32, &info.peak_f16, &info.peak_bf16,
          &info.peak_i8, &info.memory_bytes_per_s, &info.launch_seconds, &info.synchronize_seconds,
          &info.link.latency_seconds, &info.link.h2d_bytes_per_s, &info.link.d2h_bytes_per_s}) {
      add_figure(digest, *figure);
    }
  }
  return digest.hex();
}

void remember(PlanCache& cache, const PlanCache::Key& key, const CostsAt& costs, std::int64_t first,
              std::int64_t last) {
  for (const CrossoverInterval& interval : automatic_plan(costs, first, last).intervals) {
    const BatchCosts& at = costs(interval.first);
    PlanCache::Entry entry{interval.first, interval.last, {}};
    for (std::size_t n = 0; n < at.nodes.size(); ++n) {
      if (at.nodes[n].view) continue;
      entry.placement[at.nodes[n].name] = at.devices[static_cast<std::size_t>(at.placement[n])];
    }
    cache.put(key, std::move(entry));
  }
}

}  // namespace turnout
