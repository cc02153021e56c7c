#ifndef TURNOUT_H
#define TURNOUT_H

/* Turnout for C and everything that can call C.
 *
 * Functions return a status; on failure turnout_last_error() has the text, for the calling thread,
 * until its next call. Handles are made by *_load and *_create and freed by *_free (null is fine).
 * Names and texts belong to their handle. All functions block. A session may be run from several
 * threads (at most options.contexts at once, others wait); everything else: one thread a handle. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TURNOUT_API __attribute__((visibility("default")))
#else
#define TURNOUT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum turnout_status {
  TURNOUT_OK = 0,
  TURNOUT_INVALID_ARGUMENT = 1,
  TURNOUT_INVALID_MODEL = 2,
  TURNOUT_UNSUPPORTED = 3,
  TURNOUT_NOT_FOUND = 4,
  TURNOUT_OUT_OF_MEMORY = 5,
  TURNOUT_DEVICE_LOST = 6,
  TURNOUT_IO = 7,
  TURNOUT_INTERNAL = 8
} turnout_status;

typedef struct turnout_model turnout_model;
typedef struct turnout_session turnout_session;

/* Fill with zeros first; zero and null stand for the defaults. */
typedef struct turnout_options {
  const char* devices;          /* comma list the plan chooses among; default "cpu" */
  const char* providers;        /* comma list: the only CPU providers allowed; default all */
  int threads;                  /* of the CPU; default every core */
  int contexts;                 /* runs that may be under way at once; default 1 */
  const char* const* dim_names; /* symbolic dimensions and their sizes */
  const int64_t* dim_sizes;
  size_t dim_count;
} turnout_options;

typedef struct turnout_io {
  const char* name;
  const char* dtype;   /* "f32", "i64", ... */
  const int64_t* dims; /* `rank` of them, outermost first */
  size_t rank;
  size_t bytes; /* dense, row-major */
} turnout_io;

TURNOUT_API const char* turnout_version(void);
TURNOUT_API const char* turnout_last_error(void);

/* Reads an ONNX file. */
TURNOUT_API turnout_status turnout_model_load(const char* path, turnout_model** model);
TURNOUT_API void turnout_model_free(turnout_model* model);

/* Binds dimensions, plans and prepares. The model may be freed afterwards. */
TURNOUT_API turnout_status turnout_session_create(const turnout_model* model,
                                                  const turnout_options* options,
                                                  turnout_session** session);
TURNOUT_API void turnout_session_free(turnout_session* session);

TURNOUT_API size_t turnout_session_input_count(const turnout_session* session);
TURNOUT_API size_t turnout_session_output_count(const turnout_session* session);
/* `io` is filled in; its pointers live as long as the session. */
TURNOUT_API turnout_status turnout_session_input(const turnout_session* session, size_t index,
                                                 turnout_io* io);
TURNOUT_API turnout_status turnout_session_output(const turnout_session* session, size_t index,
                                                  turnout_io* io);

/* Runs on the caller's buffers: one per input and output, each of `bytes` bytes, in host memory.
 * They may not overlap. */
TURNOUT_API turnout_status turnout_session_run(const turnout_session* session,
                                               const void* const* inputs, void* const* outputs);

/* What runs where and why, as text. */
TURNOUT_API const char* turnout_session_plan(const turnout_session* session);

#ifdef __cplusplus
}
#endif

#endif /* TURNOUT_H */
