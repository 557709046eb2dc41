// SPDX-License-Identifier: Apache-2.0
// The views that the first one does not need: a script of its own (more.js), which takes what
// page.js has of modules from there (build.mjs).
import { Timeline } from "./timeline/timeline";
import { Cache } from "./views/cache";
import { Compare } from "./views/compare";
import { Guard } from "./views/guard";
import { Kernel } from "./views/kernel";
import { Roofline } from "./views/roofline";
import { Tuning } from "./views/tuning";

export const views = { Timeline, Cache, Compare, Guard, Kernel, Roofline, Tuning };
(globalThis as any).purlinViews = views;
