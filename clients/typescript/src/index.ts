/** A client of the frontdesk interface. */
export type { Keyed, List, Options } from "./connection.js";
export type { Progress, Source } from "./content.js";
export { ApiError, BadSignature, FileNotFinished, FileNotLoaded } from "./errors.js";
export { FrontdeskError, UnexpectedAnswer, Unreachable } from "./errors.js";
export type { ProblemKind } from "./errors.js";
export type { FileHandle, ReportFilter, ReportLine } from "./file.js";
export * from "./frontdesk.js";
export type { Reconciliation } from "./reconciliation.js";
export type * from "./schema.js";
export { verifyWebhook, type WebhookEvent, type WebhookHeaders } from "./webhooks.js";
