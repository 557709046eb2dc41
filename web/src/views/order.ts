// SPDX-License-Identifier: Apache-2.0
// The order in which interventions and trades are listed together: by their place. Documents of
// older versions have none, and keep trades last.
export const inOrder = (advice: any): { change: any; trade: boolean }[] =>
  [...(advice?.interventions ?? []).map((change: any) => ({ change, trade: false })), ...(advice?.trades ?? []).map((change: any) => ({ change, trade: true }))]
    .sort((a, b) => a.change.place - b.change.place || 0);
