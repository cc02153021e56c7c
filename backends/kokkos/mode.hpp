#pragma once

// The sources of this folder are compiled in one of two modes.
//
// Host mode: loops run on the caller and on OpenMP threads, in large items, before a launch
// returns. Memory is the host's, or that of a device emulated by it.
//
// Device mode (TURNOUT_KOKKOS_DEVICE): loops run in Kokkos' default execution space, an element or
// a line a thread, after the launch on the stream it was given. Functors are copied to the device:
// they hold numbers, and pointers to the device's memory alone.
//
// Files of this folder belong to both modes, those of host/ and device/ to one.
namespace turnout::kokkos {

#if TURNOUT_KOKKOS_DEVICE
inline constexpr bool kDevice = true;
#else
inline constexpr bool kDevice = false;
#endif

}  // namespace turnout::kokkos
