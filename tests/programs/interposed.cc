// SPDX-License-Identifier: Apache-2.0
// Two small libraries for the test of interposition. The first one has the function that is
// replaced. The second one, PURLIN_LATE, binds to it, and calls the test while the loader is still
// relocating it: from the resolver of an indirect function, whose slot the loader writes next.
extern "C" {

#ifndef PURLIN_LATE

void (*while_loading)() = nullptr;
int answer() { return 1; }

#else

extern void (*while_loading)();
int answer();

static int three() { return 3; }
using Function = int (*)();
Function resolve_picked() {
  if (while_loading != nullptr) while_loading();
  return &three;
}
int picked() __attribute__((ifunc("resolve_picked")));

Function bound_answer() { return &answer; }
Function bound_picked() { return &picked; }

#endif
}
