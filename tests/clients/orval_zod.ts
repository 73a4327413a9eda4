// What a customer checks with the schemas that orval makes for zod. It sends nothing.
import { CreateWebhookEndpointBody, EnrolMemberBody, EnrolMemberResponse, ListPlansResponse } from "./client";
import { EligibleMember, Plan } from "./model";

const member = {
  external_id: "E-1", member_id: "M-1", first_name: "Robin", last_name: "Sample", dob: "1977-01-11", gender: "female",
  zipcode: "02134", effective_date: "2026-01-01", metadata: { department: "North" },
};
const answer = { ...member, id: 1 };

console.log(JSON.stringify({
  member: EnrolMemberBody.safeParse(member).success,
  model: EligibleMember.safeParse(member).success,
  wrong: EnrolMemberBody.safeParse({ ...member, zipcode: 2134 }).success,
  url: CreateWebhookEndpointBody.safeParse({}).success,
  answer: EnrolMemberResponse.safeParse(answer).success,
  plans: ListPlansResponse.safeParse({ links: { self: "https://api.example.com/v2/plans" }, data: [] }).success,
  plan: Plan.safeParse({ id: 1 }).success,
}));
