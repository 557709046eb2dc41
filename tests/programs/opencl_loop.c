// SPDX-License-Identifier: Apache-2.0
// A program with a known number of OpenCL launches, for tests of capture. Each launch of `scale`
// takes 64 x 1 groups of 16 items; `shift` leaves the group size to the driver.
//
//   opencl_loop [launches N] [pause US] [threads N] [unordered] [queries] [then ACTION]
//
// `pause`: each launch is waited for, and so many microseconds pass until the next one.
//
// ACTION, after the loop: `exit CODE`, `abandon` (return from main without waiting for the last
// launches), `hang` (print "ready", wait for ever), `abort`, `exec PROGRAM ARGS…`, or `fork`
// (before the loop instead: parent and child each run it), or `fork-after` (a child that only
// exits), or `usurp FILE` (close all descriptors, write to FILE, and run the loop again).
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* const kSource =
    "kernel void scale(global float* x) { x[get_global_id(0)] *= 1.0001f; }\n"
    "kernel void shift(global float* x) { x[get_global_id(0)] += 1.0f; }\n";

enum { kItems = 1024 };

struct Work {
  cl_context context;
  cl_device_id device;
  cl_program program;
  int launches;
  int unordered;
  int abandon;
  int pause_us;
};

static void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  fprintf(stderr, "%s: error %d\n", what, status);
  exit(9);
}

// What the program asks about its queue and events must be as if Purlin were not there.
static void queries(cl_command_queue queue, cl_kernel kernel) {
  cl_command_queue_properties properties = 0;
  check(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL),
        "clGetCommandQueueInfo");
  cl_event event;
  const size_t global = kItems;
  check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, &event), "enqueue");
  check(clWaitForEvents(1, &event), "clWaitForEvents");
  cl_ulong start = 0;
  const cl_int status =
      clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
  printf("profiling bit %d, profiling info %s\n",
         (properties & CL_QUEUE_PROFILING_ENABLE) != 0 ? 1 : 0,
         status == CL_PROFILING_INFO_NOT_AVAILABLE ? "not available" : "available");
  check(clReleaseEvent(event), "clReleaseEvent");
}

static void* loop(void* argument) {
  const struct Work* work = argument;
  cl_int status;
  cl_command_queue queue =
      clCreateCommandQueue(work->context, work->device,
                           work->unordered ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &status);
  check(status, "clCreateCommandQueue");
  cl_mem memory = clCreateBuffer(work->context, CL_MEM_READ_WRITE, kItems * 4, NULL, &status);
  check(status, "clCreateBuffer");
  cl_kernel scale = clCreateKernel(work->program, "scale", &status);
  check(status, "clCreateKernel");
  check(clSetKernelArg(scale, 0, sizeof memory, &memory), "clSetKernelArg");
  float values[kItems] = {1};
  check(clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL),
        "clEnqueueWriteBuffer");
  const size_t global = kItems, local = 16;
  for (int i = 0; i < work->launches; ++i) {
    check(clEnqueueNDRangeKernel(queue, scale, 1, NULL, &global, &local, 0, NULL, NULL),
          "clEnqueueNDRangeKernel");
    if (work->pause_us == 0) continue;
    check(clFinish(queue), "clFinish");
    usleep((useconds_t)work->pause_us);
  }
  if (work->abandon) {
    check(clFlush(queue), "clFlush");
    return NULL;
  }
  check(clFinish(queue), "clFinish");
  check(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL),
        "clEnqueueReadBuffer");
  check(clReleaseKernel(scale), "clReleaseKernel");
  check(clReleaseMemObject(memory), "clReleaseMemObject");
  check(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
  return NULL;
}

static void shift_once(struct Work* work, int ask) {
  cl_int status;
  cl_command_queue queue = clCreateCommandQueue(work->context, work->device, 0, &status);
  check(status, "clCreateCommandQueue");
  cl_mem memory = clCreateBuffer(work->context, CL_MEM_READ_WRITE, kItems * 4, NULL, &status);
  check(status, "clCreateBuffer");
  cl_kernel shift = clCreateKernel(work->program, "shift", &status);
  check(status, "clCreateKernel");
  check(clSetKernelArg(shift, 0, sizeof memory, &memory), "clSetKernelArg");
  if (ask) {
    queries(queue, shift);
  } else {
    const size_t global = kItems;
    check(clEnqueueNDRangeKernel(queue, shift, 1, NULL, &global, NULL, 0, NULL, NULL), "enqueue");
    check(clFinish(queue), "clFinish");
  }
  clReleaseKernel(shift);
  clReleaseMemObject(memory);
  clReleaseCommandQueue(queue);
}

static void run(struct Work* work, int threads, int ask) {
  cl_platform_id platform;
  cl_int status;
  check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &work->device, NULL), "clGetDeviceIDs");
  work->context = clCreateContext(NULL, 1, &work->device, NULL, NULL, &status);
  check(status, "clCreateContext");
  const char* source = kSource;
  work->program = clCreateProgramWithSource(work->context, 1, &source, NULL, &status);
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(work->program, 1, &work->device, "", NULL, NULL), "clBuildProgram");
  shift_once(work, ask);
  pthread_t ids[64];
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, loop, work);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
}

int main(int argc, char** argv) {
  struct Work work = {.launches = 100};
  int threads = 1, ask = 0, next = 1;
  for (; next < argc && strcmp(argv[next], "then") != 0; ++next) {
    if (strcmp(argv[next], "launches") == 0 && next + 1 < argc) work.launches = atoi(argv[++next]);
    if (strcmp(argv[next], "pause") == 0 && next + 1 < argc) work.pause_us = atoi(argv[++next]);
    if (strcmp(argv[next], "threads") == 0 && next + 1 < argc) threads = atoi(argv[++next]);
    if (strcmp(argv[next], "unordered") == 0) work.unordered = 1;
    if (strcmp(argv[next], "queries") == 0) ask = 1;
  }
  if (threads > 64) threads = 64;
  const char* action = next + 1 < argc ? argv[next + 1] : "";
  const pid_t child = strcmp(action, "fork") == 0 ? fork() : -1;
  work.abandon = strcmp(action, "abandon") == 0;
  run(&work, threads, ask);
  if (child > 0) waitpid(child, NULL, 0);
  if (strcmp(action, "hang") == 0) {
    printf("ready\n");
    fflush(stdout);
    for (;;) pause();
  }
  if (strcmp(action, "fork-after") == 0) {  // a child that has no use for the device
    const pid_t idle = fork();
    if (idle == 0) exit(0);
    waitpid(idle, NULL, 0);
  }
  if (strcmp(action, "usurp") == 0) {
    for (int fd = 3; fd < 256; ++fd) close(fd);
    for (int i = 0; i < 64; ++i)
      if (open(argv[next + 2], O_WRONLY | O_CREAT | O_APPEND, 0600) < 0) return 9;
    if (write(3, "mine\n", 5) != 5) return 9;
    run(&work, threads, ask);
  }
  if (strcmp(action, "abort") == 0) abort();
  if (strcmp(action, "exec") == 0) execvp(argv[next + 2], argv + next + 2);
  return strcmp(action, "exit") == 0 && next + 2 < argc ? atoi(argv[next + 2]) : 0;
}
