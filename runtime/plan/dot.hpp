#pragma once

#include <string>

#include "runtime/session.hpp"

namespace turnout {

/// The plan as a Graphviz graph: nodes coloured by device with their times and evidence, copies as
/// dashed edges with bytes and times. Constants are left out. `dot -Tsvg FILE` draws it.
std::string to_dot(const PlannedModel& planned);

}  // namespace turnout
