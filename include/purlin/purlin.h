/* SPDX-License-Identifier: Apache-2.0
 *
 * Purlin's C interface: find the tuned config of a kernel, fast enough to ask before each launch.
 *
 *    purlin_cache* cache = NULL;
 *    purlin_op* gemm = NULL;
 *    const char* dimensions[] = {"M", "N", "K"};
 *    purlin_device device = PURLIN_DEVICE_INIT;
 *    purlin_op_desc desc = PURLIN_OP_DESC_INIT;
 *    purlin_cache_open(NULL, &cache);
 *    purlin_cache_device(cache, "cuda:0", &device);
 *    desc.op = desc.kernel = "gemm", desc.device = &device;
 *    desc.dimensions = dimensions, desc.dimension_count = 3;
 *    purlin_op_open(cache, &desc, &gemm);
 *    ...
 *    const int64_t extents[] = {m, n, k};
 *    const purlin_entry* entry = NULL;
 *    purlin_lookup(gemm, extents, 3, &entry);
 *    int64_t bm = purlin_entry_int(entry, "BM", 16);
 *
 * Conventions
 *  1. Handles are opaque. What an _open function made, its _close function releases; closing NULL
 *     does nothing. An op keeps what it needs of its cache, so the order of closing is free.
 *  2. Texts are UTF-8 and end with a zero byte. Texts that are passed in are copied. Texts and
 *     entries that are returned live as long as the handle they came from, and are never changed.
 *  3. A function that can fail returns a purlin_status; PURLIN_OK is 0. After a failure,
 *     purlin_last_error() says, for this thread, what was wrong and what to do.
 *  4. A struct that is passed in begins with its size, which the PURLIN_..._INIT macros set.
 *     Members are only ever added at the end, so a program built against an older header keeps
 *     working.
 *  5. No function throws, exits, starts a thread, changes signal handlers, or prints unless
 *     PURLIN_LOG asks for it.
 *  6. [MT] marks what any number of threads may call at once on the same handle. The rest is safe
 *     on different handles.
 *  7. Every function that reads an op or an entry accepts NULL: the lookup is a miss and the value
 *     is the fallback. A program that ignores every status runs on its defaults.
 *  8. Environment, read when a cache is opened: PURLIN_CACHE names the default cache directory,
 *     PURLIN_CACHE_LAYERS those below it ("/var/cache/purlin:/mnt/fleet/purlin").
 *     PURLIN_DISABLE=1 makes each lookup a miss without a file being read, so that defaults are
 *     served. PURLIN_LOG=info or info:FILE says once for each entry and shape what was chosen and
 *     why (debug, info, warning, error; off). PURLIN_RECORD=0 writes no work list.
 *     PURLIN_REVALIDATE=serve or refuse decides for all ops about entries of another driver or
 *     toolkit. PURLIN_SHADOW=N shadows one launch in N of every dispatcher, 0 none.
 *     PURLIN_CACHE_QUOTA=64M, read at each put, is how large the file put to may get.
 *     docs/guide/runtime.md explains them.
 */
#ifndef PURLIN_PURLIN_H_
#define PURLIN_PURLIN_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define PURLIN_API
#else
#define PURLIN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when something is added; a library of a higher number serves programs of a lower one. */
#define PURLIN_ABI_VERSION 9

typedef enum purlin_status {
  PURLIN_OK = 0,
  PURLIN_INVALID = 1,     /* The call is wrong. */
  PURLIN_NOT_FOUND = 2,   /* Something named does not exist. */
  PURLIN_UNAVAILABLE = 3, /* This machine cannot do it: no device, no driver. */
  PURLIN_IO = 4,          /* The operating system refused. */
  PURLIN_CORRUPT = 5,     /* The cache is of a newer version, or no cache. */
  PURLIN_FAILED = 6       /* Out of memory, or a bug. */
} purlin_status;

typedef enum purlin_outcome {
  PURLIN_MISS = 0,
  PURLIN_EXACT = 1,      /* this problem shape was tuned on this device */
  PURLIN_BUCKET = 2,     /* another shape of its bucket was, and its config is valid here */
  PURLIN_TRANSFERRED = 3 /* with PURLIN_ALLOW_TRANSFERRED: tuned on the same arch, but on another
                            device model, toolkit or driver */
} purlin_outcome;

PURLIN_API const char* purlin_version(void);    /* [MT] "0.1.0" */
PURLIN_API int purlin_abi_version(void);        /* [MT] PURLIN_ABI_VERSION of the library */
PURLIN_API const char* purlin_last_error(void); /* [MT] "" before the first failure; valid until
                                                   this thread's next failure */

/* --- The cache ------------------------------------------------------------------------------- */

typedef struct purlin_cache purlin_cache;

/* Opens the cache in `directory`; NULL: $PURLIN_CACHE, else the user's. A directory that does not
 * exist is an empty cache. The lookups, with their counts, are written next to the entries as
 * worklist.json: see purlin_cache_flush. Lookups read through to the directories of
 * $PURLIN_CACHE_LAYERS below it: the better outcome is served, of equals the upper layer's, and
 * what was withdrawn in any layer is served from none. */
PURLIN_API purlin_status purlin_cache_open(const char* directory, purlin_cache** cache);
/* The same over directories of the program's choice, the uppermost first (NULL: as above);
 * $PURLIN_CACHE_LAYERS is not read. Layers below the first that cannot be read are skipped and
 * tried again at each purlin_cache_reload. */
PURLIN_API purlin_status purlin_cache_open_layers(const char* const* directories, size_t count,
                                                  purlin_cache** cache);
PURLIN_API void purlin_cache_close(purlin_cache* cache);
/* [MT] Takes in what other processes stored since, in every layer. Lookups go on meanwhile,
 * undisturbed. */
PURLIN_API purlin_status purlin_cache_reload(purlin_cache* cache);
/* [MT] Adds what was asked for since to the tuning work list, which `purlin backlog` reads. Takes a
 * file lock and some milliseconds. Happens by itself at reload, close, exit, and at most once a
 * minute when a dispatcher meets a new shape: a service that does none of these for hours calls it.
 */
PURLIN_API purlin_status purlin_cache_flush(purlin_cache* cache);
/* [MT] Stores a winner that another tuner found. docs/formats/cache.md describes its
 * JSON object ("purlin.entry/1"). Required are key (op, kernel, backend and arch at least), config,
 * problem and time_ms. The key's bucket follows from bucket_rules, and who, where and when are
 * filled in. Ops that are open find it once this returns PURLIN_OK, unless a better entry of the
 * key is known, which goes on being served. It goes into the first layer that can be written,
 * durably; where none can, it serves this process until it ends. PURLIN_INVALID says which member
 * is wrong. */
PURLIN_API purlin_status purlin_cache_put(purlin_cache* cache, const char* entry_json);
PURLIN_API const char* purlin_cache_directory(const purlin_cache* cache); /* [MT] */
/* [MT] Fills in up to `count` directories of the layers that are read, the uppermost first; how
 * many there are. */
PURLIN_API size_t purlin_cache_layers(purlin_cache* cache, const char** directories, size_t count);

/* --- The device ------------------------------------------------------------------------------ */

/* What an entry must have been measured on. NULL: not stated, any will do; backend and arch must be
 * stated, and an entry of another arch is never served. */
typedef struct purlin_device {
  size_t size;
  const char* backend; /* "cuda", "opencl" */
  const char* arch;    /* "sm_90"; "" where the device has none */
  const char* model;   /* "NVIDIA H200" */
  const char* toolkit; /* what compiles: "NVRTC 13.0" */
  const char* driver;  /* "580.95.05" */
} purlin_device;
#define PURLIN_DEVICE_INIT \
  { sizeof(purlin_device), NULL, NULL, NULL, NULL, NULL }

/* [MT] Fills in the facts of a device as `purlin tune` records them. `name` is what --device takes:
 * "cuda:0", "opencl:0", "auto". Loads the device's driver. The texts belong to the cache. */
PURLIN_API purlin_status purlin_cache_device(purlin_cache* cache, const char* name,
                                             purlin_device* device);

/* --- The op ---------------------------------------------------------------------------------- */

/* With the flags of an op or a dispatcher: accept entries of the same arch from another model,
 * toolkit, driver. */
#define PURLIN_ALLOW_TRANSFERRED 1u
/* With purlin_op_desc.flags: accept entries of the same device model from another toolkit or
 * driver. They are served as PURLIN_TRANSFERRED, and `purlin cache verify` takes them up, the most
 * used first. */
#define PURLIN_ALLOW_STALE 2u

typedef struct purlin_op_desc {
  size_t size;
  const char* op;          /* op class, as in the spec: "gemm" */
  const char* kernel;      /* the spec's name; NULL: the same as op */
  const char* dtype;       /* "f32"; NULL: any */
  const char* source_hash; /* of the kernel's source and options; NULL: any, the newest first */
  const char* policy;      /* "warm" or "cold" measurements; NULL: any */
  const char* const* dimensions; /* names of the problem's dimensions: the order of the extents */
  size_t dimension_count;        /* 1 to 8 */
  const purlin_device* device;
  unsigned flags;
  const char* layout; /* of the buffers: "A=row,B=column,C=row", as a spec's cache key has it; NULL:
                         any */
} purlin_op_desc;
#define PURLIN_OP_DESC_INIT \
  { sizeof(purlin_op_desc), NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL }

typedef struct purlin_op purlin_op;
typedef struct purlin_entry purlin_entry; /* a winner; lives as long as its op */

/* [MT] Resolves everything but the shape, once. */
PURLIN_API purlin_status purlin_op_open(purlin_cache* cache, const purlin_op_desc* desc,
                                        purlin_op** op);
PURLIN_API void purlin_op_close(purlin_op* op);

/* [MT] The hot path: no lock, no allocation, no system call; also under CUDA-graph capture.
 * `extents` are in the order of the op's dimensions. *entry is NULL on a miss, which a wrong
 * `count` is too. */
PURLIN_API purlin_outcome purlin_lookup(const purlin_op* op, const int64_t* extents, size_t count,
                                        const purlin_entry** entry);
/* [MT] Why a shape has no entry, in one sentence for people: another kernel of the op, other names
 * of the dimensions, another device or version, a bucket that was not tuned. Its length; at most
 * size - 1 bytes of it and a 0 are written to `buffer`, which may be NULL. 0 for a hit. Reads the
 * cache: not for the hot path. Since version 7. */
PURLIN_API size_t purlin_op_why_missed(const purlin_op* op, const int64_t* extents, size_t count,
                                       char* buffer, size_t size);
/* [MT] Begins to bring what purlin_lookup will read for a shape into the processor's caches, and
 * waits for nothing. For programs that know their next shapes ahead, of ops with so many entries
 * (some 100,000) that a lookup has to wait for memory. */
PURLIN_API void purlin_prefetch(const purlin_op* op, const int64_t* extents, size_t count);
/* [MT] Counts `launches` of a shape for the work list, without a lookup: for programs that keep the
 * answers they got, and say now and then how often they used them. A shape without an entry counts
 * as missed. Since version 6. */
PURLIN_API void purlin_op_count(const purlin_op* op, const int64_t* extents, size_t count,
                                uint64_t launches);

/* --- The entry: all [MT] ---------------------------------------------------------------------- */

/* A parameter's value; `fallback` where the entry is NULL, has no such parameter, or it is of
 * another type. Booleans are 0 and 1. */
PURLIN_API int64_t purlin_entry_int(const purlin_entry* entry, const char* name, int64_t fallback);
PURLIN_API double purlin_entry_double(const purlin_entry* entry, const char* name, double fallback);
/* Parameters that are texts only. */
PURLIN_API const char* purlin_entry_text(const purlin_entry* entry, const char* name,
                                         const char* fallback);
/* "-DBM=64 -DBN=32": the parameters as compiler options, exactly as they were measured; "" of NULL.
 */
PURLIN_API const char* purlin_entry_options(const purlin_entry* entry);
PURLIN_API size_t purlin_entry_parameter_count(const purlin_entry* entry);
/* NULL past the last. */
PURLIN_API const char* purlin_entry_parameter_name(const purlin_entry* entry, size_t index);
/* The extent of a dimension of the problem that was measured. */
PURLIN_API int64_t purlin_entry_extent(const purlin_entry* entry, const char* dimension,
                                       int64_t fallback);
/* Median at that problem, and the default config's median there; 0: not measured. */
PURLIN_API double purlin_entry_time_ms(const purlin_entry* entry);
PURLIN_API double purlin_entry_default_time_ms(const purlin_entry* entry);
/* 1 when its outputs were checked against the reference. */
PURLIN_API int purlin_entry_verified(const purlin_entry* entry);
PURLIN_API const char* purlin_entry_id(
    const purlin_entry* entry); /* 32 hex digits of its key; "" */
/* The directory of the layer it came from. */
PURLIN_API const char* purlin_entry_layer(const purlin_entry* entry);
PURLIN_API const char* purlin_outcome_name(purlin_outcome outcome); /* "exact", ... */

/* --- The dispatcher: look up, compile, launch in one call ------------------------------------- */

typedef struct purlin_dispatcher purlin_dispatcher;

/* A file that a spec names, for programs that carry their kernels inside. */
typedef struct purlin_source {
  const char* path; /* as the spec has it: "gemm.cl" */
  const char* text;
} purlin_source;

/* With purlin_dispatcher_desc.flags, next to PURLIN_ALLOW_TRANSFERRED: */
#define PURLIN_REFUSE_STALE 4u       /* do not serve entries of another toolkit or driver */
#define PURLIN_COMPILE_AHEAD_ONLY 8u /* launches never compile: only purlin_prepare does */

typedef struct purlin_dispatcher_desc {
  size_t size;
  const char* spec;             /* path of the kernel's spec; with spec_text, a name for messages */
  const char* spec_text;        /* the spec itself; NULL: it is read from `spec` */
  const purlin_source* sources; /* with spec_text: every file it names, headers excepted */
  size_t source_count;
  const char* backend;  /* "cuda" or "opencl" */
  void* context;        /* OpenCL: a cl_context. CUDA: NULL, the calling thread's current one */
  void* device;         /* OpenCL: a cl_device_id of the context; NULL: its first */
  const char* binaries; /* directory of compiled kernels; NULL: the one `purlin tune` fills */
  const char* policy;   /* "warm" or "cold" measurements; NULL: any */
  unsigned flags;
  unsigned shadow_interval; /* one launch in so many is shadowed: docs/guide/runtime.md; 0: none */
} purlin_dispatcher_desc;
#define PURLIN_DISPATCHER_DESC_INIT \
  { sizeof(purlin_dispatcher_desc), NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, 0 }

/* Opens a kernel on the program's own context, which must outlive the dispatcher (on CUDA it must
 * also be current in every thread that uses the dispatcher). Compiles and loads the default config,
 * which takes as long as the compiler does unless the directory of binaries has it. `*dispatcher`
 * is closed with purlin_dispatcher_close; the cache may be closed before. */
PURLIN_API purlin_status purlin_dispatcher_open(purlin_cache* cache,
                                                const purlin_dispatcher_desc* desc,
                                                purlin_dispatcher** dispatcher);
/* No launch of the dispatcher may be under way in another thread. The function does not wait for
 * launches that the device has not finished: finish the queues first. */
PURLIN_API void purlin_dispatcher_close(purlin_dispatcher* dispatcher);

/* [MT] The dimensions of a problem shape, in the order of extents; "" past the last. */
PURLIN_API size_t purlin_dispatcher_dimension_count(const purlin_dispatcher* dispatcher);
PURLIN_API const char* purlin_dispatcher_dimension(const purlin_dispatcher* dispatcher,
                                                   size_t index);
/* [MT] The kernel's arguments, in the order of purlin_launch.arguments; "" past the last. */
PURLIN_API size_t purlin_dispatcher_argument_count(const purlin_dispatcher* dispatcher);
PURLIN_API const char* purlin_dispatcher_argument(const purlin_dispatcher* dispatcher,
                                                  size_t index);

/* [MT] Compiles and loads what a shape takes, ahead of its first launch and of any graph capture.
 * Not to be called while a stream is captured. */
PURLIN_API purlin_status purlin_prepare(purlin_dispatcher* dispatcher, const int64_t* extents,
                                        size_t count);

typedef struct purlin_launch {
  size_t size;
  const int64_t* extents; /* the problem shape, in the order of the spec's [problem] */
  size_t extent_count;
  /* For each argument of the spec the address of its value, as cuLaunchKernel takes them: of a
   * CUdeviceptr or a cl_mem for a buffer, of an int, a float... for a scalar. A scalar whose value
   * in the spec depends on the config is filled in by Purlin; its address is not read. */
  void* const* arguments;
  size_t argument_count;
  void* queue; /* CUstream (NULL: the default stream) or cl_command_queue */
  /* OpenCL: cl_events to wait for, and where the launch's own event goes (the program releases it);
   * NULL on CUDA. */
  void* const* wait_list;
  size_t wait_count;
  void** event;
} purlin_launch;
#define PURLIN_LAUNCH_INIT \
  { sizeof(purlin_launch), NULL, 0, NULL, 0, NULL, NULL, 0, NULL }

/* [MT] Launches the kernel with the best config known for the shape, asynchronously, as the
 * driver's own launch does. The first launch of a shape may compile (unless COMPILE_AHEAD_ONLY;
 * never while `queue` is captured); from then on: no lock but the driver's (OpenCL's kernel objects
 * need one), no allocation, no wait. If a tuned config cannot be served for any reason, the
 * default is. Fails where the driver refuses the launch, or the shape is none that the spec's
 * default config can run. */
PURLIN_API purlin_status purlin_dispatch(purlin_dispatcher* dispatcher,
                                         const purlin_launch* launch);

typedef struct purlin_choice {
  size_t size;
  purlin_outcome outcome; /* Of the lookup; PURLIN_MISS: the default config. */
  int demoted;            /* If 1: live launches showed the entry slower than the served config. */
  const char* entry;      /* Id of the entry; "" on a miss. */
  const char* options;    /* Of the config served: "-DBM=64 -DBN=32". */
  const char* reason;     /* Why the default is served although there is an entry; "". */
  unsigned grid[3], block[3];
  uint64_t shadow_samples; /* pairs timed so far against the most tested rival */
  double shadow_ratio;     /* time of what is served over that rival's, median; 1: not known */
} purlin_choice;
#define PURLIN_CHOICE_INIT \
  { sizeof(purlin_choice), PURLIN_MISS, 0, "", "", "", {0, 0, 0}, {0, 0, 0}, 0, 1 }

/* [MT] What a launch of this shape is served, and why. Takes a lock and may allocate; compiles
 * nothing. The texts live as long as the cache's handles. */
PURLIN_API purlin_status purlin_dispatcher_choice(purlin_dispatcher* dispatcher,
                                                  const int64_t* extents, size_t count,
                                                  purlin_choice* choice);

/* --- cuBLASLt: tuned algorithms for a program's own matrix products --------------------------- */

typedef struct purlin_cublaslt purlin_cublaslt;

/* D = epilogue(A * B), row-major and packed. A is M x K (K x M if transposed), B is K x N (N x K if
 * transposed), D is M x N. A column-major product is the same with A and B, M and N exchanged.
 * docs/formats/spec.md describes a spec with a [library]. */
typedef struct purlin_cublaslt_desc {
  size_t size;
  const char* a; /* "bf16", "f16", "f32", "f64", "i8", "f8e4m3", "f8e5m2" */
  const char* b; /* NULL: as a */
  const char* d; /* NULL: as a, i32 for i8, bf16 for 8-bit reals */
  int transpose_a, transpose_b;
  int batched;            /* If 1: a fourth extent, the number of products one after another. */
  const char* compute;    /* Is "f32", "tf32", "i32", "f64"; NULL: follows from a. */
  const char* epilogue;   /* Is "bias", "relu", "gelu", "relu_bias", "gelu_bias"; NULL: none. */
  size_t workspace_bytes; /* The program will give this to each product. */
  const purlin_device* device; /* Its toolkit is not read: it is the library's version. */
  void* handle; /* the program's cublasLtHandle_t; NULL: one is made, on the current context */
  const char* policy; /* "warm" or "cold" measurements; NULL: any */
  unsigned flags;     /* PURLIN_ALLOW_STALE: of another driver; never of another cuBLASLt */
} purlin_cublaslt_desc;
#define PURLIN_CUBLASLT_DESC_INIT \
  { sizeof(purlin_cublaslt_desc), NULL, NULL, NULL, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, 0 }

/* Of the libcublasLt this process has loaded. Entries are of its very version. A shape without an
 * entry goes to the work list, with a spec next to the cache for `purlin tune --backlog`. */
PURLIN_API purlin_status purlin_cublaslt_open(purlin_cache* cache, const purlin_cublaslt_desc* desc,
                                              purlin_cublaslt** product);
/* Plans are freed with it: finish what was launched first. */
PURLIN_API void purlin_cublaslt_close(purlin_cublaslt* product);

/* [MT] Fills in the cublasLtMatmulAlgo_t that a shape was tuned to, for the program to pass to
 * cublasLtMatmul. `extents` are M, N, K and, where batched, BATCH. `descriptors` are the program's
 * own: the cublasLtMatmulDesc_t and the layouts of the library's A, B, C and D; NULL: packed ones.
 * The function never returns an algorithm that cublasLtMatmulAlgoCheck refuses for them, or that
 * needs more than the workspace. Then *algo is unchanged and the outcome is PURLIN_MISS
 * (purlin_last_error says why), so the program goes on with its heuristic. Makes no call to the
 * device: allowed while a stream is captured. Takes some microseconds: keep the algorithm for as
 * long as the shape. */
PURLIN_API purlin_outcome purlin_cublaslt_algo(purlin_cublaslt* product, const int64_t* extents,
                                               size_t count, void* const descriptors[5], void* algo,
                                               size_t algo_bytes, size_t* workspace_bytes);

/* With purlin_cublaslt_launch.fallback: what happens on a miss. */
#define PURLIN_CUBLASLT_TUNED_ONLY 0     /* nothing is launched */
#define PURLIN_CUBLASLT_ELSE_HEURISTIC 1 /* the library's own first choice */
#define PURLIN_CUBLASLT_HEURISTIC 2      /* always that: to compare with */

typedef struct purlin_cublaslt_launch {
  size_t size;
  const int64_t* extents;
  size_t extent_count;
  const void *a, *b, *bias; /* on the device; bias NULL where the epilogue has none */
  void* d;
  void* workspace;
  size_t workspace_bytes;
  void* stream; /* cudaStream_t */
  int fallback;
} purlin_cublaslt_launch;
#define PURLIN_CUBLASLT_LAUNCH_INIT \
  { sizeof(purlin_cublaslt_launch), NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0 }

/* [MT] The whole product in one call, asynchronously, with packed row-major operands aligned to 16
 * bytes. *outcome is PURLIN_MISS where no tuned algorithm was launched. The first product of a
 * shape plans it; from then on: a lookup, a lock and the library's call. */
PURLIN_API purlin_status purlin_cublaslt_matmul(purlin_cublaslt* product,
                                                const purlin_cublaslt_launch* launch,
                                                purlin_outcome* outcome);

/* --- Shadow timing in programs that launch by themselves ----------------------------------------
 */

/* Whether a winner still wins: the program times it and a rival now and then, one after the other
 * on the same arguments, in an order that a coin decides. The test may be looked at after each pair
 * (docs/guide/runtime.md). It belongs to one thread at a time. Since version 8. */
typedef struct purlin_duel purlin_duel;
PURLIN_API purlin_status purlin_duel_open(purlin_duel** duel);
PURLIN_API void purlin_duel_close(purlin_duel* duel);
/* Milliseconds of one pair. 1: the served one is slower by more than 1 %, and the test starts
 * again. A pair without two positive times says nothing. */
PURLIN_API int purlin_duel_add(purlin_duel* duel, double served_ms, double rival_ms);
/* Of the latest pairs, the time of the served one over the rival's; 1 before the first. */
PURLIN_API double purlin_duel_ratio(const purlin_duel* duel);
PURLIN_API uint64_t purlin_duel_samples(const purlin_duel* duel);
/* Demotes the entry of a shape, whose winner lost: after a reload no program is served from it. An
 * op with a spec goes to the backlog to be tuned again. `reason` is for people. PURLIN_NOT_FOUND
 * where the shape has no entry. Since version 8. */
PURLIN_API purlin_status purlin_op_demote(purlin_op* op, const int64_t* extents, size_t count,
                                          double ratio, const char* reason);

#ifdef __cplusplus
}
#endif

#endif
