/* The share of the processors that control groups leave to this process. Any thread. */
#ifndef SL_OS_CPU_QUOTA_H
#define SL_OS_CPU_QUOTA_H

/*
 * Whole processors (rounded up, at least 1) that the tightest cgroup bound allows, or 0 if there is none.
 * Reads below `root` ("" for this machine): proc/self/cgroup, sys/fs/cgroup. Missing or absurd files are no
 * bound.
 */
unsigned sl__cpu_quota(const char *root);

#endif
