#pragma once

#include <CLI/CLI.hpp>

namespace turnout::tools {

// Each adds one subcommand, whose callback does the work. Errors leave as exceptions.
void add_devices(CLI::App& app);
void add_run(CLI::App& app);
void add_plan(CLI::App& app);
void add_compare(CLI::App& app);
void add_predict(CLI::App& app);
void add_verify(CLI::App& app);
void add_atlas(CLI::App& app);
void add_advise(CLI::App& app);
void add_plan_diff(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_report(CLI::App& app);
void add_crossover(CLI::App& app);

}  // namespace turnout::tools
