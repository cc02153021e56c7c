#include "backends/kokkos/device/launch.hpp"

#include <array>
#include <memory>

#include "backends/kokkos/constant.hpp"
#include "backends/kokkos/device/teams.hpp"
#include "backends/kokkos/indices.hpp"
#include "core/error.hpp"

namespace turnout::kokkos {

namespace {

/// A vendor's handle of a stream is a pointer to a type of its own, whose name is known to Kokkos'
/// constructor alone.
struct NativeHandle {
  void* handle;
  template <typename T>
  operator T*() const {
    return static_cast<T*>(handle);
  }
};

template <typename S>
S make_space([[maybe_unused]] void* native_handle) {
  if constexpr (kSpaceIsHost) {
    return S();
  } else {
    return S(NativeHandle{native_handle});
  }
}

using PinnedSpace = Kokkos::SharedHostPinnedSpace;

struct Touch {
  TURNOUT_HD void operator()(const Member& member, std::int64_t) const {
    const ScratchArray<char> scratch(member, 8, 1);
    if (member.team_rank() == 0) scratch[0] = 1;
  }
};

StreamSpace make_stream_space(void* native_handle) {
  StreamSpace result{make_space<Space>(native_handle), nullptr};
  result.fault = static_cast<int*>(Kokkos::kokkos_malloc<PinnedSpace>("fault", sizeof(int)));
  *result.fault = 0;
  // Kokkos asks the driver for team memory at every launch of a team until it has got some.
  using Policy = Kokkos::TeamPolicy<Space>;
  dispatch_to(Policy(result.space, 1, 1).set_scratch_size(1, Kokkos::PerTeam(64)),
              TeamLoop<Touch>{Touch{}, 1});
  result.space.fence("turnout: a new stream");
  return result;
}

/// Spaces by handle. Looked up without a lock; slots are filled and emptied under one. Never
/// destroyed: what is left at exit belongs to a driver that may be gone.
class StreamTable {
 public:
  static constexpr std::size_t kMost = 256;

  const StreamSpace* find(const void* key) const {
    const std::size_t used = used_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used; ++i) {
      if (slots_[i].key.load(std::memory_order_acquire) == key) return slots_[i].space.get();
    }
    return nullptr;
  }

  const StreamSpace& add(const void* key, void* native_handle) {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < kMost; ++i) {
      Slot& slot = slots_[i];
      if (slot.key.load(std::memory_order_relaxed) != nullptr) continue;
      slot.space = std::make_unique<StreamSpace>(make_stream_space(native_handle));
      slot.key.store(key, std::memory_order_release);
      if (i >= used_.load(std::memory_order_relaxed)) {
        used_.store(i + 1, std::memory_order_release);
      }
      return *slot.space;
    }
    fail(ErrorCode::unsupported, "kernels run on at most {} streams at a time", kMost);
  }

  void remove(const void* key) {
    const std::scoped_lock lock(mutex_);
    for (Slot& slot : slots_) {
      if (slot.key.load(std::memory_order_relaxed) == key) clear(slot);
    }
  }
  void remove_all() {
    const std::scoped_lock lock(mutex_);
    for (Slot& slot : slots_) {
      if (slot.space != nullptr) clear(slot);
    }
  }

 private:
  struct Slot {
    std::atomic<const void*> key = nullptr;
    std::unique_ptr<StreamSpace> space;
  };
  static void clear(Slot& slot) {
    slot.key.store(nullptr, std::memory_order_release);
    Kokkos::kokkos_free<PinnedSpace>(slot.space->fault);
    slot.space.reset();
  }

  std::mutex mutex_;
  std::array<Slot, kMost> slots_;
  std::atomic<std::size_t> used_ = 0;
};

StreamTable& streams() {
  static auto* instance = new StreamTable;
  return *instance;
}

/// Null handles are streams too.
const void* key_of(const void* native_handle) {
  static const char null_stream = 0;
  return native_handle == nullptr ? &null_stream : native_handle;
}

std::atomic<FunctorAudit> functor_audit = nullptr;

}  // namespace

const StreamSpace& space_of(void* native_handle) {
  const void* key = key_of(native_handle);
  const StreamSpace* found = streams().find(key);
  return found != nullptr ? *found : streams().add(key, native_handle);
}

std::mutex& first_launch_mutex() {
  static std::mutex mutex;
  return mutex;
}

void set_functor_audit(FunctorAudit audit) { functor_audit = audit; }

void audit_functor(const void* functor, std::size_t bytes) {
  if (const FunctorAudit audit = functor_audit.load()) audit(functor, bytes);
}

void initialise(int device_id) {
  if (Kokkos::is_initialized()) return;
  if (Kokkos::is_finalized()) {
    fail(ErrorCode::unsupported, "device kernels were ended, and can't be started again");
  }
  auto settings = Kokkos::InitializationSettings().set_disable_warnings(true);
  if constexpr (!kSpaceIsHost) settings.set_device_id(device_id);
  Kokkos::initialize(settings);
}

void finalise() {
  if (!Kokkos::is_initialized()) return;
  streams().remove_all();
  Kokkos::finalize();
}

void release_stream(void* native_handle) { streams().remove(key_of(native_handle)); }

void throw_faults(void* native_handle) {
  const StreamSpace* space = streams().find(key_of(native_handle));
  if (space == nullptr) return;
  const int op = *space->fault;
  *space->fault = 0;
  fail_if_faulty(op);
}

Constant::Constant(const PrepareContext& context, const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  buffer_ = context.device.allocate(bytes, MemoryKind::device);
  const auto stream = context.device.make_stream();
  stream->copy(buffer_->address(), &context.device, data, nullptr, bytes);
  stream->synchronize();
  address_ = static_cast<const std::byte*>(buffer_->address()) + context.device.access_offset();
}

}  // namespace turnout::kokkos
