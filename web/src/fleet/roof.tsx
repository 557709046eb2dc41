// SPDX-License-Identifier: Apache-2.0
// What bounds a kernel of the fleet, and how near it comes: a row of /v1/query/roofs.
import { Bound, Meter } from "../ui";
import * as f from "../format";

// What is not known is said, with the reason.
export function Roof(props: { of: any }) {
  const r = props.of;
  if (!r) return <span class="faint">unknown</span>;
  const part = r.known_gpu_s > 0 && r.known_gpu_s < 0.95 * r.gpu_s ? `Of ${f.percent(r.known_gpu_s / r.gpu_s, 0)} of its GPU time; for the rest, ${r.unknown}` : "";
  const bound = <Bound kernel={{ bound: r.bound, roof: { bound_from: r.bound_from, evidence: r.evidence } }} />;
  if (r.utilization == null) return <span title={r.unknown}><span class="faint">unknown</span>{r.bound !== "unknown" && <small class="under">{bound}</small>}</span>;
  return <span title={[r.evidence, part].filter(Boolean).join(". ")}><Meter value={r.utilization} /><small class="under">{bound}{part && " *"}</small></span>;
}
