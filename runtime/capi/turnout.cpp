#include "runtime/capi/turnout.h"

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "generated/turnout_config.hpp"
#include "runtime/turnout.hpp"

struct turnout_model {
  turnout::Graph graph;
};

struct turnout_session {
  struct Io {
    std::string dtype;
    std::vector<std::int64_t> dims;
    std::string name;
    std::size_t bytes = 0;
  };
  std::unique_ptr<turnout::Session> session;
  std::vector<Io> inputs;
  std::vector<Io> outputs;
  std::string plan;
};

namespace {

using turnout::Error;
using turnout::ErrorCode;

thread_local std::string last_error;

turnout_status status_of(ErrorCode code) {
  return static_cast<turnout_status>(static_cast<int>(code) + 1);
}

// Runs `call`; no exception leaves.
template <typename F>
turnout_status guarded(F&& call) noexcept {
  try {
    last_error.clear();
    call();
    return TURNOUT_OK;
  } catch (const Error& error) {
    last_error = error.what();
    return status_of(error.code());
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
    return TURNOUT_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    last_error = error.what();
    return TURNOUT_INTERNAL;
  } catch (...) {
    last_error = "unknown error";
    return TURNOUT_INTERNAL;
  }
}

void require(bool given, const char* what) {
  if (!given) turnout::fail(ErrorCode::invalid_argument, "{} is null", what);
}

std::vector<std::string> split(const char* text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c != ',') {
      part += *c;
      continue;
    }
    parts.push_back(std::move(part));
    part.clear();
  }
  parts.push_back(std::move(part));
  return parts;
}

turnout::SessionOptions read_options(const turnout_options* given) {
  turnout::SessionOptions options;
  if (given == nullptr) return options;
  if (given->devices != nullptr) options.devices = split(given->devices);
  if (given->providers != nullptr) options.providers = split(given->providers);
  options.threads = given->threads;
  if (given->contexts != 0) options.contexts = given->contexts;
  for (std::size_t i = 0; i < given->dim_count; ++i) {
    require(given->dim_names != nullptr && given->dim_sizes != nullptr &&
                given->dim_names[i] != nullptr,
            "a dimension's name or size");
    options.dims[given->dim_names[i]] = given->dim_sizes[i];
  }
  return options;
}

std::vector<turnout_session::Io> describe(std::span<const turnout::Session::Io> ios) {
  std::vector<turnout_session::Io> result;
  for (const auto& io : ios) {
    turnout_session::Io entry;
    entry.name = io.name;
    entry.dtype = to_string(io.spec.dtype);
    entry.dims.assign(io.spec.shape.begin(), io.spec.shape.end());
    entry.bytes = static_cast<std::size_t>(io.spec.bytes());
    result.push_back(std::move(entry));
  }
  return result;
}

turnout_status fill(const std::vector<turnout_session::Io>& ios, std::size_t index,
                    turnout_io* io) {
  return guarded([&] {
    require(io != nullptr, "io");
    if (index >= ios.size()) {
      turnout::fail(ErrorCode::invalid_argument, "index {} of {}", index, ios.size());
    }
    const turnout_session::Io& entry = ios[index];
    *io = {entry.name.c_str(), entry.dtype.c_str(), entry.dims.data(), entry.dims.size(),
           entry.bytes};
  });
}

template <typename T>
std::span<T const> addresses(T const* given, std::size_t count, const char* what) {
  require(given != nullptr || count == 0, what);
  for (std::size_t i = 0; i < count; ++i) require(given[i] != nullptr, what);
  return {given, count};
}

}  // namespace

extern "C" {

const char* turnout_version(void) { return turnout::config::kVersion; }

const char* turnout_last_error(void) { return last_error.c_str(); }

turnout_status turnout_model_load(const char* path, turnout_model** model) {
  return guarded([&] {
    require(path != nullptr, "path");
    require(model != nullptr, "model");
    *model = new turnout_model{turnout::import_onnx(std::filesystem::path(path))};
  });
}

void turnout_model_free(turnout_model* model) { delete model; }

turnout_status turnout_session_create(const turnout_model* model, const turnout_options* given,
                                      turnout_session** session) {
  return guarded([&] {
    require(model != nullptr, "model");
    require(session != nullptr, "session");
    const turnout::SessionOptions options = read_options(given);
    const auto system = std::make_shared<turnout::System>();
    const bool plans = options.devices.size() > 1;
    const turnout::CostModel costs =
        plans ? turnout::machine_costs(system, options.devices, options.threads)
              : turnout::CostModel();
    auto result = std::make_unique<turnout_session>();
    result->session = std::make_unique<turnout::Session>(system, model->graph, costs, options);
    result->inputs = describe(result->session->inputs());
    result->outputs = describe(result->session->outputs());
    result->plan = to_text(turnout::explain(*system, model->graph, costs, options, false), true);
    *session = result.release();
  });
}

void turnout_session_free(turnout_session* session) { delete session; }

size_t turnout_session_input_count(const turnout_session* session) {
  return session == nullptr ? 0 : session->inputs.size();
}

size_t turnout_session_output_count(const turnout_session* session) {
  return session == nullptr ? 0 : session->outputs.size();
}

turnout_status turnout_session_input(const turnout_session* session, size_t index, turnout_io* io) {
  static const std::vector<turnout_session::Io> kNone;
  return fill(session == nullptr ? kNone : session->inputs, index, io);
}

turnout_status turnout_session_output(const turnout_session* session, size_t index,
                                      turnout_io* io) {
  static const std::vector<turnout_session::Io> kNone;
  return fill(session == nullptr ? kNone : session->outputs, index, io);
}

turnout_status turnout_session_run(const turnout_session* session, const void* const* inputs,
                                   void* const* outputs) {
  return guarded([&] {
    require(session != nullptr, "session");
    session->session->run(addresses(inputs, session->inputs.size(), "an input"),
                          addresses(outputs, session->outputs.size(), "an output"));
  });
}

const char* turnout_session_plan(const turnout_session* session) {
  return session == nullptr ? "" : session->plan.c_str();
}

}  // extern "C"
