/* SPDX-License-Identifier: Apache-2.0 */
/* C = A * B with the config that `purlin tune` found for this device and shape, or the default one.
 *
 *   purlin tune kernels/gemm/gemm.toml --device opencl:0 --shape M=512,N=512,K=512
 *   tuned_gemm_opencl kernels/gemm/gemm.cl 512 512 512
 *
 * What is of Purlin here: find_config(), and the options that build the kernel. */
#define CL_TARGET_OPENCL_VERSION 120

#include <CL/cl.h>

#include <math.h>
#include <purlin/purlin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kTimedLaunches = 10, kCheckedElements = 500 };

/* What a program without a tuner would use: the defaults of gemm.toml. */
static const char kDefaultOptions[] =
    "-DBM=16 -DBN=16 -DBK=16 -DTM=1 -DTN=1 -DLANES=16 -DVECTOR=1 -DPAD=0 -DSTAGES=1 -DUNROLL=0 "
    "-DGROUP=1 -DMIN_BLOCKS=1";

typedef struct Config {
  char options[1024];
  size_t bm, bn, tm, tn;
} Config;

static void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "tuned_gemm_opencl: %s failed with %d\n", what, code);
  exit(2);
}

/* A failure here leaves the default config: a cache is never a reason for a program not to run. */
static Config find_config(const int64_t shape[3]) {
  const char* dimensions[] = {"M", "N", "K"};
  purlin_cache* cache = NULL;
  purlin_op* gemm = NULL;
  const purlin_entry* entry = NULL;
  purlin_device device = PURLIN_DEVICE_INIT;
  purlin_op_desc desc = PURLIN_OP_DESC_INIT;
  purlin_outcome outcome = PURLIN_MISS;
  Config config;
  desc.op = "gemm";
  desc.dtype = "f32";
  desc.dimensions = dimensions;
  desc.dimension_count = 3;
  desc.device = &device;
  if (purlin_cache_open(NULL, &cache) != PURLIN_OK ||
      purlin_cache_device(cache, "opencl:0", &device) != PURLIN_OK ||
      purlin_op_open(cache, &desc, &gemm) != PURLIN_OK)
    fprintf(stderr, "tuned_gemm_opencl: %s\n", purlin_last_error());
  /* A real program keeps `gemm` and does this before each launch: it takes tens of nanoseconds. */
  outcome = purlin_lookup(gemm, shape, 3, &entry);

  snprintf(config.options, sizeof config.options, "-cl-mad-enable %s",
           entry != NULL ? purlin_entry_options(entry) : kDefaultOptions);
  config.bm = (size_t)purlin_entry_int(entry, "BM", 16);
  config.bn = (size_t)purlin_entry_int(entry, "BN", 16);
  config.tm = (size_t)purlin_entry_int(entry, "TM", 1);
  config.tn = (size_t)purlin_entry_int(entry, "TN", 1);
  printf("lookup: %s\nconfig: %s\n", purlin_outcome_name(outcome), config.options);
  purlin_op_close(gemm);
  purlin_cache_close(cache);
  return config;
}

static char* read_text(const char* path) {
  FILE* file = fopen(path, "rb");
  char* text = NULL;
  long size = 0;
  if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0) {
    fprintf(stderr, "tuned_gemm_opencl: cannot read '%s'\n", path);
    exit(2);
  }
  rewind(file);
  text = calloc((size_t)size + 1, 1);
  if (text == NULL || fread(text, 1, (size_t)size, file) != (size_t)size) exit(2);
  fclose(file);
  return text;
}

/* "opencl:0" of Purlin: the first device of the first platform that has one. */
static cl_device_id first_device(void) {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  check(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
  for (cl_uint i = 0; i < count && i < 16; ++i) {
    cl_device_id device;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS)
      return device;
  }
  fprintf(stderr, "tuned_gemm_opencl: no OpenCL device\n");
  exit(2);
}

static cl_kernel build(cl_context context, cl_device_id device, const char* path,
                       const char* options) {
  char* source = read_text(path);
  const char* sources[] = {source};
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(context, 1, sources, NULL, &code);
  cl_kernel kernel;
  check(code, "clCreateProgramWithSource");
  if (clBuildProgram(program, 1, &device, options, NULL, NULL) != CL_SUCCESS) {
    char log[8192] = "";
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    fprintf(stderr, "tuned_gemm_opencl: %s does not build:\n%s\n", path, log);
    exit(2);
  }
  kernel = clCreateKernel(program, "gemm", &code);
  check(code, "clCreateKernel");
  clReleaseProgram(program);
  free(source);
  return kernel;
}

static float* random_matrix(size_t count) {
  float* values = malloc(count * sizeof *values);
  if (values == NULL) exit(2);
  for (size_t i = 0; i < count; ++i) values[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
  return values;
}

static cl_mem upload(cl_context context, const float* values, size_t count) {
  cl_int code = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                 count * sizeof *values, (void*)values, &code);
  check(code, "clCreateBuffer");
  return buffer;
}

/* The worst error of some elements against dot products on the CPU. */
static double worst_error(const float* a, const float* b, const float* c, size_t m, size_t n,
                          size_t k) {
  double worst = 0;
  for (int i = 0; i < kCheckedElements; ++i) {
    const size_t row = (size_t)rand() % m, column = (size_t)rand() % n;
    double sum = 0;
    for (size_t l = 0; l < k; ++l) sum += (double)a[row * k + l] * b[l * n + column];
    const double difference = fabs(sum - c[row * n + column]);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: tuned_gemm_opencl gemm.cl M N K\n");
    return 2;
  }
  const int64_t shape[] = {atoll(argv[2]), atoll(argv[3]), atoll(argv[4])};
  if (shape[0] < 1 || shape[1] < 1 || shape[2] < 1 || shape[0] > 65536 || shape[1] > 65536 ||
      shape[2] > 65536) {
    fprintf(stderr, "tuned_gemm_opencl: M, N and K are 1 to 65536\n");
    return 2;
  }
  const size_t m = (size_t)shape[0], n = (size_t)shape[1], k = (size_t)shape[2];
  const Config config = find_config(shape);

  cl_int code = CL_SUCCESS;
  cl_device_id device = first_device();
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &code);
  check(code, "clCreateCommandQueue");
  cl_kernel kernel = build(context, device, argv[1], config.options);

  float *a = random_matrix(m * k), *b = random_matrix(k * n), *c = random_matrix(m * n);
  cl_mem buffers[] = {upload(context, a, m * k), upload(context, b, k * n),
                      upload(context, c, m * n)};
  for (cl_uint i = 0; i < 3; ++i) {
    const cl_int extent = (cl_int)shape[i];
    check(clSetKernelArg(kernel, i, sizeof buffers[i], &buffers[i]), "clSetKernelArg");
    check(clSetKernelArg(kernel, 3 + i, sizeof extent, &extent), "clSetKernelArg");
  }

  /* The launch of gemm.toml: grid [ceil(N / BN), ceil(M / BM)], block [(BM / TM) * (BN / TN)]. */
  const size_t local[] = {config.bm / config.tm * (config.bn / config.tn), 1};
  const size_t global[] = {(n + config.bn - 1) / config.bn * local[0],
                           (m + config.bm - 1) / config.bm};
  double best_ms = 0;
  for (int i = 0; i <= kTimedLaunches; ++i) { /* the first warms up */
    cl_event event;
    cl_ulong begin = 0, end = 0;
    check(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 0, NULL, &event),
          "clEnqueueNDRangeKernel");
    check(clWaitForEvents(1, &event), "the kernel");
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL);
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    clReleaseEvent(event);
    const double ms = (double)(end - begin) / 1e6;
    if (i > 0 && (best_ms == 0 || ms < best_ms)) best_ms = ms;
  }
  check(clEnqueueReadBuffer(queue, buffers[2], CL_TRUE, 0, m * n * sizeof *c, c, 0, NULL, NULL),
        "clEnqueueReadBuffer");

  const double error = worst_error(a, b, c, m, n, k);
  const double tolerance = 1e-4 + 1e-5 * sqrt((double)k);
  printf("time:   %.3f ms, %.1f GFLOP/s (best of %d)\n", best_ms,
         2e-6 * (double)m * (double)n * (double)k / best_ms, kTimedLaunches);
  printf("check:  %s, worst error %.2g\n", error <= tolerance ? "ok" : "WRONG", error);

  for (int i = 0; i < 3; ++i) clReleaseMemObject(buffers[i]);
  clReleaseKernel(kernel);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  free(a);
  free(b);
  free(c);
  return error <= tolerance ? 0 : 1;
}
