/* Names of the planner's words, for messages, JSON and pictures. */
#include "sluice/plan.h"

const char *sl_mem_kind_name(sl_mem_kind kind)
{
    static const char *const names[SL_MEM_KIND_COUNT] = {
            [SL_MEM_WEIGHTS] = "weights",
            [SL_MEM_KV] = "kv",
            [SL_MEM_COMPUTE] = "compute",
            [SL_MEM_STAGING] = "staging",
    };
    return (unsigned)kind < SL_MEM_KIND_COUNT ? names[kind] : "unknown";
}

const char *sl_policy_name(sl_policy policy)
{
    static const char *const names[SL_POLICY_COUNT] = {
            [SL_POLICY_SWAP] = "swap",
            [SL_POLICY_KEEP] = "keep",
            [SL_POLICY_HOT] = "hot",
            [SL_POLICY_AUTO] = "auto",
    };
    return (unsigned)policy < SL_POLICY_COUNT ? names[policy] : "unknown";
}

const char *sl_plan_role_name(sl_plan_role role)
{
    static const char *const names[SL_PLAN_ROLE_COUNT] = {
            [SL_PLAN_ABSENT] = "absent",
            [SL_PLAN_NEEDED] = "needed",
            [SL_PLAN_AHEAD] = "ahead",
            [SL_PLAN_STAYS] = "stays",
    };
    return (unsigned)role < SL_PLAN_ROLE_COUNT ? names[role] : "unknown";
}

const char *sl_plan_event_kind_name(sl_plan_event_kind kind)
{
    static const char *const names[SL_PLAN_EVENT_KIND_COUNT] = {
            [SL_PLAN_LOAD] = "load",
            [SL_PLAN_EVICT] = "evict",
            [SL_PLAN_STALL] = "stall",
            [SL_PLAN_COMPUTE] = "compute",
    };
    return (unsigned)kind < SL_PLAN_EVENT_KIND_COUNT ? names[kind] : "unknown";
}
