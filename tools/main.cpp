#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "core/error.hpp"
#include "generated/turnout_config.hpp"
#include "tools/commands.hpp"

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

// OpenMP reads its wait policy when the library is loaded, so a program that wants one has to start
// itself again. Threads spin for a moment (a small model's next kernel comes within microseconds),
// then sleep: on a busy machine an endless spin costs whole time slices. What the user set stays.
void choose_wait_policy(char** argv) {
  const bool chosen = std::getenv("OMP_WAIT_POLICY") != nullptr ||
                      std::getenv("GOMP_SPINCOUNT") != nullptr ||
                      std::getenv("TURNOUT_WAIT_POLICY_SET") != nullptr;
  if (chosen) return;
  setenv("TURNOUT_WAIT_POLICY_SET", "1", 1);
  setenv("GOMP_SPINCOUNT", "20000", 1);
  setenv("OMP_PROC_BIND", "false", 0);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  choose_wait_policy(argv);
  CLI::App app(
      "Turnout: one tensor graph on any device, and which device wins from which batch on");
  app.set_version_flag("--version", std::string("turnout ") + turnout::config::kVersion);
  app.require_subcommand(1);
  turnout::tools::add_devices(app);
  turnout::tools::add_calibrate(app);
  turnout::tools::add_run(app);
  turnout::tools::add_plan(app);
  turnout::tools::add_plan_diff(app);
  turnout::tools::add_compare(app);
  turnout::tools::add_predict(app);
  turnout::tools::add_crossover(app);
  turnout::tools::add_atlas(app);
  turnout::tools::add_advise(app);
  turnout::tools::add_report(app);
  turnout::tools::add_verify(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::RuntimeError& status) {
    return status.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const turnout::Error& error) {
    std::fprintf(stderr, "turnout: %s\n", error.what());
    return error.code() == turnout::ErrorCode::invalid_argument ? kUsage : kFailure;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "turnout: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "turnout: %s\n", error.what());
  }
  return kFailure;
}
