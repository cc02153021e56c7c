#pragma once

#include "ops/functors_binary.hpp"
#include "ops/functors_unary.hpp"

// The arithmetic of elementwise ops, shared by references and kernels of every device.
//
// An op is one struct and one entry in UnaryOps or BinaryOps:
//   name, doc   of the op
//   types       mask of element types it takes: takes<Op, T>
//   flops       about how much work one element is
//   exact       results are exact: every kernel has to give the same bits
//   make()      the functor from the node's attributes (checked by the op's infer rule)
//   attrs()     (only where it has attributes) their schema
//   operator()  on ComputeType<T> (kernels) or WideType<T> (references); predicates return bool
//
//   for_each_type(UnaryOps{}, []<typename Op>(std::type_identity<Op>) { ... Op::name ... });
//   y[i] = convert<T>(op(static_cast<ComputeType<T>>(x[i])));
