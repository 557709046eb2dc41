/* SPDX-License-Identifier: Apache-2.0
 *
 * Purlin's C interface: find the tuned config of a kernel, fast enough to ask before each launch.
 *
 *   purlin_cache* cache = NULL;
 *   purlin_op* gemm = NULL;
 *   const char* dimensions[] = {"M", "N", "K"};
 *   purlin_device device = PURLIN_DEVICE_INIT;
 *   purlin_op_desc desc = PURLIN_OP_DESC_INIT;
 *   purlin_cache_open(NULL, &cache);
 *   purlin_cache_device(cache, "cuda:0", &device);
 *   desc.op = desc.kernel = "gemm", desc.device = &device;
 *   desc.dimensions = dimensions, desc.dimension_count = 3;
 *   purlin_op_open(cache, &desc, &gemm);
 *   ...
 *   const int64_t extents[] = {m, n, k};
 *   const purlin_entry* entry = NULL;
 *   purlin_lookup(gemm, extents, 3, &entry);
 *   int64_t bm = purlin_entry_int(entry, "BM", 16);
 *
 * Conventions
 *  1. Handles are opaque. What an _open function made, its _close function releases; closing NULL
 *     does nothing. An op keeps what it needs of its cache, so the order of closing is free.
 *  2. Texts are UTF-8 and end with a zero byte. Texts that are passed in are copied. Texts and
 *     entries that are returned live as long as the handle they came from, and are never changed.
 *  3. A function that can fail returns a purlin_status; PURLIN_OK is 0. After a failure,
 *     purlin_last_error() says, for this thread, what was wrong and what to do.
 *  4. A struct that is passed in begins with its size, which the PURLIN_..._INIT macros set.
 * Members are only ever added at the end, so a program built against an older header keeps working.
 *  5. No function throws, exits, prints, starts a thread or changes signal handlers.
 *  6. [MT] marks what any number of threads may call at once on the same handle. The rest is safe
 * on different handles.
 *  7. A NULL op or entry is allowed wherever one is read: the lookup is a miss and the value is the
 *     fallback. A program that ignores every status runs on its defaults.
 *  8. Environment: PURLIN_CACHE names the default cache directory; PURLIN_DISABLE=1 makes each
 *     lookup a miss without a file being read.
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
#define PURLIN_ABI_VERSION 1

typedef enum purlin_status {
  PURLIN_OK = 0,
  PURLIN_INVALID = 1,     /* the call is wrong */
  PURLIN_NOT_FOUND = 2,   /* something named does not exist */
  PURLIN_UNAVAILABLE = 3, /* this machine cannot do it: no device, no driver */
  PURLIN_IO = 4,          /* the operating system refused */
  PURLIN_CORRUPT = 5,     /* the cache is of a newer version, or no cache */
  PURLIN_FAILED = 6       /* out of memory, or a bug */
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
 * exist is an empty cache. Reads; never writes. */
PURLIN_API purlin_status purlin_cache_open(const char* directory, purlin_cache** cache);
PURLIN_API void purlin_cache_close(purlin_cache* cache);
/* [MT] Takes in what other processes stored since. Lookups go on meanwhile, undisturbed. */
PURLIN_API purlin_status purlin_cache_reload(purlin_cache* cache);
/* Stores a winner that another tuner found: a JSON object as docs/formats/cache.md has it
 * ("purlin.entry/1"), of which key (op, kernel, backend and arch at least), config, problem and
 * time_ms are needed; the key's bucket follows from bucket_rules, and who, where and when are
 * filled in. Durable once it returns PURLIN_OK; ops that are open find it. */
PURLIN_API purlin_status purlin_cache_put(purlin_cache* cache, const char* entry_json);
PURLIN_API const char* purlin_cache_directory(const purlin_cache* cache); /* [MT] */

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

/* With purlin_op_desc.flags: accept entries of the same arch from another model, toolkit, driver.
 */
#define PURLIN_ALLOW_TRANSFERRED 1u

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
} purlin_op_desc;
#define PURLIN_OP_DESC_INIT \
  { sizeof(purlin_op_desc), NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0 }

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
/* Median at that problem, and the default config's beside it; 0: not measured. */
PURLIN_API double purlin_entry_time_ms(const purlin_entry* entry);
PURLIN_API double purlin_entry_default_time_ms(const purlin_entry* entry);
/* 1 when its outputs were checked against the reference. */
PURLIN_API int purlin_entry_verified(const purlin_entry* entry);
PURLIN_API const char* purlin_entry_id(
    const purlin_entry* entry); /* 32 hex digits of its key; "" */
PURLIN_API const char* purlin_outcome_name(purlin_outcome outcome); /* "exact", ... */

#ifdef __cplusplus
}
#endif

#endif
