#pragma once

#include <algorithm>
#include <cstddef>

#include "backends/kokkos/device/launch.hpp"

// Loops in which threads work together: as a team with shared memory, or several of them on a line.
namespace turnout::kokkos {

using TeamPolicy = Kokkos::TeamPolicy<Space>;
using Member = TeamPolicy::member_type;

/// `count` elements of a team's memory; level 0 is the fast one near the processor.
template <typename T>
class ScratchArray {
 public:
  TURNOUT_HD ScratchArray(const Member& member, std::size_t count, int level = 0)
      : data_(static_cast<T*>(
            member.team_scratch(level).get_shmem_aligned(count * sizeof(T), kAlignment))) {}
  TURNOUT_HD T& operator[](std::size_t i) const { return data_[i]; }
  TURNOUT_HD T* data() const { return data_; }
  /// What `count` elements take of a team's memory.
  static std::size_t bytes(std::size_t count) { return count * sizeof(T) + kAlignment; }

 private:
  static constexpr std::ptrdiff_t kAlignment = 16;
  T* data_;
};

/// Calls functor(member, team) for teams that may be more than a grid has.
template <typename Functor>
struct TeamLoop {
  Functor functor;
  std::int64_t teams;
  TURNOUT_HD void operator()(const Member& member) const {
    for (std::int64_t i = member.league_rank(); i < teams; i += member.league_size()) {
      functor(member, i);
    }
  }
};

/// Threads of a team: `wanted` on a device, what there is on a host.
inline int team_threads(const Space& space, int wanted) {
  return kSpaceIsHost ? std::min(wanted, static_cast<int>(space.concurrency())) : wanted;
}

/// Calls functor(member, i) for every i in [0, teams), by a team of `threads` threads with
/// `scratch_bytes` of fast memory each. On a host teams may be smaller. A functor that uses its
/// memory ends with a barrier, as the team may go on with another i.
template <typename Functor>
void parallel_teams(const Launch& launch, std::int64_t teams, int threads,
                    std::size_t scratch_bytes, const Functor& functor) {
  constexpr std::int64_t kMostTeams = 1 << 24;
  if (teams <= 0) return;
  TeamPolicy policy(launch.space(), static_cast<int>(std::min(teams, kMostTeams)),
                    team_threads(launch.space(), threads));
  policy.set_scratch_size(0, Kokkos::PerTeam(scratch_bytes));
  dispatch_to(policy, TeamLoop<Functor>{functor, teams});
}

/// Kokkos' form of an operator of T with `identity<T>()` and `combine(a, b)`.
template <typename Op, typename T>
class TeamReducer {
 public:
  using reducer = TeamReducer;
  using value_type = T;
  using result_view_type = Kokkos::View<T, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

  TURNOUT_HD TeamReducer(const Op& op, T& value) : op_(op), value_(value) {}
  TURNOUT_HD void join(T& into, const T& other) const { into = op_.combine(into, other); }
  TURNOUT_HD void init(T& value) const { value = op_.template identity<T>(); }
  TURNOUT_HD T& reference() const { return value_; }

 private:
  Op op_;
  T& value_;
};

/// The threads that share a line.
class TeamGroup {
 public:
  TURNOUT_HD explicit TeamGroup(const Member& member) : member_(member) {}
  TURNOUT_HD int rank() const { return member_.team_rank(); }
  TURNOUT_HD int size() const { return member_.team_size(); }
  /// All values combined, for all threads.
  template <typename Op, typename T>
  TURNOUT_HD T reduce(const Op& op, T value) const {
    member_.team_reduce(TeamReducer<Op, T>(op, value));
    return value;
  }

 private:
  const Member& member_;
};
class SingleGroup {
 public:
  TURNOUT_HD int rank() const { return 0; }
  TURNOUT_HD int size() const { return 1; }
  template <typename Op, typename T>
  TURNOUT_HD T reduce(const Op&, T value) const {
    return value;
  }
};

template <typename Line>
struct TeamLines {
  Line line;
  TURNOUT_HD void operator()(const Member& member, std::int64_t i) const {
    line(TeamGroup(member), i);
  }
};
template <typename Line>
struct SingleLines {
  Line line;
  TURNOUT_HD void operator()(std::int64_t i) const { line(SingleGroup(), i); }
};

/// Calls line(group, i) for every i in [0, lines). `length`: elements of a line; `stride`: how far
/// apart they are. Dense lines are shared by a team's threads, which read neighbours then; short
/// lines, and lines between which the others lie, have a thread each, where there are enough.
template <typename Line>
void parallel_lines(const Launch& launch, std::int64_t lines, std::int64_t length,
                    std::int64_t stride, const Line& line) {
  constexpr std::int64_t kManyLines = 4096;
  const bool single = length <= 8 || (stride != 1 && (lines >= kManyLines || length <= 64));
  if (single) {
    parallel_for(launch, lines, 0, SingleLines<Line>{line});
    return;
  }
  const int threads = length <= 256 ? 64 : (length <= 4096 ? 128 : 512);
  parallel_teams(launch, lines, threads, 0, TeamLines<Line>{line});
}

// Operators.
struct AddOp {
  template <typename T>
  TURNOUT_HD static T identity() {
    return T(0);
  }
  template <typename T>
  TURNOUT_HD static T combine(T a, T b) {
    return a + b;
  }
};
/// The larger number; NaN is passed over.
struct LargerOp {
  template <typename T>
  TURNOUT_HD static T identity() {
    return -std::numeric_limits<T>::infinity();
  }
  template <typename T>
  TURNOUT_HD static T combine(T a, T b) {
    return b > a ? b : a;
  }
};

}  // namespace turnout::kokkos
