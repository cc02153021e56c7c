#pragma once
// The consumer's own core/graph.hpp.
namespace consumer {
inline constexpr int kOwnCore = 1;
}
