#pragma once

#include <cstddef>

// What the owner of a device has to do around kernels of device mode. There is one Kokkos for all
// devices of a library; it is linked into the library and never seen outside.
namespace turnout::kokkos {

/// Starts Kokkos with the device `device_id`, as its vendor's runtime counts. Does nothing when it
/// runs already. Only with a device there that this library was compiled for: Kokkos ends the
/// process otherwise. Error when Kokkos was finalised before: it can't come back.
void initialise(int device_id);

/// Ends Kokkos, if it runs. No kernel may be running, and none may be launched after it.
void finalise();

/// Lets go of what was kept for a stream. Before the stream itself is destroyed, when its work is
/// done. Does nothing for streams that ran no kernel.
void release_stream(void* native_handle);

/// Throws the error of a kernel of this stream, if there was one since the last call: an index
/// operand out of range. Such a kernel touched nothing outside its operands. To be called after the
/// stream has been waited for.
void throw_faults(void* native_handle);

/// For tests on a host: called with every functor that is launched.
using FunctorAudit = void (*)(const void* functor, std::size_t bytes);
void set_functor_audit(FunctorAudit audit);

}  // namespace turnout::kokkos
