/* SPDX-License-Identifier: Apache-2.0
 *
 * Purlin's C interface for programs that tune their own kernel while they run. The conventions are
 * those of purlin.h.
 *
 *    purlin_tuner_desc desc = PURLIN_TUNER_DESC_INIT;
 *    purlin_tuner* tuner = NULL;
 *    const int64_t blocks[] = {64, 128, 256};
 *    desc.kernel = "scale";
 *    purlin_tuner_open(&desc, &tuner);
 *    purlin_tuner_add_ints(tuner, "BLOCK", blocks, 3, 128);
 *    purlin_tuner_start(tuner);
 *    for (;;) {                                     each call of the program's kernel
 *      const purlin_config* config = NULL;
 *      purlin_tuner_next(tuner, &config);           the next candidate, or the winner
 *      ... launch with purlin_config_int(config, "BLOCK", 128), time it, check its output ...
 *      if (right) purlin_tuner_report(tuner, milliseconds);
 *      else purlin_tuner_reject(tuner, PURLIN_WRONG, "differs from the reference");
 *    }
 *
 * A tuner belongs to one thread at a time. Behind it is the session of `purlin tune`: the same
 * strategies, racing, finals and resumable journal. purlin_tuner_next costs a few microseconds
 * while tuning and some nanoseconds afterwards.
 */
#ifndef PURLIN_TUNER_H_
#define PURLIN_TUNER_H_

#include <purlin/purlin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct purlin_tuner purlin_tuner;
typedef struct purlin_config purlin_config; /* one assignment of the parameters */

typedef struct purlin_tuner_desc {
  size_t size;
  const char* kernel;   /* Its name: required. */
  const char* op;       /* Op class; NULL: as the kernel. */
  const char* strategy; /* NULL: "auto"; names as `purlin tune --strategy` has them. */
  /* Is "200" evaluations, "60s", or both "200,60s"; NULL: "200". Evaluations that were rejected as
   * PURLIN_NO_COMPILE, PURLIN_NO_LAUNCH or PURLIN_UNFIT do not count, until 200 are. */
  const char* budget;
  const char* session; /* Folder of the journal, so that a killed program goes on; NULL: none. */
  const char* device;  /* Name of the device whose journal it is; NULL: "". */
  uint64_t seed;
  int warmups;       /* runs of a config that do not count when it takes over */
  int finals_rounds; /* how often the fastest are run again in turns; 0: never */
  /* How many configs purlin_tuner_announced names before their runs, at most; 0: none. A budget in
   * evaluations keeps it low, so that the search can learn. Since version 8. */
  int lookahead;
} purlin_tuner_desc;
#define PURLIN_TUNER_DESC_INIT \
  { sizeof(purlin_tuner_desc), NULL, NULL, NULL, NULL, NULL, NULL, 1, 1, 3, 0 }

/* Why a candidate is out. */
typedef enum purlin_rejection {
  PURLIN_WRONG = 0,       /* Its output differs from the reference. */
  PURLIN_NO_COMPILE = 1,  /* The compiler refused it. */
  PURLIN_NO_LAUNCH = 2,   /* The driver refused it: too many registers, too much shared memory. */
  PURLIN_OUT_OF_TIME = 3, /* It took longer than the program would wait. */
  PURLIN_UNFIT = 4        /* It breaks a limit that no constraint names. */
} purlin_rejection;

PURLIN_API purlin_status purlin_tuner_open(const purlin_tuner_desc* desc, purlin_tuner** tuner);
PURLIN_API void purlin_tuner_close(purlin_tuner* tuner);

/* --- The space: before purlin_tuner_start ----------------------------------------------------- */

/* Up to 64 parameters of at most 65535 different values. `preset` is one of them: the value of the
 * default config, which is what the program would use untuned. It is run first. */
PURLIN_API purlin_status purlin_tuner_add_ints(purlin_tuner* tuner, const char* name,
                                               const int64_t* values, size_t count, int64_t preset);
PURLIN_API purlin_status purlin_tuner_add_doubles(purlin_tuner* tuner, const char* name,
                                                  const double* values, size_t count,
                                                  double preset);
PURLIN_API purlin_status purlin_tuner_add_texts(purlin_tuner* tuner, const char* name,
                                                const char* const* values, size_t count,
                                                const char* preset);
PURLIN_API purlin_status purlin_tuner_add_bool(purlin_tuner* tuner, const char* name, int preset);
/* "BLOCK * UNROLL <= 1024": Python's syntax, over parameters and dimensions. */
PURLIN_API purlin_status purlin_tuner_add_constraint(purlin_tuner* tuner, const char* expression);
/* A dimension of the problem: constraints may name it and the winner is stored for it. `bucket`:
 * "exact", "pow2", "multiple:64", as in a spec; NULL: "exact". */
PURLIN_API purlin_status purlin_tuner_add_dimension(purlin_tuner* tuner, const char* name,
                                                    int64_t extent, const char* bucket);
/* The search starts from the results of this kernel in the cache in `directory` (NULL: the default
 * one): of other problem shapes, dtypes and devices. They are a hint, which the search tests.
 * `desc` as for purlin_tuner_store, which then also keeps what was measured, for later searches.
 * Since version 8. */
PURLIN_API purlin_status purlin_tuner_transfer(purlin_tuner* tuner, const char* directory,
                                               const purlin_op_desc* desc);
/* Builds the space, and reads the journal where there is one. */
PURLIN_API purlin_status purlin_tuner_start(purlin_tuner* tuner);

/* --- Tuning ----------------------------------------------------------------------------------- */

/* The config of the program's next run: a candidate while there is budget, the best one then. It
 * lives until the run is reported or rejected, or the tuner closed. */
PURLIN_API purlin_status purlin_tuner_next(purlin_tuner* tuner, const purlin_config** config);
/* A config that is likely to be run soon and is worth compiling now; each is named once. Some are
 * not run, because later results speak for others. *config is NULL
 * when there is none; it lives until the next call of this function. To be asked after
 * purlin_tuner_next, until it is NULL. Since version 8. */
PURLIN_API purlin_status purlin_tuner_announced(purlin_tuner* tuner, const purlin_config** config);
/* How long the program waited for the config of this run to be compiled, in seconds, before it
 * could run it: 0 where it was compiled by then. Where compilations take long, the search then asks
 * for more configs before it has their results, so that more are compiled at a time. Since version
 * 9. */
PURLIN_API purlin_status purlin_tuner_waited(purlin_tuner* tuner, double seconds);
/* How long the run took, in milliseconds; of the kernel alone, by the device's clock. Nothing
 * happens once the tuner is over. */
PURLIN_API purlin_status purlin_tuner_report(purlin_tuner* tuner, double time_ms);
PURLIN_API purlin_status purlin_tuner_reject(purlin_tuner* tuner, purlin_rejection how,
                                             const char* why);
/* 1 when the budget is spent and the winner is known. */
PURLIN_API int purlin_tuner_is_over(const purlin_tuner* tuner);
/* The best config by now; the default while nothing is known. NULL before purlin_tuner_start. It
 * lives until the next call on the tuner. */
PURLIN_API const purlin_config* purlin_tuner_best(const purlin_tuner* tuner);
PURLIN_API double purlin_tuner_best_time_ms(const purlin_tuner* tuner);    /* 0: not measured */
PURLIN_API double purlin_tuner_default_time_ms(const purlin_tuner* tuner); /* 0: not measured */
PURLIN_API uint64_t purlin_tuner_space_size(const purlin_tuner* tuner);
PURLIN_API uint64_t purlin_tuner_evaluations(const purlin_tuner* tuner); /* all, rejected too */

/* Keeps the winner in the cache in `directory` (NULL: the default one), where purlin_lookup of any
 * program finds it. `desc` as for purlin_op_open; its dimensions are the tuner's. `verified`: 1
 * when every candidate's output was compared with a reference. An older entry stays in use where it
 * is better, except one whose config lost to the winner in the finals. PURLIN_LOG=info says which
 * entry is then in use. PURLIN_INVALID before the tuner is over. */
PURLIN_API purlin_status purlin_tuner_store(purlin_tuner* tuner, const char* directory,
                                            const purlin_op_desc* desc, int verified);

/* --- A config: as purlin_entry_..., `fallback` where it is NULL or has no such parameter --------
 */

PURLIN_API int64_t purlin_config_int(const purlin_config* config, const char* name,
                                     int64_t fallback);
PURLIN_API double purlin_config_double(const purlin_config* config, const char* name,
                                       double fallback);
PURLIN_API const char* purlin_config_text(const purlin_config* config, const char* name,
                                          const char* fallback);
/* "-DBLOCK=64 -DUNROLL=4", for the compiler, into `buffer` of `size` bytes; the length it has,
 * which may be more than fits. */
PURLIN_API size_t purlin_config_options(const purlin_config* config, char* buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
