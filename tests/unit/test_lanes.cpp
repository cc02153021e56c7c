#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/plan/lanes.hpp"

using turnout::LaneSchedule;
using turnout::LaneStep;
using turnout::simulate_lanes;

TEST_CASE("lanes overlap and wait", "[lanes]") {
  const std::vector<LaneStep> steps = {{0, 2, {}}, {1, 3, {0}}, {0, 4, {}}, {2, 1, {1}}};
  const LaneSchedule schedule = simulate_lanes(steps, 5);
  CHECK(schedule.start_seconds == std::vector<double>{0, 2, 2, 5});
  CHECK(schedule.finish_seconds == std::vector<double>{2, 5, 6, 6});
  CHECK(schedule.held_by == std::vector<int>{-1, 0, 0, 1});
  CHECK(schedule.busy_seconds == std::vector<double>{6, 3, 1, 0, 0});
  CHECK(schedule.makespan_seconds == 6);
  CHECK(schedule.last_step == 2);
  CHECK(schedule.critical_path_seconds == 6);
  CHECK(schedule.lower_bound_seconds == 6);
}

TEST_CASE("a lane works in order of issue", "[lanes]") {
  // The second upload is ready at 0, but stands behind one that waits for the CPU.
  const std::vector<LaneStep> steps = {{0, 5, {}}, {1, 1, {0}}, {1, 1, {}}};
  const LaneSchedule schedule = simulate_lanes(steps);
  CHECK(schedule.start_seconds == std::vector<double>{0, 5, 6});
  CHECK(schedule.makespan_seconds == 7);
  CHECK(schedule.critical_path_seconds == 6);
  CHECK(schedule.lower_bound_seconds == 6);
}

TEST_CASE("one lane is the serial sum", "[lanes]") {
  const std::vector<LaneStep> steps = {{0, 1, {}}, {0, 2, {0}}, {0, 4, {0, 1}}};
  const LaneSchedule schedule = simulate_lanes(steps);
  CHECK(schedule.makespan_seconds == 7);
  CHECK(schedule.lower_bound_seconds == 7);
}

TEST_CASE("no steps take no time", "[lanes]") {
  const LaneSchedule schedule = simulate_lanes({}, 2);
  CHECK(schedule.makespan_seconds == 0);
  CHECK(schedule.last_step == -1);
  CHECK(schedule.busy_seconds == std::vector<double>{0, 0});
}

TEST_CASE("bad steps are refused by number", "[lanes]") {
  const auto refused = [](const LaneStep& second) {
    const std::vector<LaneStep> steps = {{0, 1, {}}, second};
    try {
      simulate_lanes(steps);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what()).find("step 1 ") != std::string::npos;
    }
    return false;
  };
  CHECK(refused({0, 1, {1}}));
  CHECK(refused({0, 1, {2}}));
  CHECK(refused({0, 1, {-1}}));
  CHECK(refused({-1, 1, {}}));
  CHECK(refused({1 << 20, 1, {}}));
  CHECK(refused({0, -1, {}}));
  CHECK(refused({0, std::nan(""), {}}));
  CHECK(refused({0, std::numeric_limits<double>::infinity(), {}}));
  CHECK_FALSE(refused({1, 0, {0}}));
}

TEST_CASE("random schedules keep every rule", "[lanes]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const int lanes = 1 + static_cast<int>(random() % 4);
    std::vector<LaneStep> steps;
    double serial = 0.0;
    for (int i = 0; i < 30; ++i) {
      LaneStep step{static_cast<int>(random() % static_cast<unsigned>(lanes)),
                    static_cast<double>(random() % 8),
                    {}};
      for (auto w = random() % 3; i > 0 && w > 0; --w) {
        step.after.push_back(static_cast<int>(random() % static_cast<unsigned>(i)));
      }
      serial += step.seconds;
      steps.push_back(step);
    }
    const LaneSchedule schedule = simulate_lanes(steps);
    // Integral times, so sums are exact.
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CHECK(schedule.finish_seconds[i] == schedule.start_seconds[i] + steps[i].seconds);
      double ready = 0.0;
      for (int j : steps[i].after) ready = std::max(ready, schedule.finish_seconds[std::size_t(j)]);
      for (std::size_t j = 0; j < i; ++j) {
        if (steps[j].lane == steps[i].lane) ready = std::max(ready, schedule.finish_seconds[j]);
      }
      CHECK(schedule.start_seconds[i] == ready);
    }
    CHECK(schedule.makespan_seconds <= serial);
    CHECK(schedule.makespan_seconds >= schedule.lower_bound_seconds);
    CHECK(schedule.lower_bound_seconds ==
          std::max(schedule.critical_path_seconds,
                   *std::max_element(schedule.busy_seconds.begin(), schedule.busy_seconds.end())));
    // The chain of holds adds up to the makespan.
    double chain = 0.0;
    for (int i = schedule.last_step; i >= 0; i = schedule.held_by[std::size_t(i)]) {
      chain += steps[std::size_t(i)].seconds;
    }
    CHECK(chain == schedule.makespan_seconds);
    // Without lanes, the critical path is the makespan.
    std::vector<LaneStep> apart = steps;
    for (std::size_t i = 0; i < apart.size(); ++i) apart[i].lane = static_cast<int>(i);
    CHECK(simulate_lanes(apart).makespan_seconds == schedule.critical_path_seconds);
  }
}
