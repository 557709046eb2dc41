/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch_gemm SPEC M N K LAUNCHES [prepare|threads|shadow N]: multiplies on the first OpenCL device
 * through Purlin's dispatcher, checks every element against the CPU, and prints what was served.
 * Exit code 1 where the product is wrong or differs between launches, 2 where something fails. */
#define CL_TARGET_OPENCL_VERSION 120

#include <CL/cl.h>

#include <math.h>
#include <pthread.h>
#include <purlin/purlin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 4 };

typedef struct Work {
  purlin_dispatcher* dispatcher;
  cl_context context;
  cl_device_id device;
  int64_t shape[3];
  int launches;
  const float *a, *b;
  float* c;
  int failed;
} Work;

static void check(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "dispatch_gemm: %s: %s\n", what, purlin_last_error());
  exit(2);
}

static cl_device_id first_device(void) {
  cl_platform_id platforms[16];
  cl_device_id device = NULL;
  cl_uint count = 0;
  check(clGetPlatformIDs(16, platforms, &count) == CL_SUCCESS, "clGetPlatformIDs");
  for (cl_uint i = 0; i < count && i < 16; ++i)
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS) break;
  check(device != NULL, "no OpenCL device");
  return device;
}

static cl_mem buffer(cl_context context, size_t count, const float* values) {
  cl_int code = CL_SUCCESS;
  cl_mem made = clCreateBuffer(context,
                               CL_MEM_READ_WRITE | (values != NULL ? CL_MEM_COPY_HOST_PTR : 0u),
                               count * sizeof(float), (void*)(uintptr_t)values, &code);
  check(code == CL_SUCCESS, "clCreateBuffer");
  return made;
}

/* Launches `launches` times on a queue of its own and compares the result after each. */
static void* multiply(void* argument) {
  Work* work = argument;
  const size_t m = (size_t)work->shape[0], n = (size_t)work->shape[1], k = (size_t)work->shape[2];
  cl_int code = CL_SUCCESS, extents[3] = {(cl_int)m, (cl_int)n, (cl_int)k};
  cl_command_queue queue = clCreateCommandQueue(work->context, work->device, 0, &code);
  cl_mem a = buffer(work->context, m * k, work->a), b = buffer(work->context, k * n, work->b),
         c = buffer(work->context, m * n, NULL);
  float* first = calloc(m * n, sizeof *first);
  void* arguments[] = {&a, &b, &c, &extents[0], &extents[1], &extents[2]};
  purlin_launch launch = PURLIN_LAUNCH_INIT;
  check(code == CL_SUCCESS && first != NULL, "a queue");
  launch.extents = work->shape, launch.extent_count = 3;
  launch.arguments = arguments, launch.argument_count = 6;
  launch.queue = queue;
  for (int i = 0; i < work->launches && !work->failed; ++i) {
    cl_event done = NULL;
    launch.event = (void**)&done;
    check(purlin_dispatch(work->dispatcher, &launch) == PURLIN_OK, "purlin_dispatch");
    check(done != NULL, "an event");
    clReleaseEvent(done);
    check(clEnqueueReadBuffer(queue, c, CL_TRUE, 0, m * n * sizeof(float), work->c, 0, NULL, NULL) ==
              CL_SUCCESS,
          "clEnqueueReadBuffer");
    if (i == 0) memcpy(first, work->c, m * n * sizeof *first);
    if (memcmp(first, work->c, m * n * sizeof *first) != 0) work->failed = 1;
  }
  free(first);
  clReleaseMemObject(a);
  clReleaseMemObject(b);
  clReleaseMemObject(c);
  clReleaseCommandQueue(queue);
  return NULL;
}

int main(int argc, char** argv) {
  purlin_cache* cache = NULL;
  purlin_dispatcher* dispatcher = NULL;
  purlin_dispatcher_desc desc = PURLIN_DISPATCHER_DESC_INIT;
  purlin_choice choice = PURLIN_CHOICE_INIT;
  Work work[kThreads];
  pthread_t threads[kThreads];
  cl_int code = CL_SUCCESS;
  const char* mode = argc > 6 ? argv[6] : "";
  const int running = strcmp(mode, "threads") == 0 ? kThreads : 1;
  int64_t shape[3];
  cl_device_id device = first_device();
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  if (argc < 6) return 2;
  for (int i = 0; i < 3; ++i) shape[i] = strtoll(argv[i + 2], NULL, 10);
  check(code == CL_SUCCESS, "clCreateContext");
  desc.spec = argv[1];
  desc.backend = "opencl";
  desc.context = context;
  if (strcmp(mode, "shadow") == 0 && argc > 7)
    desc.shadow_interval = (unsigned)strtoul(argv[7], NULL, 10);
  check(purlin_cache_open(NULL, &cache) == PURLIN_OK, "purlin_cache_open");
  check(purlin_dispatcher_open(cache, &desc, &dispatcher) == PURLIN_OK, "purlin_dispatcher_open");
  if (strcmp(mode, "prepare") == 0)
    check(purlin_prepare(dispatcher, shape, 3) == PURLIN_OK, "purlin_prepare");

  const size_t m = (size_t)shape[0], n = (size_t)shape[1], k = (size_t)shape[2];
  float *a = malloc(m * k * sizeof *a), *b = malloc(k * n * sizeof *b);
  check(a != NULL && b != NULL, "memory");
  for (size_t i = 0; i < m * k; ++i) a[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
  for (size_t i = 0; i < k * n; ++i) b[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
  for (int t = 0; t < running; ++t) {
    const Work one = {dispatcher, context, device, {shape[0], shape[1], shape[2]},
                      atoi(argv[5]), a, b, calloc(m * n, sizeof(float)), 0};
    work[t] = one;
    check(pthread_create(&threads[t], NULL, multiply, &work[t]) == 0, "pthread_create");
  }
  int failed = 0;
  for (int t = 0; t < running; ++t) {
    pthread_join(threads[t], NULL);
    failed |= work[t].failed;
    for (size_t row = 0; row < m; ++row)
      for (size_t column = 0; column < n; ++column) {
        double sum = 0;
        for (size_t l = 0; l < k; ++l) sum += (double)a[row * k + l] * b[l * n + column];
        if (!(fabs(sum - work[t].c[row * n + column]) < 1e-3)) failed = 1;
      }
    free(work[t].c);
  }
  check(purlin_dispatcher_choice(dispatcher, shape, 3, &choice) == PURLIN_OK,
        "purlin_dispatcher_choice");
  printf("%s %s demoted=%d samples=%llu%s%s\n", purlin_outcome_name(choice.outcome), choice.options,
         choice.demoted, (unsigned long long)choice.shadow_samples,
         choice.reason[0] != '\0' ? " reason: " : "", choice.reason);
  purlin_dispatcher_close(dispatcher);
  purlin_cache_close(cache);
  clReleaseContext(context);
  free(a);
  free(b);
  return failed;
}
