// SPDX-License-Identifier: Apache-2.0
// The part of include/purlin/purlin.h for shadow timing in programs that launch by themselves.
#include "runtime/c_api/support.h"
#include "runtime/slowdown_detector.h"

#include <cmath>

using purlin::runtime::fail;
using purlin::runtime::guarded;
using purlin::runtime::text_or_empty;

struct purlin_duel {
  purlin::runtime::SlowdownDetector test;
};

purlin_status purlin_duel_open(purlin_duel** duel) {
  if (duel == nullptr) return fail(PURLIN_INVALID, "purlin_duel_open: duel is NULL");
  *duel = nullptr;
  return guarded([&] {
    *duel = new purlin_duel();
    return PURLIN_OK;
  });
}

void purlin_duel_close(purlin_duel* duel) { delete duel; }

int purlin_duel_add(purlin_duel* duel, double served_ms, double rival_ms) {
  if (duel == nullptr || !(served_ms > 0) || !(rival_ms > 0)) return 0;
  return duel->test.add(std::log(served_ms / rival_ms)) ? 1 : 0;
}

double purlin_duel_ratio(const purlin_duel* duel) {
  return duel == nullptr ? 1 : duel->test.ratio();
}

uint64_t purlin_duel_samples(const purlin_duel* duel) {
  return duel == nullptr ? 0 : duel->test.samples();
}

purlin_status purlin_op_demote(purlin_op* op, const int64_t* extents, size_t count, double ratio,
                               const char* reason) {
  if (op == nullptr || extents == nullptr || count != op->op.dimension_count())
    return fail(PURLIN_INVALID, "purlin_op_demote: give the op and all of its extents");
  return guarded([&] {
    const purlin::cache::OpIndex::Hit hit = op->op.peek(extents);
    if (hit.entry == nullptr)
      return fail(PURLIN_NOT_FOUND, "purlin_op_demote: the shape has no entry");
    const purlin::Status status =
        op->op.demote(hit.entry->record, hit.entry->problem.text(), ratio, text_or_empty(reason));
    return status.is_ok() ? PURLIN_OK : fail(status);
  });
}
