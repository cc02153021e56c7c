/* The C interface: consumer_c MODEL.onnx SYMBOL BATCH [PROVIDERS]; then what an error looks like. */
#include <stdio.h>
#include <stdlib.h>
#include <turnout/turnout.h>

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  turnout_model* model = NULL;
  if (turnout_model_load(argv[1], &model) != TURNOUT_OK) {
    fprintf(stderr, "%s\n", turnout_last_error());
    return 1;
  }
  const char* names[] = {argv[2]};
  const int64_t sizes[] = {atoi(argv[3])};
  turnout_options options = {0};
  options.dim_names = names;
  options.dim_sizes = sizes;
  options.dim_count = 1;
  if (argc == 5) options.providers = argv[4];
  turnout_session* session = NULL;
  if (turnout_session_create(model, &options, &session) != TURNOUT_OK) {
    fprintf(stderr, "%s\n", turnout_last_error());
    return 1;
  }
  turnout_model_free(model);
  turnout_io in, out;
  if (turnout_session_input(session, 0, &in) != TURNOUT_OK ||
      turnout_session_output(session, 0, &out) != TURNOUT_OK) {
    return 1;
  }
  void* input = calloc(1, in.bytes);
  void* output = calloc(1, out.bytes);
  const void* inputs[] = {input};
  void* outputs[] = {output};
  if (turnout_session_run(session, inputs, outputs) != TURNOUT_OK) {
    fprintf(stderr, "%s\n", turnout_last_error());
    return 1;
  }
  printf("%s %s: %zu bytes, first %g\n%s", out.name, out.dtype, out.bytes, ((float*)output)[0],
         turnout_session_plan(session));
  const turnout_status status = turnout_model_load("no such file.onnx", &model);
  printf("error %d: %s\n", (int)status, turnout_last_error());
  turnout_session_free(session);
  free(input);
  free(output);
  return status == TURNOUT_NOT_FOUND ? 0 : 1;
}
