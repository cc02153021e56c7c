#pragma once

#include <filesystem>
#include <memory>

#include "runtime/cost/cost_model.hpp"

namespace turnout {

/// Measures this machine's CPU for the cost model, in at most about 3 seconds: square products and
/// one-row products by every provider built, an elementwise pass over L2-, L3- and memory-sized
/// data, and the least time of a small kernel. Best of several runs each: the machine may be
/// shared.
CpuProfile probe_cpu(const std::shared_ptr<System>& system, int threads);

/// probe_cpu() with its result kept in a file per machine, thread count and set of providers; read
/// from there while the machine's fingerprint is the same. Unreadable files are measured anew;
/// a file that can't be written is no error (the next start measures again), and figures taken
/// while the machine was busy are not kept.
CpuProfile cpu_profile(const std::shared_ptr<System>& system, int threads);

/// Folder of cached profiles: $TURNOUT_CACHE, else $XDG_CACHE_HOME/turnout, else
/// ~/.cache/turnout. Empty when there is no home.
std::filesystem::path cache_folder();

}  // namespace turnout
