import { FileNotLoaded } from "./errors.js";
import type { FileHandle } from "./file.js";

/** How a file differs from the members of a plan, by `external_id`. Nothing was written. */
export class Reconciliation {
  /** In the file, and not in the service: a load would create these members. */
  readonly missingThere: string[] = [];
  /** Members of the plan with access that the file does not list: a load of a full file would end their access. */
  readonly missingHere: string[] = [];
  /** Members of the plan with the names of the fields that differ. */
  readonly differs = new Map<string, string[]>();
  /** Members of another plan of the account, with its `external_id`: a load would move them. */
  readonly otherPlan = new Map<string, string | null>();
  /** Rows that can't be compared, with their faults as `field: code`; a row without `external_id` is `row 7`. */
  readonly refused = new Map<string, string[]>();
  /** Number of rows that equal the stored member. */
  unchanged = 0;

  get isEqual(): boolean {
    const { missingThere, missingHere, differs, otherPlan, refused } = this;
    return missingThere.length + missingHere.length + differs.size + otherPlan.size + refused.size === 0;
  }
}

/** What the report of a dry run says. Throws FileNotLoaded. */
export async function reconciliationOf(file: FileHandle): Promise<Reconciliation> {
  if (file.state !== "done" || (file.problem && !file.data.rows_done)) throw new FileNotLoaded(file.state, file.problem);
  const found = new Reconciliation();
  found.unchanged = file.counts.unchanged ?? 0;
  for await (const { row, external_id, outcome, changed, left_plan, field, code } of file.report()) {
    const name = external_id || `row ${row}`;
    if (outcome === "created") found.missingThere.push(name);
    else if (["would_end", "kept"].includes(outcome)) found.missingHere.push(name);
    else if (outcome === "moved") found.otherPlan.set(name, left_plan);
    else if (["updated", "ended", "reopened"].includes(outcome)) found.differs.set(name, changed);
    else if (outcome === "refused") found.refused.set(name, [...(found.refused.get(name) ?? []), `${field}: ${code}`]);
  }
  return found;
}
